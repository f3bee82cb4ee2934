import { Suspense } from 'react';
import { createRoot } from 'react-dom/client';
import { RelayEnvironmentProvider } from 'react-relay';
import { createRelay } from './environment.ts';
import { Outfits } from './Outfits.tsx';

createRoot(document.getElementById('app') as HTMLElement).render(
  <RelayEnvironmentProvider environment={createRelay()}>
    <Suspense fallback="Loading …">
      <Outfits />
    </Suspense>
  </RelayEnvironmentProvider>,
);

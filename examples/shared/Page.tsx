// What the three apps have in common: the number of outfits, the form, the list.
import type { ReactNode } from 'react';
import { CreateForm, type InputError, type NewOutfit } from './CreateForm.tsx';
import './style.css';

interface Properties {
  readonly count: number | undefined;
  readonly create: (input: NewOutfit, key: string) => Promise<readonly InputError[]>;
  readonly hasMore: boolean;
  readonly loadMore: () => void;
  readonly children: ReactNode;
}

export function Page({ count, create, hasMore, loadMore, children }: Properties) {
  return (
    <main>
      <h1>
        <output>{count ?? '…'}</output> outfits
      </h1>
      <CreateForm create={create} />
      <section>{children}</section>
      {hasMore && (
        <button type="button" onClick={loadMore}>
          Show more
        </button>
      )}
    </main>
  );
}

// The drawings of the pages: all say nothing that text beside them does not say too.
import type { ComponentChildren } from 'preact';
import { hangerPath } from '../logo.ts';

/** The coat hanger of the tab. */
export const favicon = `data:image/svg+xml,${encodeURIComponent(
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="none" stroke="#b0447a" stroke-width="1.8" stroke-linecap="round" stroke-linejoin="round"><path d="${hangerPath}"/></svg>`,
)}`;

function Icon({ children, name }: { readonly children: ComponentChildren; readonly name: string }) {
  return (
    <svg class={`icon ${name}`} viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      {children}
    </svg>
  );
}

export const Hanger = () => (
  <Icon name="hanger">
    <path d={hangerPath} />
  </Icon>
);

export const Heart = () => (
  <Icon name="heart">
    <path d="M12 20C5 15 3 11.6 3 8.800A4.8 4.8 0 0 1 12 6.500a4.8 4.8 0 0 1 9 2.300c0 2.8-2 6.2-9 11.200z" />
  </Icon>
);

export const Lock = () => (
  <Icon name="lock">
    <path d="M6 11h12v9H6zM8.5 11V8a3.5 3.5 0 0 1 7 0v3" />
  </Icon>
);

export const Play = () => (
  <Icon name="play">
    <path d="M8 5.500v13l11-6.500z" />
  </Icon>
);

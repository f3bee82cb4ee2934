// Icons of the pages, and addresses of the pictures of outfits.
import { hangerPath } from './logo.ts';
import { webAddressOf } from './text.tsx';

export const favicon = `data:image/svg+xml,${encodeURIComponent(
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="none" stroke="#b0447a" stroke-width="1.8" stroke-linecap="round" stroke-linejoin="round"><path d="${hangerPath}"/></svg>`,
)}`;

const icons = {
  hanger: hangerPath,
  heart:
    'M12 20C5 15 3 11.6 3 8.800A4.8 4.8 0 0 1 12 6.500a4.8 4.8 0 0 1 9 2.300c0 2.8-2 6.2-9 11.200z',
  lock: 'M6 11h12v9H6zM8.5 11V8a3.5 3.5 0 0 1 7 0v3',
  play: 'M8 5.500v13l11-6.500z',
};

/** Decorative: hidden from screen readers. */
export const Icon = ({ name }: { readonly name: keyof typeof icons }) => (
  <svg class={`icon ${name}`} viewBox="0 0 24 24" aria-hidden="true" focusable="false">
    <path d={icons[name]} />
  </svg>
);

/** The first row of pictures is loaded before everything else, and the others when they come near. */
export const loadingOf = (index: number) =>
  index < 4
    ? ({ decoding: 'async', fetchpriority: 'high' } as const)
    : ({ decoding: 'async', loading: 'lazy' } as const);

/** Bases of addresses, without a trailing slash. */
export interface Media {
  readonly pictures: string;
  readonly videos: string;
  /** Replaces both when this process draws the pictures. A path: a phone may not resolve the host in the JSON. */
  readonly drawn: string | undefined;
}

/** Address of a picture; for a video drawn by this process, its still image. */
export function pictureAddressOf(text: string, { pictures, videos, drawn }: Media) {
  const address = webAddressOf(text);
  const base = [pictures, videos].find((url) => address?.startsWith(`${url}/`));
  if (drawn === undefined || base === undefined) return address;
  return address && drawn + address.slice(base.length);
}

// Icons of the pages, and addresses of the pictures of outfits.
import { webAddressOf } from './text.tsx';

const icons = {
  // The logo: a coat hanger.
  hanger: 'M10 7a2 2 0 1 1 2 2v2l9 6a1 1 0 0 1-.6 1.8H3.6A1 1 0 0 1 3 17l9-6',
  heart:
    'M12 20C5 15 3 11.6 3 8.800A4.8 4.8 0 0 1 12 6.500a4.8 4.8 0 0 1 9 2.300c0 2.8-2 6.2-9 11.200z',
  lock: 'M6 11h12v9H6zM8.5 11V8a3.5 3.5 0 0 1 7 0v3',
  play: 'M8 5.500v13l11-6.500z',
};

/** For GraphiQL, which does not use the layout. */
export const logo = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" width="28" height="28" fill="none" stroke="#b0447a" stroke-width="1.6" stroke-linecap="round" stroke-linejoin="round"><path d="${icons.hanger}"/></svg>`;

export const favicon = `data:image/svg+xml,${encodeURIComponent(logo)}`;

/** Decorative: hidden from screen readers. */
export const Icon = ({ name }: { readonly name: keyof typeof icons }) => (
  <svg class={`icon ${name}`} viewBox="0 0 24 24" aria-hidden="true" focusable="false">
    <path d={icons[name]} />
  </svg>
);

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

// Where a page finds pictures: those that this process draws are asked for by path, whatever name it was
// reached by. JSON names one address, which another machine, a phone say, may not know.
import type { Config } from '../config.ts';
import { webAddressOf } from './text.tsx';

export interface Media {
  /** What the addresses of pictures begin with; without a trailing slash. */
  readonly pictures: string;
  /** The same of videos. */
  readonly videos: string;
  /** What pages put in the place of both; undefined: nothing is drawn here. */
  readonly drawn: string | undefined;
}

/** @param root what the addresses of a page begin with */
export function mediaOf(
  { mediaUrl, videoUrl }: Pick<Config, 'mediaUrl' | 'videoUrl'>,
  root: string,
  drawsPictures: boolean,
): Media {
  return {
    pictures: mediaUrl,
    videos: videoUrl,
    drawn: drawsPictures ? `${root}/media` : undefined,
  };
}

/** Where the picture with this address is seen; that of a video drawn here is its still. */
export function pictureAddressOf(text: string, { pictures, videos, drawn }: Media) {
  const address = webAddressOf(text);
  const base = [pictures, videos].find((url) => address?.startsWith(`${url}/`));
  if (drawn === undefined || base === undefined) return address;
  return address && drawn + address.slice(base.length);
}

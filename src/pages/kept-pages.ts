// Pages as they were last made: to make one takes ten times as long as the answer that it shows, and a burst
// asks for the same one again and again.
import { LRUCache } from 'lru-cache';
import { entityTag } from '../http/representation.ts';

export interface Page {
  readonly body: Buffer;
  /** The entity tag of these bytes. */
  readonly tag: string;
}

/** Bytes of all pages that are kept, a hundred of the usual size. */
const maxBytes = 8_000_000;

export class KeptPages {
  readonly #pages = new LRUCache<string, Page>({
    maxSize: maxBytes,
    sizeCalculation: ({ body }) => body.length,
  });

  /**
   * A page that is kept, or else one that is made.
   * @param key all that it is made of; undefined: nobody will ask for the same again
   */
  find(key: string | undefined, make: () => string): Page {
    const kept = key === undefined ? undefined : this.#pages.get(key);
    if (kept) return kept;
    const body = Buffer.from(make());
    const page = { body, tag: entityTag(body) };
    if (key !== undefined) this.#pages.set(key, page);
    return page;
  }
}

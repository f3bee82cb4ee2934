// Pages as they were last made: to make one takes ten times as long as the answer that it shows.
import { setImmediate } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { entityTag } from '../http/etag.ts';

export interface Page {
  readonly body: Buffer;
  /** The entity tag of these bytes. */
  readonly tag: string;
}

/** Bytes of all pages that are kept, a hundred of the usual size. */
const maxBytes = 8_000_000;

export function toPage(html: string): Page {
  const body = Buffer.from(html);
  return { body, tag: entityTag(body) };
}

export class KeptPages {
  readonly #pages = new LRUCache<string, Page>({
    maxSize: maxBytes,
    sizeCalculation: ({ body }) => body.length,
  });
  #lastTurn: Promise<void> = Promise.resolve();

  /**
   * A page that is kept, or else one that is made: one in each round of the event loop, so that what else is
   * asked for is answered between them. Two thousand at once had held up everybody for eleven seconds.
   * @param key all that it is made of; undefined: nobody will ask for the same again
   */
  async find(key: string | undefined, make: () => string): Promise<Page> {
    const kept = this.#get(key);
    if (kept) return kept;
    this.#lastTurn = this.#lastTurn.then(() => setImmediate());
    await this.#lastTurn;
    // Whoever came before may have wanted the same.
    const made = this.#get(key) ?? toPage(make());
    if (key !== undefined) this.#pages.set(key, made);
    return made;
  }

  #get(key: string | undefined): Page | undefined {
    return key === undefined ? undefined : this.#pages.get(key);
  }
}

// Which document a request means: by its text, an id (persisted documents), or its hash (APQ).
import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import {
  badRequest,
  documentMismatch,
  documentNotFound,
  documentNotTrusted,
  persistedQueryNotFound,
} from './errors.ts';

/** How a request names its document; at least one of both is there. */
export interface DocumentReference {
  readonly query: string | undefined;
  /** Another name than the text; `isAutomatic`: clients know to send the text when it is unknown. */
  readonly name: { readonly id: string; readonly isAutomatic: boolean } | undefined;
}

export type TrustedDocuments = ReadonlyMap<string, string>;

export type Documents = ReturnType<typeof createDocuments>;

/** Most bytes of texts that clients have registered: thousands of documents of an app. */
const maxBytes = 8_388_608;
/** A longer text is answered, but not kept: few documents within the limits are. */
const maxBytesOfText = 65_536;

/** Registered texts are of this process only: another one asks a client for its text once more. */
export function createDocuments(trusted: TrustedDocuments | undefined, trustedOnly: boolean) {
  const trustedTexts = trustedOnly ? new Set(trusted?.values()) : undefined;
  const registered = new LRUCache<string, string>({
    maxSize: maxBytes,
    maxEntrySize: maxBytesOfText,
    // Two bytes for each character, and the hash.
    sizeCalculation: (text, id) => 2 * (text.length + id.length),
  });

  /** Under an id of its own, or the id that stands in for the hash. */
  const findTrusted = (id: string) => trusted?.get(id) ?? trusted?.get(id.replace(/^sha256:/, ''));

  return {
    /** @throws HttpError 400 unless there is one, 403 when it is not trusted, 200 to ask for the text of a hash */
    textOf({ query, name }: DocumentReference): string {
      const known = name && (findTrusted(name.id) ?? registered.get(name.id));
      const text = query ?? known;
      if (text === undefined) {
        if (!name) throw badRequest('The parameter query is missing.');
        if (trustedTexts) throw documentNotTrusted();
        throw name.isAutomatic ? persistedQueryNotFound() : documentNotFound(name.id);
      }
      if (name && text !== known && name.id !== sha256Id(text)) {
        const isWrong = known !== undefined || name.id.startsWith('sha256:');
        throw isWrong ? documentMismatch(name.id) : documentNotFound(name.id);
      }
      if (trustedTexts && !trustedTexts.has(text)) throw documentNotTrusted();
      return text;
    },
    keep({ query, name }: DocumentReference): void {
      if (!name || query === undefined || trustedTexts || findTrusted(name.id)) return;
      registered.set(name.id, query);
    },
  };
}

export function sha256Id(text: string): string {
  return `sha256:${createHash('sha256').update(text).digest('hex')}`;
}

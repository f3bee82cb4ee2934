// Documents of GraphQL requests: by text, by id (persisted documents), or by hash (automatic persisted queries, APQ).
import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import {
  badRequest,
  documentMismatch,
  documentNotFound,
  documentNotTrusted,
  persistedQueryNotFound,
} from './errors.ts';

/** How a request refers to its document: by `query`, `name`, or both. */
export interface DocumentReference {
  readonly query: string | undefined;
  /** An id or a hash; `isAutomatic` (APQ): the client sends the text when the hash is unknown. */
  readonly name: { readonly id: string; readonly isAutomatic: boolean } | undefined;
}

export type TrustedDocuments = ReadonlyMap<string, string>;

/** Bytes of the registered texts at most: thousands of documents of an app. */
const maxBytes = 8_388_608;
/** A longer text is executed but not registered: few documents within the limits are longer. */
const maxBytesOfText = 65_536;

/** Trusted documents, and those that clients registered with this process: another process asks for the text again. */
export class DocumentStore {
  readonly #trustedTexts: ReadonlySet<string> | undefined;
  readonly #registered = new LRUCache<string, string>({
    maxSize: maxBytes,
    maxEntrySize: maxBytesOfText,
    // Two bytes for each character, and the hash.
    sizeCalculation: (text, id) => 2 * (text.length + id.length),
  });

  constructor(
    private readonly trusted: TrustedDocuments | undefined,
    trustedOnly: boolean,
  ) {
    if (trustedOnly) this.#trustedTexts = new Set(trusted?.values());
  }

  /** @throws HttpError 400 for an unknown id, 403 for a document that is not trusted, 200 for an unknown hash (APQ) */
  textOf({ query, name }: DocumentReference): string {
    const stored = name && (this.#findTrusted(name.id) ?? this.#registered.get(name.id));
    const text = query ?? stored;
    if (text === undefined) {
      if (!name) throw badRequest('The parameter query is missing.');
      if (this.#trustedTexts) throw documentNotTrusted();
      throw name.isAutomatic ? persistedQueryNotFound() : documentNotFound(name.id);
    }
    if (name && text !== stored && name.id !== sha256Id(text)) {
      const isWrong = stored !== undefined || name.id.startsWith('sha256:');
      throw isWrong ? documentMismatch(name.id) : documentNotFound(name.id);
    }
    if (this.#trustedTexts && !this.#trustedTexts.has(text)) throw documentNotTrusted();
    return text;
  }

  register({ query, name }: DocumentReference): void {
    if (!name || query === undefined || this.#trustedTexts || this.#findTrusted(name.id)) return;
    this.#registered.set(name.id, query);
  }

  /** By an id of the manifest, or by the hash, which is an id too. */
  #findTrusted(id: string): string | undefined {
    return this.trusted?.get(id) ?? this.trusted?.get(id.replace(/^sha256:/, ''));
  }
}

export function sha256Id(text: string): string {
  return `sha256:${createHash('sha256').update(text).digest('hex')}`;
}

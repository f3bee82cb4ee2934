// Documents by an id (trusted documents) or a hash (automatic persisted queries, APQ), and the safelist.
import { createHash } from 'node:crypto';
import type { GraphQLParams } from 'graphql-yoga';
import { LRUCache } from 'lru-cache';
import {
  badRequest,
  documentMismatch,
  documentNotFound,
  documentNotTrusted,
  persistedQueryNotFound,
} from '../errors.ts';
import type { DocumentReference, OperationPlugin } from '../run.ts';

/** Characters of an id or a hash of a document. */
const maxIdLength = 1_000;

/** The engine registers a document once it is known to be valid. */
export function useStoredDocuments(store: DocumentStore): OperationPlugin {
  return {
    onParams({ params, setParams, context: { run } }) {
      const { query, operationName, variables, extensions } = params;
      // Yoga has the error of a wrong type.
      if (typeof (query ?? '') !== 'string') return;
      run.reference = readReference(params);
      // An operation of a WebSocket has no headers.
      const key = readText('extensions.idempotencyKey', extensions?.['idempotencyKey']);
      run.idempotencyKey = key ?? run.idempotencyKey;
      const text = store.textOf(run.reference);
      setParams({ query: text, operationName, variables, extensions } as GraphQLParams);
    },
  };
}

function readReference({ query, ...others }: GraphQLParams): DocumentReference {
  const { documentId, extensions } = others as Record<string, unknown>;
  const id = readText('The parameter documentId', documentId);
  const hash = readHash(extensions);
  if (id && hash !== undefined) {
    throw badRequest('Give documentId or extensions.persistedQuery, not both.');
  }
  const name = id
    ? { id, isAutomatic: false }
    : hash && { id: `sha256:${hash}`, isAutomatic: true };
  // Some clients send an empty query beside an id or a hash.
  return {
    query: (name && query === '' ? undefined : query) ?? undefined,
    name: name || undefined,
  };
}

function readHash(extensions: unknown): string | undefined {
  const { persistedQuery } = (extensions ?? {}) as { readonly persistedQuery?: unknown };
  if (typeof persistedQuery !== 'object' || persistedQuery === null) return undefined;
  const { version, sha256Hash } = persistedQuery as Record<string, unknown>;
  if (version !== 1) throw badRequest('The version of extensions.persistedQuery must be 1.');
  // Without a hash, it is as wrong as with another type.
  return readText('The sha256Hash of extensions.persistedQuery', sha256Hash || false);
}

/** @throws HttpError 400 for another type, and for a longer text */
function readText(what: string, value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'string' && value.length <= maxIdLength) return value;
  throw badRequest(`${what} must be a string of at most ${maxIdLength} characters.`);
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

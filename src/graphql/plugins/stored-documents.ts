// Documents by an id or a hash (trusted documents, automatic persisted queries), and the safelist; for GET in the address.
import type { GraphQLParams } from 'graphql-yoga';
import { isDeeper, maxLevels, readJson } from '../../http/json.ts';
import type { DocumentReference, DocumentStore } from '../documents.ts';
import { badRequest } from '../errors.ts';
import type { OperationContext, OperationPlugin } from '../operation.ts';

/** Characters of an id or a hash of a document. */
const maxIdLength = 1_000;

export function useStoredDocuments(store: DocumentStore): OperationPlugin {
  /** A document is registered once it is known to be valid. */
  const register = ({ context: { run } }: { context: OperationContext }) => {
    if (run.reference) store.register(run.reference);
  };
  return {
    onRequestParse({ request, setRequestParser }) {
      if (request.method === 'GET') setRequestParser(({ url }) => readQueryString(url));
    },
    onParams({ params, setParams, context: { run } }) {
      if (isDeeper(params, maxLevels)) {
        throw badRequest(`The body is nested deeper than ${maxLevels} levels.`);
      }
      const { query, operationName, variables, extensions } = params;
      // Yoga has the error of a wrong type.
      if (typeof (query ?? '') !== 'string') return;
      run.reference = readReference(params);
      run.idempotencyKey = readKey(extensions) ?? run.idempotencyKey;
      const text = store.textOf(run.reference);
      setParams({ query: text, operationName, variables, extensions } as GraphQLParams);
    },
    onExecute: register,
    onSubscribe: register,
  };
}

const parameterNames = ['query', 'documentId', 'operationName', 'variables', 'extensions'];

/** Ignores parameters of others, such as those that trackers add to links. */
function readQueryString(url: string): GraphQLParams {
  const parameters: Record<string, unknown> = {};
  for (const [name, value] of new URL(url).searchParams) {
    if (!parameterNames.includes(name)) continue;
    if (Object.hasOwn(parameters, name)) {
      throw badRequest(`The parameter ${name} is there more than once.`);
    }
    const isJson = name === 'variables' || name === 'extensions';
    parameters[name] =
      value && isJson ? readJson(value, `The parameter ${name}`) : value || undefined;
  }
  return parameters;
}

function readReference({ query, ...others }: GraphQLParams): DocumentReference {
  const { documentId, extensions } = others as Record<string, unknown>;
  if (!isId(documentId ?? '')) {
    throw badRequest(`The parameter documentId must be a string ${upTo}.`);
  }
  const hash = readHash(extensions);
  if (documentId && hash !== undefined) {
    throw badRequest('Give documentId or extensions.persistedQuery, not both.');
  }
  const name = documentId
    ? { id: documentId as string, isAutomatic: false }
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
  if (!isId(sha256Hash) || sha256Hash === '') {
    throw badRequest(`The sha256Hash of extensions.persistedQuery must be a string ${upTo}.`);
  }
  return sha256Hash;
}

/** In `extensions`: an operation of a WebSocket has no headers. */
function readKey(extensions: GraphQLParams['extensions']): string | undefined {
  const key: unknown = extensions?.['idempotencyKey'] ?? undefined;
  if (key === undefined || isId(key)) return key;
  throw badRequest(`extensions.idempotencyKey must be a string ${upTo}.`);
}

const upTo = `of at most ${maxIdLength} characters`;

function isId(value: unknown): value is string {
  return typeof value === 'string' && value.length <= maxIdLength;
}

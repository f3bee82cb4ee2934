// GraphQL over HTTP: parses requests, with content negotiation, and encodes results.
// @see https://graphql.github.io/graphql-over-http/draft/
import { hash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import type { ExecutionResult } from 'graphql';
import { type FetchAPI, processRegularResult } from 'graphql-yoga';
import { LRUCache } from 'lru-cache';
import { memoizeHeader, preferredType, prefersHtml } from '../http/content-negotiation.ts';
import { unsupportedEncodingOf } from '../http/headers.ts';
import { decodeBody, InputError, readJson } from '../http/json.ts';
import type { DocumentReference } from './documents.ts';
import {
  badRequest,
  methodNotAllowed,
  notAcceptable,
  unsupportedEncoding,
  unsupportedType,
} from './errors.ts';

export const allow = 'GET, HEAD, POST, OPTIONS';

export interface GraphQLRequest {
  readonly reference: DocumentReference;
  readonly operationName: string | undefined;
  readonly variables: Readonly<Record<string, unknown>>;
  readonly answerType: AnswerType;
  readonly events: AcceptedEvents | undefined;
  /** In `extensions`: an operation of a WebSocket has no headers. */
  readonly idempotencyKey: string | undefined;
  /** Cache key: names everything that the answer depends on. */
  readonly key: string;
}

/** The media type for streams that `Accept` names, and whether it prefers it to the types of a single answer. */
export interface AcceptedEvents {
  readonly type: 'text/event-stream' | 'multipart/mixed';
  readonly isPreferred: boolean;
}

export type AnswerType = 'application/json' | 'application/graphql-response+json';

/** Bytes of the cache of parsed requests, without events, at most, with their texts. */
const maxBytes = 8_388_608;
/** Bytes of one of them at most: apps send hundreds of characters. */
const maxBytesOfText = 262_144;
/** Characters of a text in a cache key; a longer one is there by its hash. */
const maxKeyLength = 4_096;
/** Characters of an id or a hash of a document. */
const maxIdLength = 1_000;
/** Bytes of memory per character of a text: up to 16, for `[[],[]]`. */
const bytesPerCharacter = 16;

/**
 * A body must be JSON: a page of another origin cannot send it without a CORS preflight (CSRF protection).
 * @returns a function that throws HttpError 405, 406, 415 or 400, in this order
 */
export function createRequestReader(): (request: FastifyRequest) => GraphQLRequest {
  const cache = new LRUCache<string, GraphQLRequest>({
    maxSize: maxBytes,
    maxEntrySize: maxBytesOfText,
  });

  return (request) => {
    const isGet = isRead(request);
    if (!isGet && request.method !== 'POST') throw methodNotAllowed(request.method, allow);
    const accepted = readAccept(request.headers.accept ?? '');
    const events = request.method === 'HEAD' ? undefined : accepted.events;
    const answerType = accepted.type ?? (events && 'application/json');
    if (!answerType) throw notAcceptable();
    try {
      if (request.deliverEvents) {
        // No text: 1e400 is Infinity in it, and would be null in JSON.
        const checked = checkParameters(request.body as Parameters);
        return { ...checked, answerType, key: '', events };
      }
      const text = isGet ? queryStringOf(request) : bodyOf(request);
      // The raw text: 1e400 is parsed as Infinity, which JSON would write as null.
      const name = text.length > maxKeyLength ? hash('sha256', text, 'base64url') : text;
      const key = `${answerType} ${isGet ? 'GET' : 'POST'} ${name}`;
      let parsed = cache.get(key);
      if (!parsed) {
        const parameters = isGet ? readQueryString(text) : readBody(text);
        parsed = { ...checkParameters(parameters), answerType, key, events: undefined };
        cache.set(key, parsed, { size: bytesPerCharacter * (text.length + 1) });
      }
      return events ? { ...parsed, events } : parsed;
    } catch (error) {
      throw error instanceof InputError ? badRequest(error.message) : error;
    }
  };
}

export function isRead({ method }: FastifyRequest): boolean {
  return method === 'GET' || method === 'HEAD';
}

const answerTypes = ['application/json', 'application/graphql-response+json'] as const;
const eventStream = 'text/event-stream';
/** Stands for `multipart/mixed;subscriptionSpec=1.0`: without that parameter the type means incremental delivery. */
const subscriptionParts = 'multipart/subscription';

const readAccept = memoizeHeader((accept) => ({
  events: eventsFor(accept),
  type: chooseType(accept),
}));

function eventsFor(accept: string): AcceptedEvents | undefined {
  if (!/text\/event-stream|subscriptionspec/i.test(accept)) return undefined;
  const ranges = accept.toLowerCase().split(',').map(nameSubscriptionParts).join();
  // Only types that are named: a stream is no answer to `*/*`.
  const named = [eventStream, subscriptionParts].filter((type) => ranges.includes(type));
  const type = preferredType(ranges, named)?.type;
  if (!type) return undefined;
  return {
    type: type === eventStream ? eventStream : 'multipart/mixed',
    isPreferred: preferredType(ranges, [...answerTypes, ...named])?.type === type,
  };
}

function nameSubscriptionParts(range: string): string {
  const [name, ...parameters] = range.split(';').map((piece) => piece.trim());
  const isNamed = parameters.some((parameter) => /^subscriptionspec="?1\.0"?$/.test(parameter));
  return name === 'multipart/mixed' && isNamed ? range.replace(name, subscriptionParts) : range;
}

export function chooseType(accept: string | undefined): AnswerType | undefined {
  if (!accept || accept === '*/*') return 'application/json';
  return preferredType(accept, answerTypes)?.type;
}

export function prefersPage(accept: string | undefined): boolean {
  return prefersHtml(accept, answerTypes);
}

type Parameters = Record<string, unknown>;

const parameterNames = ['query', 'documentId', 'operationName', 'variables', 'extensions'];

export function queryStringOf({ url }: FastifyRequest): string {
  const start = url.indexOf('?');
  return start === -1 ? '' : url.slice(start + 1);
}

/** Ignores parameters of others, such as those that trackers add to links. */
function readQueryString(text: string): Parameters {
  const parameters: Parameters = {};
  for (const [name, value] of new URLSearchParams(text)) {
    if (!parameterNames.includes(name)) continue;
    if (Object.hasOwn(parameters, name)) {
      throw badRequest(`The parameter ${name} is there more than once.`);
    }
    const isJson = name === 'variables' || name === 'extensions';
    parameters[name] =
      value === '' || !isJson ? value || null : readJson(value, `The parameter ${name}`);
  }
  return parameters;
}

function bodyOf({ headers, body }: FastifyRequest): string {
  if (!/^application\/json[ \t]*(;|$)/i.test(headers['content-type'] ?? ''))
    throw unsupportedType();
  if (!(body instanceof Buffer) || body.length === 0) return '';
  const encoding = unsupportedEncodingOf(headers);
  if (encoding) throw unsupportedEncoding(encoding);
  // A parser may ignore a byte order mark. @see https://www.rfc-editor.org/rfc/rfc8259#section-8.1
  return decodeBody(body).replace(/^\ufeff/, '');
}

function readBody(text: string): Parameters {
  const body = readJson(text, 'The body');
  if (Array.isArray(body)) {
    throw badRequest('The body must be one object: requests cannot be sent in batches.');
  }
  if (!isRecord(body)) throw badRequest('The body must be an object with the parameter query.');
  return body;
}

function checkParameters(
  parameters: Parameters,
): Pick<GraphQLRequest, 'idempotencyKey' | 'operationName' | 'reference' | 'variables'> {
  const { operationName, variables, extensions } = parameters;
  if (typeof (operationName ?? '') !== 'string') {
    throw badRequest('The parameter operationName must be a string.');
  }
  if (!isRecord(variables ?? {})) throw badRequest('The parameter variables must be an object.');
  if (!isRecord(extensions ?? {})) throw badRequest('The parameter extensions must be an object.');
  return {
    reference: readReference(parameters),
    operationName: (operationName || undefined) as string | undefined,
    variables: (variables ?? {}) as Record<string, unknown>,
    idempotencyKey: readKey(extensions),
  };
}

function readReference({ query, documentId, extensions }: Parameters): DocumentReference {
  if (typeof (query ?? '') !== 'string') throw badRequest('The parameter query must be a string.');
  if (!isName(documentId ?? '')) {
    throw badRequest(`The parameter documentId must be a string ${upTo}.`);
  }
  const sha256 = readHash(extensions);
  if (documentId && sha256 !== undefined) {
    throw badRequest('Give documentId or extensions.persistedQuery, not both.');
  }
  const name = documentId
    ? { id: documentId as string, isAutomatic: false }
    : sha256 && { id: `sha256:${sha256}`, isAutomatic: true };
  // Some clients send an empty query beside an id or a hash.
  const text = name && query === '' ? undefined : (query ?? undefined);
  return { query: text as string | undefined, name: name || undefined };
}

function readHash(extensions: unknown): string | undefined {
  const persistedQuery = isRecord(extensions) ? extensions['persistedQuery'] : undefined;
  if (!isRecord(persistedQuery)) return undefined;
  const { version, sha256Hash } = persistedQuery;
  if (version !== 1) throw badRequest('The version of extensions.persistedQuery must be 1.');
  if (!isName(sha256Hash) || sha256Hash === '') {
    throw badRequest(`The sha256Hash of extensions.persistedQuery must be a string ${upTo}.`);
  }
  return sha256Hash;
}

function readKey(extensions: unknown): string | undefined {
  const key = (isRecord(extensions) ? extensions['idempotencyKey'] : undefined) ?? undefined;
  if (key === undefined || isName(key)) return key;
  throw badRequest(`extensions.idempotencyKey must be a string ${upTo}.`);
}

const upTo = `of at most ${maxIdLength} characters`;

function isName(value: unknown): value is string {
  return typeof value === 'string' && value.length <= maxIdLength;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** By yoga, which implements the status of errors for each media type (GraphQL over HTTP §6.4). */
export function encodeResult(result: ExecutionResult, answerType: AnswerType) {
  const response: unknown = processRegularResult(result as never, fetchApi, answerType);
  const { body, init } = response as PlainResponse;
  const { status, headers } = init;
  return { status, contentType: headers['Content-Type'], body: Buffer.from(body) };
}

/** Replaces `Response`: body as text, without a stream. */
class PlainResponse {
  constructor(
    readonly body: string,
    readonly init: { readonly status: number; readonly headers: { 'Content-Type': string } },
  ) {}
}

const fetchApi = { Response: PlainResponse } as unknown as FetchAPI;

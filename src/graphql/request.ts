// GraphQL over HTTP, as far as it is not Yoga's: which requests are taken, and the types of their answers.
// @see https://graphql.github.io/graphql-over-http/draft/
import { hash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import type { GraphQLParams } from 'graphql-yoga';
import { rawQuery, unsupportedEncodingOf } from '../http/headers.ts';
import { decodeBody, isObject, readJson } from '../http/json.ts';
import { memoizeHeader, preferredType, prefersHtml } from '../http/representation.ts';
import { type AnswerType, answerTypes } from './encoding.ts';
import {
  badRequest,
  methodNotAllowed,
  notAcceptable,
  unsupportedEncoding,
  unsupportedType,
} from './errors.ts';

export const allow = 'GET, HEAD, POST, OPTIONS';

export interface GraphQLRequest {
  readonly method: 'GET' | 'POST';
  /** @throws HttpError 400 */
  readonly readParams: () => GraphQLParams;
  readonly answerType: AnswerType;
  readonly events: AcceptedEvents | undefined;
  /** Names everything that the answer depends on, but its type. */
  readonly key: string;
}

/** The media type for streams that `Accept` names, and whether it prefers it to the types of a single answer. */
export interface AcceptedEvents {
  readonly type: 'text/event-stream' | 'multipart/mixed';
  readonly isPreferred: boolean;
}

/** Characters of a text in a cache key; a longer one is there by its hash. */
const maxKeyLength = 4_096;

/**
 * A body must be JSON: a page of another origin cannot send it without a CORS preflight (CSRF protection), as it could
 * send the other types of forms.
 * @throws HttpError 405, 406, 415 or 400, in this order
 */
export function readRequest(request: FastifyRequest): GraphQLRequest {
  const method = isRead(request) ? 'GET' : 'POST';
  if (method !== request.method && request.method !== 'HEAD') {
    throw methodNotAllowed(request.method, allow);
  }
  const accepted = readAccept(request.headers.accept ?? '');
  const events = request.method === 'HEAD' ? undefined : accepted.events;
  const answerType = accepted.type ?? (events && 'application/json');
  if (!answerType) throw notAcceptable();
  const text = method === 'GET' ? rawQuery(request) : bodyOf(request);
  const readParams = () => (method === 'GET' ? readQueryString(text) : readObject(text));
  // The raw text: 1e400 is parsed as Infinity, which JSON would write as null.
  return { method, readParams, answerType, events, key: keyOf(`${method} ${text}`) };
}

/** Names a request in the cache by its text. */
export function keyOf(text: string): string {
  return text.length > maxKeyLength ? hash('sha256', text, 'base64url') : text;
}

export function isRead({ method }: FastifyRequest): boolean {
  return method === 'GET' || method === 'HEAD';
}

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

function bodyOf({ headers, body }: FastifyRequest): string {
  if (!/^application\/json[ \t]*(;|$)/i.test(headers['content-type'] ?? '')) {
    throw unsupportedType();
  }
  if (!(body instanceof Buffer) || body.length === 0) return '';
  const encoding = unsupportedEncodingOf(headers);
  if (encoding) throw unsupportedEncoding(encoding);
  // A parser may ignore a byte order mark. @see https://www.rfc-editor.org/rfc/rfc8259#section-8.1
  return decodeBody(body).replace(/^\ufeff/, '');
}

function readObject(text: string): GraphQLParams {
  const body = readJson(text, 'The body');
  if (isObject(body) && !Array.isArray(body)) return body;
  throw badRequest('The body must be one object: batches are not supported.');
}

const parameterNames = ['query', 'documentId', 'operationName', 'variables', 'extensions'];

/** Ignores parameters of others, such as those that trackers add to links. */
function readQueryString(text: string): GraphQLParams {
  const parameters: Record<string, unknown> = {};
  for (const [name, value] of new URLSearchParams(text)) {
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

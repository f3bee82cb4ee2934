// What a request asks of GraphQL; methods, types and bodies that are not taken.
import type { FastifyRequest } from 'fastify';
import { unsupportedEncodingOf } from '../http/headers.ts';
import { decodeBody, JsonInputError, readJson } from '../http/json.ts';
import {
  badRequest,
  methodNotAllowed,
  notAcceptable,
  persistedQueryNotSupported,
  unsupportedEncoding,
  unsupportedType,
} from './errors.ts';

export const allow = 'GET, HEAD, POST, OPTIONS';

/** What a request asks of GraphQL. */
export interface GraphQLRequest {
  readonly query: string;
  readonly operationName: string | undefined;
  readonly variables: Record<string, unknown>;
  readonly answerType: AnswerType;
  /** Names everything that the answer depends on. */
  readonly key: string;
}

export type AnswerType = 'application/json' | 'application/graphql-response+json';

/**
 * Reads a GraphQL request. A body has the one type that a page of another origin cannot send
 * without a preflight, so no page writes behind its visitor's back.
 * @throws HttpError 405, 406, 415 or 400, in this order; 200 for a persisted query
 */
export function readRequest(request: FastifyRequest): GraphQLRequest {
  if (!isRead(request) && request.method !== 'POST') throw methodNotAllowed(request.method, allow);
  const answerType = chooseType(request.headers.accept);
  if (!answerType) throw notAcceptable(request.headers.accept ?? '');
  try {
    const text = isRead(request) ? queryStringOf(request) : bodyOf(request);
    const parameters = isRead(request) ? readQueryString(text) : readBody(text);
    return checkParameters(parameters, answerType, `${isRead(request) ? 'GET' : 'POST'} ${text}`);
  } catch (error) {
    throw error instanceof JsonInputError ? badRequest(error.message) : error;
  }
}

export function isRead({ method }: FastifyRequest): boolean {
  return method === 'GET' || method === 'HEAD';
}

const answerTypes = new Map<string, AnswerType>([
  ['*/*', 'application/json'],
  ['application/*', 'application/json'],
  ['application/json', 'application/json'],
  ['application/graphql-response+json', 'application/graphql-response+json'],
]);

const pageTypes = new Map([['text/html', 'text/html']]);

/** By the weights of an `Accept` header; undefined when it takes neither type. */
export function chooseType(accept: string | undefined): AnswerType | undefined {
  if (!accept || accept === '*/*') return 'application/json';
  return heaviest(accept, answerTypes)?.type;
}

/** Whether an `Accept` header takes HTML rather than any type of an answer, as browsers do. */
export function prefersPage(accept = ''): boolean {
  const page = heaviest(accept, pageTypes);
  return page !== undefined && page.weight > (heaviest(accept, answerTypes)?.weight ?? 0);
}

/** The type with the greatest weight, the first of equals. Undefined: none has a weight over 0. */
function heaviest<Type>(accept: string, types: ReadonlyMap<string, Type>) {
  let best: { type: Type; weight: number } | undefined;
  for (const part of accept.toLowerCase().split(',')) {
    const [range = '', ...parameters] = part.split(';').map((piece) => piece.trim());
    const type = types.get(range);
    const weight = Number(parameters.find((piece) => piece.startsWith('q='))?.slice(2) ?? 1);
    if (type && weight > (best?.weight ?? 0)) best = { type, weight };
  }
  return best;
}

type Parameters = Record<string, unknown>;

const parameterNames = ['query', 'operationName', 'variables', 'extensions'];

/** What follows the first `?` of the request target, undecoded. */
export function queryStringOf({ url }: FastifyRequest): string {
  const start = url.indexOf('?');
  return start === -1 ? '' : url.slice(start + 1);
}

/** Parameters that are not of GraphQL do not matter: links collect them on their way. */
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
  return decodeBody(body);
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
  answerType: AnswerType,
  text: string,
): GraphQLRequest {
  const { query, operationName, variables, extensions } = parameters;
  if (query === undefined || query === null) {
    if (isRecord(extensions) && isRecord(extensions['persistedQuery'])) {
      throw persistedQueryNotSupported();
    }
    throw badRequest('The parameter query is missing.');
  }
  if (typeof query !== 'string') throw badRequest('The parameter query must be a string.');
  if (typeof (operationName ?? '') !== 'string') {
    throw badRequest('The parameter operationName must be a string.');
  }
  if (!isRecord(variables ?? {})) throw badRequest('The parameter variables must be an object.');
  if (!isRecord(extensions ?? {})) throw badRequest('The parameter extensions must be an object.');
  return {
    query,
    operationName: (operationName || undefined) as string | undefined,
    variables: (variables ?? {}) as Record<string, unknown>,
    answerType,
    // The text as it came: 1e400 is parsed as Infinity, which would be written as null.
    key: `${answerType} ${text}`,
  };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

// Errors of GraphQL for clients. Every other error is masked and logged.

import type { FastifyBaseLogger, FastifyInstance } from 'fastify';
import { type ASTNode, GraphQLError } from 'graphql';
import { httpErrorFor } from '../database/errors.ts';
import { cut, HttpError } from '../errors.ts';

const coded = (code: string) => (message: string, nodes?: ASTNode) =>
  new GraphQLError(message, { nodes: nodes ?? null, extensions: { code } });

export const badUserInput = coded('BAD_USER_INPUT');

/** @throws GraphQLError that names the argument of a number outside of the range */
export function requireRange(
  name: string,
  value: number | null | undefined,
  [least, most]: readonly [least: number, most?: number],
): number | undefined {
  if (value == null) return undefined;
  if (value >= least && value <= (most ?? value)) return value;
  const range = most === undefined ? `${least} or more` : `from ${least} to ${most}`;
  throw badUserInput(`${name} must be ${range}, but it is ${value}.`);
}

export const pageNotFound = coded('PAGE_NOT_FOUND');

export type LimitCode =
  | 'TOO_MANY_ALIASES'
  | 'TOO_MANY_DIRECTIVES'
  | 'TOO_MANY_REPEATS'
  | 'QUERY_TOO_DEEP'
  | 'QUERY_TOO_COSTLY'
  | 'VALUE_TOO_LARGE';

const refusedOperation = (status: number, code: string, message: string) =>
  new GraphQLError(message, { extensions: { code, http: { status } } });

/** `spec`: Yoga would give it 200 in application/json, as an error of validation. */
export const overLimit = (code: LimitCode, message: string) =>
  new GraphQLError(message, { extensions: { code, http: { spec: false, status: 400 } } });

/** Undefined: within the limit. */
export function exceeded(code: LimitCode, found: number, max: number, things: string) {
  if (found <= max) return undefined;
  const verb = code === 'QUERY_TOO_COSTLY' ? 'can give' : 'has';
  const count = Number.isFinite(found) ? found : 'countless';
  return overLimit(
    code,
    `The document ${verb} ${count} ${things}, but at most ${max} are allowed.`,
  );
}

const transports = (hasSockets: boolean) =>
  `Accept: text/event-stream${hasSockets ? ', or use a WebSocket with the subprotocol graphql-transport-ws' : ''}.`;

/** A handshake is not taken. */
const refusedSocket = (code: string, status: number, message: string, headers = {}) =>
  new HttpError(status, code, `This WebSocket cannot be opened: ${message}`, headers);

export const transportNotAvailable = (hasSockets: boolean) =>
  refusedSocket('TRANSPORT_NOT_AVAILABLE', 400, `send ${transports(hasSockets)}`);

const otherOrigin = 'CORS_ORIGINS does not name the origin of the page, and PUBLIC_URL is another.';
export const originNotAllowed = () => refusedSocket('FORBIDDEN', 403, otherOrigin);

export const tooManySockets = () =>
  refusedSocket('TOO_MANY_SOCKETS', 503, 'all are in use.', { 'Retry-After': '5' });

export const subscriptionNeedsStream = (hasSockets: boolean) =>
  refusedOperation(
    400,
    'SUBSCRIPTION_NEEDS_STREAM',
    `A subscription is answered as a stream: send ${transports(hasSockets)}`,
  );

export const subscriptionsNotSupported = () =>
  refusedOperation(
    400,
    'SUBSCRIPTIONS_NOT_SUPPORTED',
    'Subscriptions are not supported: send a query from time to time.',
  );

/** 400, but 200 for the legacy media type application/json. */
const invalid = { spec: true, status: 400 };

/** Cuts a message of graphql-js, which quotes names and values of any length. */
function abridge(message: string): string {
  return message.length > 500 ? `${message.slice(0, 300)} … ${message.slice(-150)}` : message;
}

export function invalidDocument(error: GraphQLError, code: string): GraphQLError {
  error.message = abridge(error.message);
  Object.assign(error.extensions, { code, http: invalid });
  return error;
}

/** An error of graphql-js about a variable; or about an argument, found while executing: it has a null inside, say. */
export function invalidArgument({ message, nodes, path }: GraphQLError): GraphQLError {
  // Without a path, nothing was executed.
  const extensions = { code: 'BAD_USER_INPUT', ...(path ? {} : { http: invalid }) };
  return new GraphQLError(abridge(message), {
    nodes: nodes ?? null,
    path: path ?? null,
    extensions,
  });
}

export const badRequest = (message: string) => new HttpError(400, 'BAD_REQUEST', message);

/** Status 200: with this message and code, a client of automatic persisted queries (APQ) retries with the text. */
export const persistedQueryNotFound = () =>
  new HttpError(200, 'PERSISTED_QUERY_NOT_FOUND', 'PersistedQueryNotFound', {
    'Cache-Control': 'no-store',
  });

export const documentNotFound = (id: string) =>
  new HttpError(400, 'DOCUMENT_NOT_FOUND', `There is no document with the id ${shorten(id)}.`);

export const documentMismatch = (id: string) =>
  new HttpError(
    400,
    'DOCUMENT_MISMATCH',
    `The query is not the document ${shorten(id)}: leave one of them out.`,
  );

export const documentNotTrusted = () =>
  new HttpError(
    403,
    'DOCUMENT_NOT_TRUSTED',
    'This document is not in the list of trusted documents.',
  );

const shorten = (id: string) => JSON.stringify(cut(id, 100));

export const notAcceptable = () =>
  new HttpError(
    406,
    'NOT_ACCEPTABLE',
    'The answer can be application/json or application/graphql-response+json; of a subscription text/event-stream. Accept names none of them.',
  );

export const methodNotAllowed = (method: string, allow: string) =>
  new HttpError(405, 'METHOD_NOT_ALLOWED', `Method ${method} is not allowed.`, { Allow: allow });

/** Masks an unexpected error, with the code of errors that the engine masks. */
export const internalError = () =>
  new HttpError(500, 'INTERNAL_SERVER_ERROR', 'Internal server error.');

/** Whether a client has left, so that no error reaches it. */
export const hasLeft = ({ aborted, reason }: AbortSignal) =>
  aborted && !(reason instanceof HttpError);

/** What a client is told of an error, whose cause is logged. */
export function toHttpError(app: FastifyInstance, log: FastifyBaseLogger, error: unknown) {
  const expected = httpErrorFor(error);
  if (!expected) log.error({ err: error }, 'unexpected error');
  const httpError = expected ?? internalError();
  app.logHttpError(log, httpError);
  return httpError;
}

export const answerTooLarge = (most: number) =>
  new HttpError(
    400,
    'ANSWER_TOO_LARGE',
    `It was executed, but its answer has more than ${most} characters: request fewer objects, or fewer of their texts.`,
  );

export const tooLarge = () => new HttpError(413, 'REQUEST_TOO_LARGE', 'Request body is too large.');

export const unsupportedEncoding = (encoding: string) =>
  new HttpError(
    415,
    'UNSUPPORTED_MEDIA_TYPE',
    `The body of a POST must not be encoded, but its Content-Encoding is "${encoding}".`,
  );

export const unsupportedType = () =>
  new HttpError(
    415,
    'UNSUPPORTED_MEDIA_TYPE',
    'The Content-Type of a POST must be application/json.',
  );

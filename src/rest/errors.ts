// Errors of REST with their bodies, and `send` for JSON answers without caching.
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { ExecutionResult, GraphQLError } from 'graphql';
import { httpErrorFor } from '../database/errors.ts';
import { encodeJson } from '../http/representation.ts';

export class RestError extends Error {
  constructor(
    readonly statusCode: number,
    readonly body: Readonly<Record<string, unknown>>,
  ) {
    super(JSON.stringify(body));
  }
}

const refusal = (status: number, detail: string) => new RestError(status, { detail });

export const notFound = () => refusal(404, 'Not found.');

export const pageNotFound = (message = 'Invalid page.') => refusal(404, message);

export const methodNotAllowed = (method: string) => refusal(405, `Method "${method}" not allowed.`);

export const notAcceptable = () => refusal(406, 'Could not satisfy the request Accept header.');

export const unsupportedMediaType = (type: string) =>
  refusal(415, `Unsupported media type "${type}" in request.`);

export const unsupportedEncoding = (encoding: string) =>
  refusal(415, `Unsupported content encoding "${encoding}" in request.`);

export const parseError = (format: 'Form' | 'JSON', reason: string) =>
  refusal(400, `${format} parse error - ${reason}`);

export const notAnObject = (value: unknown) =>
  new RestError(400, {
    non_field_errors: [
      value === null
        ? 'No data provided'
        : `Invalid data. Expected a dictionary, but got ${pythonTypeOf(value)}.`,
    ],
  });

function pythonTypeOf(value: unknown): string {
  if (Array.isArray(value)) return 'list';
  if (typeof value === 'number') return Number.isInteger(value) ? 'int' : 'float';
  return typeof value === 'boolean' ? 'bool' : 'str';
}

export const invalidFields = (messages: Readonly<Record<string, readonly string[]>>) =>
  new RestError(400, messages);

export const invalidParameter = (parameter: string, message: string) =>
  invalidFields({ [parameter]: [message] });

export const invalidChoice = (parameter: string, value: string, choices: readonly string[]) =>
  invalidParameter(
    parameter,
    `Select a valid choice. ${value} is not one of the available choices: ${choices.join(', ')}.`,
  );

/** What the schema says of a value, not a form. */
export const invalidValue = (parameter: string, fault: string) =>
  refusal(400, `${parameter} ${fault}`);

export const severalFields = (parameter: string, value: string) =>
  invalidParameter(
    parameter,
    `No list is sorted by ${value}: give one field, or one field and id in the same direction, such as -created,-id.`,
  );

export const internalError = () => refusal(500, 'Internal server error.');

export function dataOf<Data>({ data, errors }: ExecutionResult): Data {
  const [error] = errors ?? [];
  if (error) throw restErrorFor(error);
  return data as Data;
}

function restErrorFor(error: GraphQLError): Error {
  switch (error.extensions['code']) {
    case 'PAGE_NOT_FOUND':
      return pageNotFound();
    case 'NOT_FOUND':
      return notFound();
    case 'FORBIDDEN':
      return refusal(403, error.message);
    case 'BAD_USER_INPUT':
      // A parameter stands in no filter.
      return refusal(400, error.message.replace(/^filter\./, ''));
    // Masked; the log has the cause.
    case 'INTERNAL_SERVER_ERROR':
      return internalError();
    default:
      return error;
  }
}

/** Error handler of `app`. Call it before the routes are added. */
export function answerErrors(app: FastifyInstance): void {
  app.setErrorHandler<{ statusCode?: number }>((error, request, reply) => {
    if (error instanceof RestError) return sendError(reply, error);
    if (error.statusCode === 413) {
      return sendError(reply, refusal(413, 'Request body is too large.'));
    }
    if (error.statusCode === 415) {
      return sendError(reply, unsupportedMediaType(request.headers['content-type'] ?? ''));
    }
    // The body does not match its Content-Length, or its transfer coding is invalid.
    if (error.statusCode === 400) {
      return sendError(reply, refusal(400, 'The request body cannot be read.'));
    }
    const httpError = httpErrorFor(error);
    if (httpError) {
      app.logHttpError(request.log, httpError);
      const { headers, message: detail, status } = httpError;
      return send(reply.headers(headers), status, { detail });
    }
    request.log.error({ err: error }, 'unexpected error');
    return sendError(reply, internalError());
  });
}

export function send(reply: FastifyReply, statusCode: number, body: unknown): FastifyReply {
  return reply.code(statusCode).header('Content-Type', 'application/json').send(encodeJson(body));
}

export function sendError(reply: FastifyReply, { statusCode, body }: RestError): FastifyReply {
  return send(reply, statusCode, body);
}

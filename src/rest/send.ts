// How an answer of REST is sent, an error too: JSON, and no charset in its type.
import type { FastifyInstance, FastifyReply } from 'fastify';
import { httpErrorFor } from '../database/errors.ts';
import { encodeJson } from '../http/json.ts';
import {
  bodyTooLarge,
  internalError,
  RestError,
  unreadableBody,
  unsupportedMediaType,
} from './errors.ts';

/** Answers whatever the routes of `app` throw; to be called before they are added. */
export function answerErrors(app: FastifyInstance): void {
  app.setErrorHandler<{ statusCode?: number }>((error, request, reply) => {
    if (error instanceof RestError) return sendError(reply, error);
    if (error.statusCode === 413) return sendError(reply, bodyTooLarge());
    if (error.statusCode === 415) {
      return sendError(reply, unsupportedMediaType(request.headers['content-type'] ?? ''));
    }
    if (error.statusCode === 400) return sendError(reply, unreadableBody());
    const httpError = httpErrorFor(error);
    if (httpError) {
      app.logHttpError(request.log, httpError);
      return send(reply.headers(httpError.headers), httpError.status, {
        detail: httpError.message,
      });
    }
    request.log.error({ err: error }, 'unexpected error');
    return sendError(reply, internalError());
  });
}

export function send(reply: FastifyReply, statusCode: number, body: unknown): FastifyReply {
  return reply.code(statusCode).header('Content-Type', 'application/json').send(encodeJson(body));
}

function sendError(reply: FastifyReply, { statusCode, body }: RestError): FastifyReply {
  return send(reply, statusCode, body);
}

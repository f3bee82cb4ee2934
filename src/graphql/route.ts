// /graphql over HTTP: methods, types and bodies; the answer as bytes with its status and tag.
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { ExecutionResult } from 'graphql';
import { processRegularResult } from 'graphql-yoga';
import type { Admit } from '../admission/admission.ts';
import type { Viewer } from '../admission/viewer.ts';
import type { Answer } from '../cache/answer-cache.ts';
import type { Config } from '../config.ts';
import { httpErrorFor } from '../database/errors.ts';
import type { HttpError } from '../errors.ts';
import { entityTag, sendIfUnchanged } from '../http/etag.ts';
import type { Asker, Engine } from './engine.ts';
import { badRequest, tooLarge, unsupportedType } from './errors.ts';
import { createGraphiQL } from './graphiql.ts';
import {
  type AnswerType,
  allow,
  chooseType,
  isRead,
  prefersPage,
  queryStringOf,
  readRequest,
} from './request.ts';

export interface GraphQLOptions {
  readonly engine: Engine;
  readonly admit: Admit;
  readonly askerOf: (request: FastifyRequest, viewer: Viewer | undefined) => Asker;
  readonly config: Pick<Config, 'graphiql'>;
}

const path = '/graphql';

/** Serves GraphQL over HTTP, and GraphiQL to browsers, at `/graphql`. */
export async function serveGraphQL(app: FastifyInstance, options: GraphQLOptions): Promise<void> {
  const { engine, admit, askerOf, config } = options;
  const sendGraphiQL = createGraphiQL();

  // Bodies are read in request.ts, which knows the answer to the types that are not taken.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));

  app.setErrorHandler<Error & { statusCode?: number }>((error, request, reply) => {
    const httpError = httpErrorFor(error) ?? bodyErrorFor(error);
    if (!httpError) {
      request.log.error({ err: error }, 'unexpected error');
      return reply.code(500).send({ errors: [{ message: 'Internal server error.' }] });
    }
    const { code, headers, message, status } = httpError;
    app.logHttpError(request.log, httpError);
    return reply
      .code(status)
      .headers(headers)
      .type(`${errorType(httpError, request.headers.accept)}; charset=utf-8`)
      .send({ errors: [{ message, extensions: { code } }] });
  });

  app.route({
    method: app.supportedMethods,
    url: path,
    // Before the body is read, which may be large, and slow to come.
    onRequest: async (request, reply) => {
      reply.header('Vary', 'Accept');
      request.viewer = await admit(request);
    },
    handler: async (request, reply) => {
      if (request.method === 'OPTIONS') return reply.code(204).header('Allow', allow).send();
      if (config.graphiql && isRead(request) && prefersPage(request.headers.accept)) {
        return sendGraphiQL(request, reply);
      }
      const asker = askerOf(request, request.viewer);
      const answer = await answerRequest(engine, request, asker);
      const { status, contentType, body, shareable } = answer;
      if (status === 405) reply.header('Allow', 'POST');
      if (isRead(request) && status === 200) {
        answer.tag ??= entityTag(body);
        if (sendIfUnchanged(request, reply, answer.tag, shareable)) return reply;
      }
      return reply.code(status).header('Content-Type', contentType).send(body);
    },
  });

  app.route({
    method: app.supportedMethods,
    url: `${path}/`,
    onRequest: async (request, reply) => {
      const query = queryStringOf(request);
      return reply.redirect(`${path}${query && `?${query}`}`, 308);
    },
    handler: () => {},
  });
}

/** What Fastify finds wrong with a body, in our own words. Undefined: it is nothing of the kind. */
function bodyErrorFor({ statusCode = 500 }: { statusCode?: number }): HttpError | undefined {
  if (statusCode === 413) return tooLarge();
  if (statusCode === 415) return unsupportedType();
  if (statusCode < 500) return badRequest('The body is not as long as Content-Length says.');
  return undefined;
}

/**
 * Clients read the code of an error only in the type of GraphQL that they prefer: in JSON, a status
 * of 400 and more is a failure of the network to them. That is what the links of clients that send
 * again after 429 and 503 wait for, and those that send batches, as one error answers no batch.
 */
function errorType({ code, status }: HttpError, accept: string | undefined): AnswerType {
  if (code === 'BAD_REQUEST' || status === 429 || status === 503) return 'application/json';
  return chooseType(accept) ?? 'application/json';
}

/** An answer as bytes. */
interface HttpAnswer extends Answer {
  readonly status: number;
  readonly contentType: string;
  readonly body: Buffer;
  /** Made when it is first asked for: only GET is. */
  tag?: string;
}

async function answerRequest(
  engine: Engine,
  request: FastifyRequest,
  asker: Asker,
): Promise<HttpAnswer> {
  const { query, operationName, variables, answerType, key } = readRequest(request);
  const operation = engine.find(query, operationName, isRead(request));
  if ('errors' in operation) return toAnswer(operation, answerType, false);
  request.operationName = operation.name;
  const toTypedAnswer = (result: ExecutionResult, isForAll: boolean) =>
    toAnswer(result, answerType, isForAll);
  return engine.answer({ operation, variables, key, toAnswer: toTypedAnswer }, asker);
}

/** A response as yoga makes it, but without the streams of a real one. */
class PlainResponse {
  readonly body: string;
  readonly status: number;
  readonly contentType: string;

  constructor(body: string, { status, headers }: { status: number; headers: ContentType }) {
    this.body = body;
    this.status = status;
    this.contentType = headers['Content-Type'];
  }
}

interface ContentType {
  readonly 'Content-Type': string;
}

/** Yoga knows which status an error has for which type: GraphQL over HTTP. */
function toAnswer(result: ExecutionResult, answerType: AnswerType, isForAll: boolean): HttpAnswer {
  const fetchApi = { Response: PlainResponse } as unknown as Parameters<
    typeof processRegularResult
  >[1];
  const response = processRegularResult(result as never, fetchApi, answerType);
  const { body: text, status, contentType } = response as unknown as PlainResponse;
  const body = Buffer.from(text);
  const shareable = isForAll && result.errors === undefined;
  return { status, contentType, body, size: body.length, shareable };
}

// /graphql over HTTP: methods, types and bodies; the answer as bytes with its status and tag.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { ExecutionResult, GraphQLSchema } from 'graphql';
import { type Admit, type OperationCaller, RequestCaller } from '../admission/admission.ts';
import type { Config } from '../config.ts';
import type { StateSource } from '../database/changes/snapshots.ts';
import { httpErrorFor } from '../database/errors.ts';
import type { HttpError } from '../errors.ts';
import type { EventStreams } from '../http/event-stream.ts';
import {
  type Compressible,
  entityTag,
  selectRepresentation,
  sendRepresentation,
} from '../http/representation.ts';
import type { DocumentStore } from './documents.ts';
import type { Answer } from './engine/answer-cache.ts';
import type { Engine } from './engine/engine.ts';
import { countObjects, type LimitConfig } from './engine/limits.ts';
import type { Invalid, Operation } from './engine/operations.ts';
import {
  badRequest,
  internalError,
  subscriptionNeedsStream,
  tooLarge,
  unsupportedType,
} from './errors.ts';
import { answerWithEvents } from './live/events.ts';
import { LiveAnswers } from './live/live.ts';
import {
  type AnswerType,
  allow,
  chooseType,
  createRequestReader,
  encodeResult,
  type GraphQLRequest,
  isRead,
  prefersPage,
  queryStringOf,
} from './request.ts';
import { serveSdl } from './sdl.ts';

export interface GraphQLOptions {
  readonly schema: GraphQLSchema;
  readonly engine: Engine;
  readonly documents: DocumentStore;
  readonly admit: Admit;
  readonly config: Pick<Config, 'compression' | 'expensiveQueryTimeout' | 'graphiql'> & LimitConfig;
  readonly snapshots: StateSource;
  readonly streams: EventStreams;
  readonly sendPage?:
    | ((request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>)
    | undefined;
}

const path = '/graphql';

export async function serveGraphQL(app: FastifyInstance, options: GraphQLOptions): Promise<void> {
  const { schema, engine, admit, config, documents, snapshots, streams, sendPage } = options;
  const live = new LiveAnswers(engine, snapshots, app.log, config.expensiveQueryTimeout * 1000);
  const readRequest = createRequestReader();
  const compresses = config.compression !== 'off';
  if (config.graphiql && config.graphqlIntrospection) {
    serveSdl(app, schema, admit, compresses);
  }

  // Bodies are read in request.ts, which knows the answer to the types that are not taken.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));

  app.setErrorHandler<Error & { statusCode?: number }>((error, request, reply) => {
    const expected = httpErrorFor(error) ?? bodyErrorFor(error);
    if (!expected) request.log.error({ err: error }, 'unexpected error');
    const httpError = expected ?? internalError();
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
      reply.header('Vary', compresses ? 'Accept, Accept-Encoding' : 'Accept');
      request.viewer = await admit(request);
    },
    handler: async (request, reply) => {
      if (request.method === 'OPTIONS') return reply.code(204).header('Allow', allow).send();
      if (sendPage && isRead(request) && prefersPage(request.headers.accept)) {
        return sendPage(request, reply);
      }
      const caller = new RequestCaller(request);
      const asked = readRequest(request);
      const operation = engine.operations.find(
        documents.textOf(asked.reference),
        asked.operationName,
        isRead(request),
      );
      if (!('errors' in operation)) documents.register(asked.reference);
      // GraphiQL asks for it. Other answers are as they are.
      if (config.graphiql && request.headers['graphql-cost'] && !('errors' in operation)) {
        const objects = countObjects(schema, config, operation, asked.variables);
        if (objects !== undefined) {
          reply.header('GraphQL-Cost', `${objects};max=${config.graphqlMaxCost}`);
        }
      }
      const isLive = 'isLive' in operation && operation.isLive;
      if (asked.events === 'preferred' || (asked.events && isLive)) {
        const means = { engine, live, streams };
        return answerWithEvents(means, request, reply, operation, asked, caller);
      }
      const answer = await answerRequest(engine, operation, asked, request, caller);
      const { status, contentType, body, shareable } = answer;
      if (status === 405) reply.header('Allow', 'POST');
      const form = await selectRepresentation(answer, request, compresses && shareable);
      const isCacheable = isRead(request) && status === 200;
      if (isCacheable) answer.tag ??= entityTag(body);
      const tag = isCacheable ? answer.tag : undefined;
      return sendRepresentation(request, reply.code(status), form, { contentType, tag, shareable });
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

function bodyErrorFor({ statusCode = 500 }: { statusCode?: number }): HttpError | undefined {
  if (statusCode === 413) return tooLarge();
  if (statusCode === 415) return unsupportedType();
  if (statusCode < 500) return badRequest('The body is not as long as Content-Length says.');
  return undefined;
}

/** Clients send again after 429 and 503 in JSON only, and no single error answers a batch. */
function errorType({ code, status }: HttpError, accept: string | undefined): AnswerType {
  if (code === 'BAD_REQUEST' || status === 429 || status === 503) return 'application/json';
  return chooseType(accept) ?? 'application/json';
}

interface HttpAnswer extends Answer, Compressible {
  readonly status: number;
  readonly contentType: string;
  /** Made when it is first asked for: only GET is. */
  tag?: string;
}

async function answerRequest(
  engine: Engine,
  operation: Operation | Invalid,
  { variables, answerType, key }: GraphQLRequest,
  request: FastifyRequest,
  caller: OperationCaller,
): Promise<HttpAnswer> {
  if ('errors' in operation) return toAnswer(operation, answerType, false);
  if (operation.isLive) {
    return toAnswer({ errors: [subscriptionNeedsStream()] }, answerType, false);
  }
  request.operationName = operation.name;
  const toTypedAnswer = (result: ExecutionResult, isShared: boolean) =>
    toAnswer(result, answerType, isShared);
  const execution = { operation, variables, key, toAnswer: toTypedAnswer };
  return (await engine.answer(execution, caller)).answer;
}

function toAnswer(result: ExecutionResult, answerType: AnswerType, isShared: boolean): HttpAnswer {
  const encoded = encodeResult(result, answerType);
  const shareable = isShared && result.errors === undefined;
  // With room for its compressed forms.
  return { ...encoded, size: 2 * encoded.body.length, shareable };
}

// The endpoint /graphql. @see https://graphql.github.io/graphql-over-http/draft/
import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { ExecutionResult, GraphQLSchema } from 'graphql';
import { type Admit, RequestCaller } from '../admission/admission.ts';
import type { Config } from '../config.ts';
import type { StateSource } from '../database/changes/snapshots.ts';
import { httpErrorFor } from '../database/errors.ts';
import { HttpError } from '../errors.ts';
import { requireHost } from '../http/base-url.ts';
import { type EventStream, type EventStreams, sendEvents } from '../http/event-stream.ts';
import { type Representable, sendRepresentation } from '../http/representation.ts';
import { asksForWebSocket } from '../http/server/upgrades.ts';
import type { Answer, Reading } from './engine/answer-cache.ts';
import type { Engine } from './engine/engine.ts';
import type { LimitConfig } from './engine/limits.ts';
import {
  badRequest,
  internalError,
  tooLarge,
  transportNotAvailable,
  unsupportedType,
} from './errors.ts';
import { openLive, sendSingle, toLive, toRefusal, writeCanonical } from './live/events.ts';
import { formats, socketMessages } from './live/formats.ts';
import { LiveAnswers } from './live/live.ts';
import type { LiveAnswer } from './live/live-feed.ts';
import { type Encoding, Run } from './operation.ts';
import {
  type AcceptedEvents,
  type AnswerType,
  allow,
  chooseType,
  encodeResult,
  type GraphQLRequest,
  isRead,
  prefersPage,
  queryStringOf,
  readRequest,
} from './request.ts';
import { serveSdl } from './sdl.ts';
import type { SocketConfig, Sockets } from './sockets/sockets.ts';

export interface GraphQLOptions {
  readonly schema: GraphQLSchema;
  readonly engine: Engine;
  readonly admit: Admit;
  readonly config: Pick<Config, 'compression' | 'expensiveQueryTimeout' | 'graphiql'> &
    (LimitConfig & SocketConfig);
  readonly snapshots: StateSource;
  readonly streams: EventStreams;
  readonly sendPage?:
    | ((request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>)
    | undefined;
}

const path = '/graphql';

/** Adds the routes of /graphql, and of the SDL if introspection is on. */
export async function serveGraphQL(app: FastifyInstance, options: GraphQLOptions): Promise<void> {
  const { schema, admit, config } = options;
  const room = config.maxSockets > 0 ? await import('./sockets/sockets.ts') : undefined;
  const sockets = room && new room.Sockets(app, path, config);
  const endpoint = new GraphQLEndpoint(options, sockets, app.log);
  const compresses = config.compression !== 'off';
  if (config.graphiql && config.graphqlIntrospection) serveSdl(app, schema, admit, compresses);

  // Bodies are parsed in request.ts, which knows the errors of unsupported types.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  app.setErrorHandler<Error & { statusCode?: number }>((error, request, reply) =>
    sendError(app, error, request, reply),
  );
  app.route({
    method: app.supportedMethods,
    url: path,
    // Before the body is read, which may be large and slow.
    onRequest: async (request, reply) => {
      reply.header('vary', compresses ? 'Accept, Accept-Encoding' : 'Accept');
      requireHost(request);
      request.viewer = await admit(request, reply);
    },
    handler: (request, reply) => endpoint.handle(request, reply),
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

/** Handles admitted requests: from memory or by Yoga, with one answer or a stream of events. */
class GraphQLEndpoint {
  readonly #live: LiveAnswers;

  constructor(
    private readonly options: GraphQLOptions,
    private readonly sockets: Sockets | undefined,
    log: FastifyBaseLogger,
  ) {
    const { engine, snapshots, config } = options;
    this.#live = new LiveAnswers(engine, snapshots, log, config.expensiveQueryTimeout);
  }

  async handle(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    if (request.method === 'OPTIONS') return reply.code(204).header('Allow', allow).send();
    const { sendPage } = this.options;
    if (asksForWebSocket(request)) {
      if (!this.sockets) throw transportNotAvailable(false);
      return this.sockets.open(request, reply);
    }
    if (sendPage && isRead(request) && prefersPage(request.headers.accept)) {
      return sendPage(request, reply);
    }
    const asked = readRequest(request);
    if (asked.events) return this.#answerWithEvents(request, reply, asked, asked.events);
    const run = new Run(toTyped(asked), new RequestCaller(request));
    return this.#send(request, reply, await this.#serve(request, asked, run));
  }

  async #serve<Value extends Answer>(
    request: FastifyRequest,
    { sent }: GraphQLRequest,
    run: Run,
  ): Promise<Reading<Value>> {
    try {
      return await this.options.engine.serve(run, sent);
    } finally {
      request.operationName = run.found.reading?.operationName ?? run.operation?.name;
    }
  }

  #send(
    request: FastifyRequest,
    reply: FastifyReply,
    { answer, cost }: Reading<HttpAnswer>,
  ): Promise<FastifyReply> {
    const { config } = this.options;
    // For GraphiQL, which asks for it by a header.
    if (cost && config.graphiql && request.headers['graphql-cost']) {
      reply.header('GraphQL-Cost', `${cost.objects};max=${config.graphqlMaxCost}`);
    }
    const compresses = config.compression !== 'off';
    return sendRepresentation(request, reply.code(answer.status), answer, compresses);
  }

  /** A subscription with a stream; another operation too, with its single result, if the client prefers events. */
  async #answerWithEvents(
    request: FastifyRequest,
    reply: FastifyReply,
    asked: GraphQLRequest,
    { type, isPreferred }: AcceptedEvents,
  ): Promise<FastifyReply> {
    const { engine, streams } = this.options;
    const format = request.deliverEvents ? socketMessages : formats[type];
    const eventOptions = { engine, live: this.#live, streams, format };
    let stream: EventStream | undefined;
    const caller = new RequestCaller(request);
    const key = `events ${asked.key || writeCanonical(request.body)}`;
    const run = new Run(isPreferred ? { key, toAnswer: toLive } : toTyped(asked), caller);
    run.subscribe = async (operation, variables) => {
      stream = await openLive(eventOptions, request, operation, variables, caller);
    };
    try {
      const reading = await this.#serve(request, asked, run);
      if (stream) return sendEvents(request, reply, format, stream);
      if (!isPreferred) return this.#send(request, reply, reading as Reading<HttpAnswer>);
      return sendSingle(request, reply, format, reading.answer as LiveAnswer);
    } catch (error) {
      // What an operation is refused for is its result, so that clients do not repeat it.
      if (!isPreferred || !run.operation || run.operation.isLive) throw error;
      return sendSingle(request, reply, format, toRefusal(error));
    }
  }
}

const toTyped = ({ answerType, key }: GraphQLRequest): Encoding<HttpAnswer> => ({
  key: `${answerType} ${key}`,
  toAnswer: (result, isShared) => toAnswer(result, answerType, isShared),
});

function sendError(
  app: FastifyInstance,
  error: Error & { statusCode?: number },
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  const { aborted, reason } = request.signal;
  if (aborted && !(reason instanceof HttpError)) {
    // Nobody is answered, so nothing is counted or logged.
    reply.hijack().raw.destroy();
    return reply;
  }
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
}

function bodyErrorFor({ statusCode = 500 }: { statusCode?: number }): HttpError | undefined {
  if (statusCode === 413) return tooLarge();
  if (statusCode === 415) return unsupportedType();
  if (statusCode < 500) return badRequest('The body is not as long as Content-Length says.');
  return undefined;
}

/** Clients retry after 429 and 503 only if they are JSON; a refused batch cannot be in the type of one result. */
function errorType({ code, status }: HttpError, accept: string | undefined): AnswerType {
  if (code === 'BAD_REQUEST' || status === 429 || status === 503) return 'application/json';
  return chooseType(accept) ?? 'application/json';
}

interface HttpAnswer extends Answer, Representable {
  readonly status: number;
  readonly shareable: boolean;
}

function toAnswer(result: ExecutionResult, answerType: AnswerType, isShared: boolean): HttpAnswer {
  const encoded = encodeResult(result, answerType);
  const shareable = isShared && result.errors === undefined;
  // Includes its compressed representations.
  return { ...encoded, size: 2 * encoded.body.length, shareable };
}

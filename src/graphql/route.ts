// The endpoint /graphql. @see https://graphql.github.io/graphql-over-http/draft/
import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { ExecutionResult, GraphQLSchema } from 'graphql';
import { type Admit, type OperationCaller, RequestCaller } from '../admission/admission.ts';
import type { Config } from '../config.ts';
import type { StateSource } from '../database/changes/snapshots.ts';
import { httpErrorFor } from '../database/errors.ts';
import { takeTurn } from '../database/turns.ts';
import { HttpError } from '../errors.ts';
import { requireHost } from '../http/base-url.ts';
import type { EventStreams } from '../http/event-stream.ts';
import { type Representable, sendRepresentation } from '../http/representation.ts';
import { asksForWebSocket } from '../http/server/upgrades.ts';
import type { DocumentStore } from './documents.ts';
import type { Answer } from './engine/answer-cache.ts';
import type { Cost } from './engine/cost.ts';
import type { Engine } from './engine/engine.ts';
import type { LimitConfig } from './engine/limits.ts';
import type { Operation } from './engine/operations.ts';
import {
  badRequest,
  internalError,
  subscriptionNeedsStream,
  tooLarge,
  transportNotAvailable,
  unsupportedType,
} from './errors.ts';
import { answerWithEvents } from './live/events.ts';
import { formats, socketLines } from './live/formats.ts';
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
import type { SocketConfig, Sockets } from './sockets/sockets.ts';
import type { Invalid } from './yoga.ts';

export interface GraphQLOptions {
  readonly schema: GraphQLSchema;
  readonly engine: Engine;
  readonly documents: DocumentStore;
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
/** Fields that parsing and validating a document takes about as long as. */
const parsing = 200;

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

/** Handles admitted requests: reads the request, finds its operation, and sends one answer or a stream of events. */
class GraphQLEndpoint {
  readonly #readRequest = createRequestReader();
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
    const { config, engine, documents, streams, sendPage } = this.options;
    if (asksForWebSocket(request)) {
      if (!this.sockets) throw transportNotAvailable(false);
      return this.sockets.open(request, reply);
    }
    if (sendPage && isRead(request) && prefersPage(request.headers.accept)) {
      return sendPage(request, reply);
    }
    const parsed = this.#readRequest(request);
    const caller = new RequestCaller(request, parsed.idempotencyKey);
    const text = documents.textOf(parsed.reference);
    if (!engine.isKnown(text)) await takeTurn(parsing, { sender: caller.sender });
    const operation = engine.find(text, parsed.operationName, isRead(request) ? 'GET' : 'POST');
    if (!('errors' in operation)) {
      documents.register(parsed.reference);
    }
    const isLive = 'isLive' in operation && operation.isLive;
    if (parsed.events?.isPreferred || (parsed.events && isLive)) {
      const format = request.deliverEvents ? socketLines : formats[parsed.events.type];
      const eventOptions = { engine, live: this.#live, streams, format };
      return answerWithEvents(eventOptions, request, reply, operation, parsed, caller);
    }
    const { answer, cost } = await this.#answer(operation, parsed, request, caller);
    if (cost) this.#addCost(request, reply, cost);
    if (answer.status === 405) reply.header('Allow', 'POST');
    const compresses = config.compression !== 'off';
    return sendRepresentation(request, reply.code(answer.status), answer, compresses);
  }

  /** For GraphiQL, which asks for it by a header. */
  #addCost(request: FastifyRequest, reply: FastifyReply, { objects }: Cost): void {
    const { config } = this.options;
    if (!config.graphiql || !request.headers['graphql-cost']) return;
    reply.header('GraphQL-Cost', `${objects};max=${config.graphqlMaxCost}`);
  }

  async #answer(
    operation: Operation | Invalid,
    { variables, answerType, key }: GraphQLRequest,
    request: FastifyRequest,
    caller: OperationCaller,
  ): Promise<{ readonly answer: HttpAnswer; readonly cost?: Cost | undefined }> {
    const { engine } = this.options;
    if ('errors' in operation) {
      const result = await engine.refuse(operation, caller);
      return { answer: toAnswer(result, answerType, false) };
    }
    if (operation.isLive) {
      const errors = [subscriptionNeedsStream(this.sockets !== undefined)];
      return { answer: toAnswer({ errors }, answerType, false) };
    }
    request.operationName = operation.name;
    const toTypedAnswer = (result: ExecutionResult, isShared: boolean) =>
      toAnswer(result, answerType, isShared);
    const execution = { operation, variables, key, toAnswer: toTypedAnswer };
    return engine.answer(execution, caller);
  }
}

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

// The endpoint /graphql. @see https://graphql.github.io/graphql-over-http/draft/
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { GraphQLSchema } from 'graphql';
import { RequestCaller } from '../admission/admission.ts';
import type { Config } from '../config/config.ts';
import { httpErrorFor } from '../database/errors.ts';
import { HttpError } from '../errors.ts';
import { requireHost } from '../http/addresses.ts';
import { rawQuery } from '../http/headers.ts';
import { bytesOfHead } from '../http/places.ts';
import { sendRepresentation } from '../http/representation.ts';
import { asksForWebSocket } from '../http/server/server.ts';
import {
  type AnswerType,
  type EncodedAnswer,
  encodingOf,
  eventType,
  refusalOf,
} from './encoding.ts';
import {
  badRequest,
  toHttpError,
  tooLarge,
  transportNotAvailable,
  unsupportedType,
} from './errors.ts';
import { formats, sendEvents } from './live/formats.ts';
import type { LiveStreams } from './live/live-stream.ts';
import type { LimitConfig } from './plugins/cost.ts';
import { allow, chooseType, isRead, prefersPage, readRequest } from './request.ts';
import { Run } from './run.ts';
import { serveSdl } from './sdl.ts';
import type { SocketOptions, Sockets } from './sockets/sockets.ts';

export interface GraphQLOptions extends SocketOptions {
  readonly schema: GraphQLSchema;
  readonly config: SocketOptions['config'] & Pick<Config, 'compression' | 'graphiql'> & LimitConfig;
  readonly streams: LiveStreams;
  readonly sendPage?:
    | ((request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>)
    | undefined;
}

const path = '/graphql';

/** Adds the routes of /graphql, and of the SDL if introspection is on. */
export async function serveGraphQL(app: FastifyInstance, options: GraphQLOptions): Promise<void> {
  const { schema, admit, config } = options;
  const room = config.maxSockets > 0 ? await import('./sockets/sockets.ts') : undefined;
  const sockets = room && new room.Sockets(app, path, options);
  app.addHook('preClose', async () => {
    sockets?.drain();
    options.streams.close();
  });
  const endpoint = new GraphQLEndpoint(options, sockets);
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
      const query = rawQuery(request);
      return reply.redirect(`${path}${query && `?${query}`}`, 308);
    },
    handler: () => {},
  });
}

/** Handles admitted requests: from memory or by Yoga, with one answer or a stream of events. */
class GraphQLEndpoint {
  constructor(
    private readonly options: GraphQLOptions,
    private readonly sockets: Sockets | undefined,
  ) {}

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
    return this.#answer(request, reply);
  }

  /** A subscription with a stream; another operation too, with its single result, if the client prefers events. */
  async #answer(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { config, engine, live } = this.options;
    const { method, readParams, answerType, events, key } = readRequest(request);
    const format = events && formats[events.type];
    const isPreferred = events?.isPreferred ?? false;
    const caller = new RequestCaller(request);
    const run = new Run(encodingOf(isPreferred ? eventType : answerType, key), caller);
    if (format) {
      run.openLive = (operation, variables) => {
        // Nothing of the request is kept as long as the stream but its head.
        request.body = undefined;
        const bytes = bytesOfHead(request.raw);
        return live.open(operation, variables, caller, format.transport, bytes);
      };
    }
    try {
      const serving = engine.serve<EncodedAnswer>(run, method, readParams);
      // Before the answer is sent, and counted.
      const { answer, cost } = await serving.finally(() => {
        request.operationName = run.operationName;
      });
      if (format && (run.answers || isPreferred)) {
        return sendEvents(request, reply, format, run.answers ?? answer);
      }
      // For GraphiQL, which asks for it by a header.
      if (cost && config.graphiql && request.headers['graphql-cost']) {
        reply.header('GraphQL-Cost', `${cost.objects};max=${config.graphqlMaxCost}`);
      }
      const compresses = config.compression !== 'off';
      return await sendRepresentation(request, reply.code(answer.status), answer, compresses);
    } catch (error) {
      // What an operation is refused for is its result, so that clients do not repeat it.
      const isResult = format && isPreferred && run.operation && !run.operation.isLive;
      const refused = isResult && httpErrorFor(error);
      if (!refused || refused.status >= 500) throw error;
      return sendEvents(request, reply, format, refusalOf(refused));
    }
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
  const httpError = toHttpError(app, request.log, bodyErrorFor(error) ?? error);
  const { code, headers, message, status } = httpError;
  return reply
    .code(status)
    .headers(headers)
    .type(`${errorType(httpError, request.headers.accept)}; charset=utf-8`)
    .send({ errors: [{ message, extensions: { code } }] });
}

/** Of Fastify, about the body. */
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

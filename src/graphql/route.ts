// The endpoint /graphql: which requests are taken, the types of their answers, and the SDL.
// @see https://graphql.github.io/graphql-over-http/draft/
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { GraphQLSchema } from 'graphql';
import type { GraphQLParams } from 'graphql-yoga';
import { type Admit, RequestCaller } from '../admission/admission.ts';
import type { Config } from '../config/config.ts';
import { httpErrorFor } from '../database/errors.ts';
import { takeTurnToParse } from '../database/turns.ts';
import type { HttpError } from '../errors.ts';
import { bytesOfHead, rawQuery, requireHost, unsupportedEncodingOf } from '../http/headers.ts';
import {
  decodeBody,
  isObject,
  memoizeHeader,
  preferredType,
  prefersHtml,
  type Representable,
  readJson,
  sendRepresentation,
} from '../http/representation.ts';
import { asksForWebSocket } from '../http/server/server.ts';
import {
  badRequest,
  hasLeft,
  methodNotAllowed,
  notAcceptable,
  toHttpError,
  tooLarge,
  transportNotAvailable,
  unsupportedEncoding,
  unsupportedType,
} from './errors.ts';
import { sendEvents } from './live/events.ts';
import { LiveStream, type LiveStreams } from './live/live-stream.ts';
import type { LimitConfig } from './plugins/cost.ts';
import {
  type AnswerType,
  answerTypes,
  type EncodedAnswer,
  encodingOf,
  eventType,
  Run,
  refusalOf,
} from './run.ts';
import { printSdl } from './schema.ts';
import type { SocketOptions } from './sockets/sockets.ts';

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
  const { schema, admit, config, sendPage } = options;
  const room = config.maxSockets > 0 ? await import('./sockets/sockets.ts') : undefined;
  const sockets = room?.createSockets(app, path, options);
  app.addHook('preClose', async () => {
    sockets?.drain();
    options.streams.close();
  });
  const compresses = config.compression !== 'off';
  if (config.graphiql && config.graphqlIntrospection) serveSdl(app, schema, admit, compresses);

  // Bodies are parsed by `readRequest`, which knows the errors of unsupported types.
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
      const admitted = admit(request, reply);
      if (admitted) request.viewer = await admitted;
    },
    handler: (request, reply) => {
      if (request.method === 'OPTIONS') return reply.code(204).header('Allow', allow).send();
      if (asksForWebSocket(request)) {
        if (!sockets) throw transportNotAvailable(false);
        return sockets.open(request, reply);
      }
      if (sendPage && isRead(request) && prefersHtml(request.headers.accept, answerTypes)) {
        return sendPage(request, reply);
      }
      return answerOperation(options, request, reply);
    },
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

/** A subscription with a stream; another operation too, with its single result, if the client prefers events. */
async function answerOperation(
  { config, engine, live }: GraphQLOptions,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { method, readParams, answerType, acceptsEvents, prefersEvents, key } =
    readRequest(request);
  const caller = new RequestCaller(request);
  const run = new Run(encodingOf(prefersEvents ? eventType : answerType, key), caller);
  if (acceptsEvents) {
    run.openLive = (operation, variables) => {
      // Nothing of the request is kept as long as the stream but its head.
      request.body = undefined;
      const bytes = bytesOfHead(request.raw);
      return live.open(operation, variables, caller, 'sse', bytes);
    };
  }
  try {
    // Others have their turn before the next one is parsed.
    const turn = takeTurnToParse(key.length, caller);
    if (turn) await turn;
    const { answer, cost } = await engine.serve<EncodedAnswer>(run, method, readParams);
    // Before the answer is sent, and counted.
    request.operationName = run.operationName;
    if (run.answers || prefersEvents) {
      const answers = run.answers instanceof LiveStream ? run.answers : answer;
      return sendEvents(request, reply, answers);
    }
    // For GraphiQL, which asks for it by a header.
    if (cost && config.graphiql && request.headers['graphql-cost']) {
      reply.header('GraphQL-Cost', `${cost.objects};max=${config.graphqlMaxCost}`);
    }
    const compresses = config.compression !== 'off';
    return sendRepresentation(request, reply.code(answer.status), answer, compresses);
  } catch (error) {
    request.operationName = run.operationName;
    // What an operation is refused for is its result, so that clients do not repeat it.
    const isResult = prefersEvents && run.operation && !run.operation.isLive;
    const refused = isResult && httpErrorFor(error);
    if (!refused || refused.status >= 500) throw error;
    return sendEvents(request, reply, refusalOf(refused));
  }
}

function sendError(
  app: FastifyInstance,
  error: Error & { statusCode?: number },
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  if (hasLeft(request.signal)) {
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

const allow = 'GET, HEAD, POST, OPTIONS';

/**
 * A body must be JSON: a page of another origin cannot send it without a CORS preflight (CSRF protection), as it could
 * send the other types of forms.
 * @throws HttpError 405, 406, 415 or 400, in this order
 */
function readRequest(request: FastifyRequest) {
  const method: 'GET' | 'POST' = isRead(request) ? 'GET' : 'POST';
  if (method !== request.method && request.method !== 'HEAD') {
    throw methodNotAllowed(request.method, allow);
  }
  const accepted = readAccept(request.headers.accept ?? '');
  const acceptsEvents = accepted.acceptsEvents && request.method !== 'HEAD';
  const prefersEvents = accepted.prefersEvents && acceptsEvents;
  const answerType = accepted.type ?? (acceptsEvents ? 'application/json' : undefined);
  if (!answerType) throw notAcceptable();
  const text = method === 'GET' ? rawQuery(request) : bodyOf(request);
  /** @throws HttpError 400 */
  const readParams = () => (method === 'GET' ? readQueryString(text) : readObject(text));
  // It names everything that the answer depends on, but its type. The raw text: 1e400 is parsed as Infinity, which JSON
  // would write as null.
  const key = `${method} ${text}`;
  return { method, readParams, answerType, acceptsEvents, prefersEvents, key };
}

function isRead({ method }: FastifyRequest): boolean {
  return method === 'GET' || method === 'HEAD';
}

const eventStream = 'text/event-stream';

/** Whether it names the type of a stream, and prefers it to the types of a single answer. */
const readAccept = memoizeHeader((accept) => {
  // Only if it is named: a stream is no answer to `*/*`.
  const isNamed = accept.toLowerCase().includes(eventStream);
  const acceptsEvents = isNamed && preferredType(accept, [eventStream]) !== undefined;
  const all = acceptsEvents ? [...answerTypes, eventStream] : answerTypes;
  const prefersEvents = acceptsEvents && preferredType(accept, all)?.type === eventStream;
  return { type: chooseType(accept), acceptsEvents, prefersEvents };
});

function chooseType(accept: string | undefined): AnswerType | undefined {
  if (!accept || accept === '*/*') return 'application/json';
  return preferredType(accept, answerTypes)?.type;
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

const readOnly = 'GET, HEAD, OPTIONS';

/** GET /graphql/schema.graphql: the schema in SDL. */
function serveSdl(
  app: FastifyInstance,
  schema: GraphQLSchema,
  admit: Admit,
  compresses: boolean,
): void {
  // Printed on first use: most processes never need it.
  let printed: Representable | undefined;
  app.route({
    method: app.supportedMethods,
    url: '/graphql/schema.graphql',
    onRequest: async (request, reply) => {
      if (compresses) reply.header('Vary', 'Accept-Encoding');
      requireHost(request);
      request.viewer = await admit(request, reply);
      if (request.method === 'OPTIONS') return reply.code(204).header('Allow', readOnly).send();
      if (!isRead(request)) throw methodNotAllowed(request.method, readOnly);
    },
    handler: async (request, reply) => {
      printed ??= {
        body: Buffer.from(printSdl(schema)),
        contentType: 'text/plain; charset=utf-8',
      };
      return sendRepresentation(request, reply, printed, compresses);
    },
  });
}

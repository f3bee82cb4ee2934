import { METHODS } from 'node:http';
import type { Socket } from 'node:net';
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify';
import { createAdmission } from './admission/admission.ts';
import { createSlots } from './admission/overload.ts';
import { createRateLimiter } from './admission/rate-limit.ts';
import { AnswerCache } from './cache/answer-cache.ts';
import type { Closing } from './closing.ts';
import type { Config } from './config.ts';
import { allowOrigins } from './cors.ts';
import type { Database } from './database/database.ts';
import type { Context } from './graphql/context.ts';
import { schema } from './graphql/schema.ts';
import { serveGraphQL } from './graphql/server.ts';
import { serveHealth } from './health.ts';
import { createViewerReader, type Viewer } from './identity/viewer.ts';
import { logAnswers } from './log.ts';
import type { Metrics } from './metrics/metrics.ts';
import { createUserPageLoader } from './outfits/user-pages.ts';
import { isShareable, visibilityFor } from './outfits/visibility.ts';
import {
  answerRequestIds,
  createRequestNamer,
  type NameRequest,
  requestIdHeader,
} from './request-id.ts';
import { serveRest } from './rest/adapter.ts';
import { encodeJson } from './rest/json.ts';
import { routes } from './rest/routes.ts';
import { securityHeaders, setSecurityHeaders } from './security-headers.ts';
import { type StartWork, Work } from './work.ts';

/** What of the configuration is not about the process and its database. */
export type AppConfig = Omit<
  Config,
  'databasePoolMax' | 'databaseUrl' | 'dataDir' | 'host' | 'metricsPort' | 'port' | 'seed'
>;

/** What watches over a service in a process of its own. */
export interface Surroundings {
  /** Where the log goes; nowhere when absent. */
  readonly logger?: FastifyBaseLogger;
  readonly metrics?: Metrics | undefined;
  readonly closing?: Closing;
  /** Whether the database is away or not migrated; asked by `GET /health/ready`. */
  readonly isDatabaseAway?: (() => boolean) | undefined;
}

/**
 * The whole service on an open database, complete but not listening. Closing it leaves the
 * database open: whoever opened that closes it.
 */
export async function buildApp(
  config: AppConfig,
  database: Pick<Database, 'prisma' | 'read' | 'snapshots'>,
  { logger, metrics, closing, isDatabaseAway }: Surroundings = {},
): Promise<FastifyInstance> {
  const nameRequest = createRequestNamer();
  const app = Fastify({
    ...(logger ? { loggerInstance: logger } : {}),
    trustProxy: config.trustProxy.length > 0 ? [...config.trustProxy] : false,
    exposeHeadRoutes: false,
    genReqId: nameRequest,
    logController: new LogController({
      disableRequestLogging: true,
      requestIdLogLabel: 'requestId',
    }),
    bodyLimit: 1_048_576,
    ...timeLimits,
    // What comes while the service closes, on a connection that is still open, is answered.
    return503OnClosing: false,
    // REST and GraphQL read the query string themselves, each by its own rules.
    routerOptions: { querystringParser: () => ({}) },
    // A request without Host gets an answer in the shape of the others.
    http: { requireHostHeader: false, ...headTimeLimits },
    clientErrorHandler: (error, socket) => answerUnreadable(error, socket, nameRequest, logger),
    // A path that cannot be decoded is just another unknown one.
    frameworkErrors: (_error, { id }, reply) => {
      // No hook has set them.
      reply.header(requestIdHeader, id).headers(securityHeaders);
      sendNotFound(reply as unknown as FastifyReply);
    },
  });
  // So that a method the listing does not know is answered with 405, whichever it is.
  for (const method of METHODS) {
    if (method !== 'CONNECT' && !app.supportedMethods.includes(method)) {
      app.addHttpMethod(method, { hasBody: true });
    }
  }
  // An expectation that Node does not know is none of ours: it would answer 417 with nothing in it.
  app.server.on('checkExpectation', (request, response) => {
    app.server.emit('request', request, response);
  });
  answerRequestIds(app);
  logAnswers(app);
  metrics?.countAnswers(app);
  closing?.follow(app);
  app.addHook('onRequest', setSecurityHeaders);
  allowOrigins(app, config.corsOrigins);
  // Before the body is read: a path that there is not must not fail for its body first.
  app.addHook('onRequest', (request, reply, done) => {
    if (request.is404) sendNotFound(reply);
    else done();
  });

  const createContext = ({ headers }: FastifyRequest, viewer: Viewer | undefined): Context => {
    const visibility = visibilityFor(config.privateOutfits, viewer);
    return {
      viewer,
      visibility,
      isShareable: isShareable(visibility),
      idempotencyKey: headers['idempotency-key']?.toString(),
      config,
      prisma: database.prisma,
      read: database.read,
      userPages: createUserPageLoader(database.read, visibility),
    };
  };

  const countRequest = config.rateLimit && createRateLimiter(config.rateLimit, database.read);
  const startWork: StartWork = (work) => new Work(config.requestTimeout, work);
  const cache = new AnswerCache(database.snapshots, config.cacheMaxBytes, startWork);
  serveHealth(app, { isDatabaseAway, isClosing: () => closing?.isClosing ?? false });
  await app.register(async (scope) => {
    const slots = createSlots(scope, config.maxConcurrentRequests);
    const admit = createAdmission(slots, createViewerReader(config), countRequest);
    metrics?.watch({ cache, slots });
    const shared = { schema, cache, admit, createContext, startWork };
    await scope.register((inner) => serveGraphQL(inner, { ...shared, config }));
    await scope.register((inner) =>
      serveRest(inner, { ...shared, routes, publicUrl: config.publicUrl }),
    );
  });
  return app;
}

/** Milliseconds that a client has, so that slow ones do not hold connections for good. */
const timeLimits = {
  /** To send a whole request: a megabyte from a phone on a bad network. */
  requestTimeout: 30_000,
  /** Between two requests: more than the 60 seconds of most proxies, which must be first to close. */
  keepAliveTimeout: 72_000,
  /** In which nothing is sent or read. */
  connectionTimeout: 90_000,
};
const headTimeLimits = {
  /** To send the head of a request. */
  headersTimeout: 10_000,
  connectionsCheckingInterval: 2_000,
};

function sendNotFound(reply: FastifyReply): FastifyReply {
  return reply
    .code(404)
    .header('Content-Type', 'application/json')
    .send(encodeJson({ detail: 'Not found.' }));
}

/** Answers bytes that Node cannot read as an HTTP request, such as a raw non-ASCII target. */
function answerUnreadable(
  error: Error & { code?: string },
  socket: Socket,
  nameRequest: NameRequest,
  log: FastifyBaseLogger | undefined,
): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const [status, detail] =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? ['431 Request Header Fields Too Large', 'The request target or a header is too large.']
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? ['408 Request Timeout', 'The request took too long to arrive.']
        : ['400 Bad Request', 'The request is not valid HTTP.'];
  const requestId = nameRequest({ headers: {} });
  log?.debug({ requestId, status: Number.parseInt(status, 10), code: error.code }, 'unreadable');
  const body = encodeJson({ detail });
  const headers = {
    [requestIdHeader]: requestId,
    ...securityHeaders,
    'content-type': 'application/json',
    'content-length': body.length,
    connection: 'close',
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status}\r\n${lines.join('')}\r\n${body}`);
}

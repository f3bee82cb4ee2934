import { METHODS } from 'node:http';
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify';
import type { GraphQLSchema } from 'graphql';
import { createAdmission } from './admission/admission.ts';
import { createConcurrencyLimit } from './admission/concurrency-limit.ts';
import { createRateLimiter } from './admission/rate-limit.ts';
import { createViewerReader, type Viewer } from './admission/viewer.ts';
import { AnswerCache } from './cache/answer-cache.ts';
import type { Config } from './config.ts';
import type { Database } from './database/database.ts';
import { SharedTask, type StartTask } from './database/task.ts';
import { createContextFactory } from './graphql/context.ts';
import { type Asker, createEngine } from './graphql/engine.ts';
import { serveGraphQL } from './graphql/route.ts';
import { schema as ownSchema } from './graphql/schema.ts';
import { allowOrigins } from './http/cors.ts';
import { serveHealth } from './http/health.ts';
import { encodeJson } from './http/json.ts';
import { answerRequestIds, createRequestNamer, requestIdHeader } from './http/request-id.ts';
import { securityHeaders, setSecurityHeaders } from './http/security-headers.ts';
import type { Shutdown } from './http/shutdown.ts';
import { answerUnreadable } from './http/unreadable.ts';
import { logAnswers } from './observability/log.ts';
import type { Metrics } from './observability/metrics.ts';
import { serveRest } from './rest/adapter.ts';
import { routes as ownRoutes, type Route } from './rest/routes.ts';

/** What of the configuration is not about the process and its database. */
export type AppConfig = Omit<
  Config,
  'databasePoolMax' | 'databaseUrl' | 'dataDir' | 'host' | 'metricsPort' | 'port' | 'seed'
>;

/** What a service is made with beside its configuration. */
export interface AppOptions {
  /** Where the log goes; nowhere when absent. */
  readonly logger?: FastifyBaseLogger;
  readonly metrics?: Metrics | undefined;
  readonly shutdown?: Shutdown;
  /** Whether the database is away or not migrated; asked by `GET /health/ready`. */
  readonly isDatabaseAway?: (() => boolean) | undefined;
  /** Another schema than this service's own, and other legacy paths. */
  readonly schema?: GraphQLSchema;
  readonly routes?: readonly Route[];
}

/**
 * The whole service on an open database, complete but not listening. Shutdown it leaves the
 * database open: whoever opened that closes it.
 */
export async function buildApp(
  config: AppConfig,
  database: Pick<Database, 'pool' | 'prisma' | 'read' | 'snapshots'>,
  {
    logger,
    metrics,
    shutdown,
    isDatabaseAway,
    schema = ownSchema,
    routes = ownRoutes,
  }: AppOptions = {},
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
  shutdown?.follow(app);
  app.addHook('onRequest', setSecurityHeaders);
  allowOrigins(app, config.corsOrigins);
  // Before the body is read: a path that there is not must not fail for its body first.
  app.addHook('onRequest', (request, reply, done) => {
    if (request.is404) sendNotFound(reply);
    else done();
  });

  const countRequest = config.rateLimit && createRateLimiter(config.rateLimit, database.read);
  const startTask: StartTask = (work) => new SharedTask(config.requestTimeout, work);
  const cache = new AnswerCache(database.snapshots, config.cacheMaxBytes, startTask);
  serveHealth(app, { isDatabaseAway, isClosing: () => shutdown?.isClosing ?? false });
  await app.register(async (scope) => {
    const slots = createConcurrencyLimit(scope, config.maxConcurrentRequests);
    const admit = createAdmission(slots, createViewerReader(config), countRequest);
    metrics?.watch({ cache, slots });
    const contexts = createContextFactory(config, database);
    const engine = createEngine({ schema, config, cache, startTask, contexts });
    const shared = { engine, admit, askerOf, config };
    scope.decorateRequest('viewer', undefined);
    await scope.register((inner) => serveGraphQL(inner, shared));
    await scope.register((inner) => serveRest(inner, { ...shared, schema, routes }));
  });
  return app;
}

/** Who asks, and with what: all that the engine knows of a request. */
function askerOf(request: FastifyRequest, viewer: Viewer | undefined): Asker {
  const { headers, log } = request;
  return { viewer, idempotencyKey: headers['idempotency-key']?.toString(), waiter: request, log };
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

// buildApp: wiring only. Everything, complete but not listening.
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
import { signalLeaving } from './http/client-signal.ts';
import { allowOrigins } from './http/cors.ts';
import { serveHealth } from './http/health.ts';
import { encodeJson } from './http/json.ts';
import { answerRequestIds, createRequestNamer, requestIdHeader } from './http/request-id.ts';
import { securityHeaders, setSecurityHeaders } from './http/security-headers.ts';
import { createServer } from './http/server.ts';
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
 * The whole service on an open database, complete but not listening. Closing it leaves the
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
    serverFactory: (listener) => createServer(listener),
    // What comes while the service closes, on a connection that is still open, is answered.
    return503OnClosing: false,
    // REST and GraphQL read the query string themselves, each by its own rules.
    routerOptions: { querystringParser: () => ({}) },
    clientErrorHandler: answerUnreadable(nameRequest, logger),
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
  signalLeaving(app);
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

  const { maxConcurrentRequests, rateLimit, requestTimeout } = config;
  const countRequest = rateLimit && createRateLimiter(rateLimit, database.read, requestTimeout);
  const limit = createConcurrencyLimit(maxConcurrentRequests, requestTimeout * 1000);
  const startTask: StartTask = (work, after) =>
    new SharedTask(requestTimeout, async (signal) => {
      await after;
      return limit.run(work, signal);
    });
  const cache = new AnswerCache(database.snapshots, config.cacheMaxBytes, startTask);
  metrics?.follow({ cache, limit });
  serveHealth(app, { isDatabaseAway, isClosing: () => shutdown?.isClosing ?? false });
  await app.register(async (scope) => {
    const admit = createAdmission(createViewerReader(config), countRequest);
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

function sendNotFound(reply: FastifyReply): FastifyReply {
  return reply
    .code(404)
    .header('Content-Type', 'application/json')
    .send(encodeJson({ detail: 'Not found.' }));
}

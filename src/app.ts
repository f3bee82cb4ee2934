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
import { createAdmission, createWriteGuard } from './admission/admission.ts';
import { ConcurrencyLimit, createTaskStarter } from './admission/concurrency-limit.ts';
import { createRateLimiter } from './admission/rate-limit.ts';
import { createViewerReader } from './admission/viewer.ts';
import type { Config } from './config.ts';
import type { Database } from './database/database.ts';
import type { Replicas } from './database/standby/replicas.ts';
import { ContextFactory } from './graphql/context.ts';
import { DocumentStore } from './graphql/documents.ts';
import { AnswerCache } from './graphql/engine/answer-cache.ts';
import { Engine } from './graphql/engine/engine.ts';
import { Operations } from './graphql/engine/operations.ts';
import { serveGraphQL } from './graphql/route.ts';
import { schema as ownSchema } from './graphql/schema.ts';
import { enableCors } from './http/cors.ts';
import { EventStreams } from './http/event-stream.ts';
import {
  addRequestIds,
  createRequestIds,
  ignoreQuery,
  requestIdHeader,
  securityHeaders,
  setSecurityHeaders,
  toOriginForm,
} from './http/headers.ts';
import { decorateDisconnectSignal, type Shutdown } from './http/server/connections.ts';
import { serveHealth } from './http/server/health.ts';
import { createClientErrorHandler, createServer } from './http/server/server.ts';
import { Clients } from './observability/clients.ts';
import { createRequestLog, logAnswers } from './observability/log.ts';
import type { Metrics } from './observability/metrics.ts';
import { followUnknownParameters } from './observability/unknown-parameters.ts';
import { serveRest } from './rest/adapter.ts';
import { answerErrors, notFound, sendError } from './rest/errors.ts';
import { serveOpenApi } from './rest/openapi/route.ts';
import { routes as ownRoutes, type Route } from './rest/routes.ts';
import type { Tracing } from './tracing/tracing.ts';

export interface AppOptions {
  readonly logger?: FastifyBaseLogger;
  readonly metrics?: Metrics | undefined;
  readonly tracing?: Tracing | undefined;
  readonly shutdown?: Shutdown;
  /** Why the service is not ready, in one sentence; asked by `GET /health/ready`. */
  readonly findProblem?: (() => string | undefined) | undefined;
  /** The standbys that queries are read from; undefined: they are read where is written. */
  readonly replicas?: Pick<Replicas, 'readAt' | 'standbys'> | undefined;
  /** Whether the pictures are drawn here, below `/media/`: `mediaUrl` is that, then. */
  readonly drawsPictures?: boolean;
  /** Another schema than this service's own, and other legacy paths. */
  readonly schema?: GraphQLSchema;
  readonly routes?: readonly Route[];
}

/** On an open database, complete but not listening. Whoever opened the database closes it. */
export async function buildApp(
  config: Config,
  database: Pick<Database, 'checkServers' | 'pool' | 'prisma' | 'read' | 'snapshots'>,
  {
    logger,
    metrics,
    tracing,
    shutdown,
    findProblem,
    replicas,
    drawsPictures = false,
    schema = ownSchema,
    routes = ownRoutes,
  }: AppOptions = {},
): Promise<FastifyInstance> {
  const generateRequestId = createRequestIds();
  const app = Fastify({
    ...(logger ? { loggerInstance: logger } : {}),
    trustProxy: config.trustProxy.length > 0 ? [...config.trustProxy] : false,
    exposeHeadRoutes: false,
    genReqId: generateRequestId,
    logController: new LogController({
      disableRequestLogging: true,
      requestIdLogLabel: 'requestId',
    }),
    bodyLimit: 1_048_576,
    serverFactory: (listener) => createServer(listener),
    // What comes while the service closes, on a connection that is still open, is answered.
    return503OnClosing: false,
    rewriteUrl: toOriginForm,
    routerOptions: { querystringParser: ignoreQuery },
    clientErrorHandler: createClientErrorHandler(
      generateRequestId,
      logger,
      config.legacyMode.kind === 'off' ? {} : { 'x-served-by': 'gateway' },
    ),
    // A path that cannot be decoded is just another unknown one.
    frameworkErrors: (_error, request, reply) => {
      const [unroutable, answer] = [request as FastifyRequest, reply as unknown as FastifyReply];
      if (legacy?.takeUnroutable(unroutable, answer)) return;
      // No hook has set them.
      answer.header(requestIdHeader, unroutable.id).headers(securityHeaders);
      sendError(answer, notFound());
    },
  });
  app.setChildLoggerFactory(createRequestLog);
  // So that a method the listing does not know is answered with 405, whichever it is.
  for (const method of METHODS) {
    if (method !== 'CONNECT' && !app.supportedMethods.includes(method)) {
      app.addHttpMethod(method, { hasBody: true });
    }
  }
  const clients = metrics?.usage.clients ?? new Clients();
  tracing?.followRequests(app, clients);
  decorateDisconnectSignal(app);
  addRequestIds(app);
  logAnswers(app, clients);
  metrics?.countAnswers(app);
  if (config.unknownParameters !== 'ignore') followUnknownParameters(app, clients, metrics);
  shutdown?.follow(app);
  // Registered before the hooks that change answers: forwarded answers pass unchanged.
  const legacy =
    config.legacyMode.kind === 'off'
      ? undefined
      : (await import('./legacy/proxy/modes.ts')).serveLegacy(app, {
          config,
          metrics,
          shutdown,
          clientOf: (request) => clients.lookup(request).name,
          traceUpstream: tracing?.traceUpstream,
        });
  app.addHook('onRequest', setSecurityHeaders);
  enableCors(app, config.corsOrigins);

  const { maxConcurrentRequests, rateLimit, requestTimeout } = config;
  const countRequest = rateLimit && createRateLimiter(rateLimit, database.read, requestTimeout);
  const limit = new ConcurrencyLimit(maxConcurrentRequests, requestTimeout * 1000);
  // What waits for a lane keeps its place: with a quarter for each lane, half are left for others.
  for (const { pool } of [database, ...(replicas?.standbys ?? [])]) {
    pool.limitWaiting(Math.ceil(maxConcurrentRequests / 4));
  }
  const startTask = createTaskStarter(limit, requestTimeout, database.checkServers);
  const probes = tracing?.traceSnapshots(database.snapshots) ?? database.snapshots;
  const { cacheMaxBytes, readMaxStaleness } = config;
  const readsNeedState = replicas !== undefined;
  const cache = new AnswerCache(probes, startTask, cacheMaxBytes, readMaxStaleness, readsNeedState);
  tracing?.followCache(cache);
  metrics?.follow({ cache, limit });
  const streams = new EventStreams(config.maxStreams);
  app.addHook('preClose', async () => streams.close());
  metrics?.followStreams(streams);
  serveHealth(app, () => (shutdown?.isClosing ? 'The gateway is closing.' : findProblem?.()));
  if (drawsPictures) (await import('./demo/media.ts')).servePictures(app);
  await app.register(async (scope) => {
    const readViewer = createViewerReader(config);
    const admit = createAdmission(readViewer, countRequest);
    const contexts = new ContextFactory(config, database);
    const guardWrite = createWriteGuard(config);
    const readAt = replicas?.readAt;
    const parts = { schema, config, cache, startTask, contexts, readAt, guardWrite };
    const engine = new Engine(parts);
    tracing?.followEngine(engine);
    const file = config.trustedDocuments;
    const trusted =
      file === undefined
        ? undefined
        : await (await import('./graphql/trusted-documents.ts')).readTrustedDocuments(
            file,
            engine.operations,
          );
    const documents = new DocumentStore(trusted, config.trustedDocumentsOnly);
    const shared = { engine, admit, guardWrite, config };
    scope.decorateRequest('viewer', undefined);
    const { snapshots } = database;
    const graphiql = config.graphiql
      ? (await import('./pages/graphiql/graphiql.ts')).createGraphiQL(config)
      : undefined;
    const { sendPage } = graphiql ?? {};
    const graphql = { ...shared, schema, documents, snapshots, streams, sendPage };
    await scope.register((inner) => serveGraphQL(inner, graphql));
    if (graphiql) await scope.register(async (inner) => graphiql.serveFiles(inner));
    const rest = { ...shared, schema, routes };
    const pages = config.browsable
      ? new (await import('./pages/pages.tsx')).Pages({ ...rest, drawsPictures })
      : undefined;
    await scope.register(async (inner) => {
      pages?.show(inner);
      await serveRest(inner, rest);
    });
    if (pages) await scope.register(async (inner) => pages.serveHome(inner));
    await scope.register(async (inner) => {
      pages?.show(inner);
      answerErrors(inner);
      // Before the body is read: a path that there is not must not fail for its body first.
      inner.addHook('onRequest', (_request, reply, _done) => void sendError(reply, notFound()));
      inner.setNotFoundHandler(() => {});
    });
    await scope.register(async (inner) => serveOpenApi(inner, rest));
    if (config.browsable) {
      const { serveViewer } = await import('./pages/api-docs/viewer.ts');
      await scope.register(async (inner) => serveViewer(inner, config));
    }
    // Comparisons are no client's requests: they do not count against the rate limit.
    await legacy?.compareWith((inner) =>
      serveRest(inner, { ...rest, admit: createAdmission(readViewer, undefined) }),
    );
  });
  return app;
}

/** @throws ConfigError for documents that buildApp would refuse, without a database */
export async function checkTrustedDocuments(file: string, config: Config): Promise<void> {
  const { readTrustedDocuments } = await import('./graphql/trusted-documents.ts');
  await readTrustedDocuments(file, new Operations(ownSchema, config));
}

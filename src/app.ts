// buildApp wires the HTTP side of the service: built, not listening.
import { METHODS } from 'node:http';
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify';
import type { GraphQLSchema } from 'graphql';
import {
  type Attached,
  admitBodies,
  createAdmission,
  createWriteGuard,
  RequestCaller,
} from './admission/admission.ts';
import { ConcurrencyLimit, createTaskStarter } from './admission/concurrency-limit.ts';
import { Credentials, keepCookieAnswersPrivate } from './admission/credentials.ts';
import { createRateLimiter } from './admission/rate-limit.ts';
import type { Config } from './config/config.ts';
import type { Database } from './database/database.ts';
import type { Replicas } from './database/standby/replicas.ts';
import { takeTurn } from './database/turns.ts';
import { ContextFactory } from './graphql/context.ts';
import { Engine, type EngineOptions } from './graphql/engine.ts';
import { LiveAnswers } from './graphql/live/live.ts';
import { LiveStreams } from './graphql/live/live-stream.ts';
import { AnswerCache } from './graphql/plugins/answer-cache.ts';
import { DocumentStore } from './graphql/plugins/stored-documents.ts';
import { serveGraphQL } from './graphql/route.ts';
import { schema as ownSchema } from './graphql/schema.ts';
import { corsHeaders, enableCors } from './http/cors.ts';
import {
  appendVary,
  createRequestIds,
  createTrust,
  decorateClient,
  ignoreQuery,
  prefixLocations,
  requestIdHeader,
  requireHost,
  securityHeaders,
  setRequestId,
  setSecurityHeaders,
  toOriginForm,
  warnOfUnknownProxy,
} from './http/headers.ts';
import { encodeJson } from './http/representation.ts';
import { decorateDisconnectSignal, type Shutdown } from './http/server/connections.ts';
import { createServer, serveHealth } from './http/server/server.ts';
import { createClientErrorHandler, type Unreadable } from './http/server/unreadable-requests.ts';
import {
  createLogThrottle,
  logAnswers,
  type ObserveAnswer,
  observeAnswers,
} from './observability/log.ts';
import type { Metrics } from './observability/metrics.ts';
import type { Tracing } from './observability/tracing/tracing.ts';
import { followUser } from './outfits/writes/users.ts';
import { type RestOptions, serveOpenApi, serveRest } from './rest/adapter.ts';
import { answerErrors, notFound, sendError } from './rest/errors.ts';
import { readRoutes } from './rest/read-routes.ts';
import type { Route } from './rest/routes.ts';

export interface AppOptions {
  readonly logger?: FastifyBaseLogger;
  readonly metrics?: Metrics | undefined;
  /** Tables of the old service that are followed. */
  readonly attachment?: Attached | undefined;
  readonly tracing?: Tracing | undefined;
  readonly shutdown?: Shutdown;
  /** Why the service is not ready, in one sentence, for `GET /health/ready`. */
  readonly findProblem?: (() => string | undefined) | undefined;
  /** Standbys for queries; undefined: the primary server answers them. */
  readonly replicas?: Pick<Replicas, 'readAt' | 'standbys'> | undefined;
  /** Serves pictures that this process draws, below `/media/`, which `mediaUrl` then names. */
  readonly servePictures?: ((app: FastifyInstance) => void) | undefined;
  /** Defaults to the schema of this service. */
  readonly schema?: GraphQLSchema;
  /** Plugins of Yoga, behind those of this service. */
  readonly plugins?: EngineOptions['plugins'];
}

type AppDatabase = Pick<Database, 'checkServers' | 'pool' | 'prisma' | 'read' | 'snapshots'>;

/** Needs an open database, which its opener closes. The hooks run in the order of these steps. */
export async function buildApp(
  config: Config,
  database: AppDatabase,
  options: AppOptions = {},
): Promise<FastifyInstance> {
  const { attachment, metrics, tracing, shutdown, findProblem, servePictures } = options;
  const { schema = ownSchema } = options;
  const routes = readRoutes(schema, config.restDocuments);
  const app = createFastify(config, options, (request, reply) => {
    if (legacy?.interceptUnroutable(request, reply)) return;
    // No hook has set them.
    reply.header(requestIdHeader, request.id).headers(securityHeaders);
    reply.headers({ ...corsHeaders(request, config) });
    if (config.corsOrigins.length > 0) appendVary(reply, 'Origin');
    sendError(reply, notFound());
  });
  const observe = observeRequests(app, config, options);
  const onUser = async (id: number, answer: unknown) => {
    if (attachment?.writer) return;
    await followUser(database.prisma, id, answer).catch((err) =>
      app.log.warn({ err }, 'the names of a user could not be saved'),
    );
  };
  const observeWebhook = config.authWebhookUrl === undefined ? undefined : metrics?.timeWebhook();
  const credentials = new Credentials(config, onUser, observeWebhook);
  app.addHook('preClose', async () => credentials.stopSoon());
  app.addHook('onClose', () => credentials.close());
  const isFollowed = /^(?:shadow|canary)$/.test(config.legacyMode.kind);
  // Registered before the hooks that change answers: forwarded answers pass unchanged.
  const legacy =
    config.legacyMode.kind === 'off'
      ? undefined
      : (await import('./legacy/proxy/modes.ts')).serveLegacy(app, {
          config,
          credentials,
          routes,
          records: isFollowed
            ? (await import('./transfer/import/record-store.ts')).createRecordStore(
                database.pool,
                config,
                () => attachment?.writer !== undefined,
              )
            : undefined,
          metrics,
          shutdown,
          observe: tracing?.observeUpstream,
        });
  app.addHook('onRequest', setSecurityHeaders);
  followAnswers(app, config);
  admitBodies(app);

  const execution = createExecution(config, database, options);
  const streams = new LiveStreams(config.maxStreams);
  metrics?.followStreams(streams);
  serveHealth(app, () => (shutdown?.isClosing ? 'The gateway is closing.' : findProblem?.()));
  servePictures?.(app);
  await app.register(async (scope) => {
    scope.decorateRequest('viewer', undefined);
    const { rateLimit, requestTimeout } = config;
    const countRequest = rateLimit && createRateLimiter(rateLimit, database.read, requestTimeout);
    const admit = createAdmission(credentials, countRequest);
    const guardWrite = createWriteGuard(config, attachment);
    const contexts = new ContextFactory(config, database, attachment);
    const engine = new Engine({
      ...{ ...execution, schema, config, contexts, guardWrite },
      documents: await readDocuments(config, schema),
      hasSockets: config.maxSockets > 0,
      log: app.log,
      observe: tracing?.observeOperation,
      onErrors: options.metrics?.countErrors(),
      plugins: options.plugins,
    });
    const shared = { engine, admit, guardWrite, config, schema };
    const { expensiveQueryTimeout: longest } = config;
    const live = new LiveAnswers(engine, database.snapshots, streams, app.log, longest);
    await addGraphQL(scope, { ...shared, live, streams, observe });
    const rest = { ...shared, routes };
    await addRest(scope, rest, servePictures !== undefined);
    // Comparisons are no client's requests: they do not count against the rate limit.
    await legacy?.compareWith((inner) =>
      serveUncounted(inner, { ...rest, admit: createAdmission(credentials, undefined) }),
    );
  });
  return app;
}

function createFastify(
  config: Config,
  { logger, metrics }: AppOptions,
  answerUnroutable: (request: FastifyRequest, reply: FastifyReply) => void,
): FastifyInstance {
  const generateRequestId = createRequestIds();
  const throttleUnreadable = createLogThrottle();
  const app = Fastify({
    ...(logger ? { loggerInstance: logger } : {}),
    exposeHeadRoutes: false,
    genReqId: generateRequestId,
    logController: new LogController({
      disableRequestLogging: true,
      requestIdLogLabel: 'requestId',
    }),
    bodyLimit: 1_048_576,
    serverFactory: (listener) => createServer(listener),
    // During a graceful shutdown, requests on open connections are still answered.
    return503OnClosing: false,
    rewriteUrl: toOriginForm,
    // Names in a path may be as long as a head: of more than 100 characters, none would be found.
    routerOptions: { querystringParser: ignoreQuery, maxParamLength: 16_384 },
    clientErrorHandler: createClientErrorHandler((unreadable) => {
      const requestId = generateRequestId({ headers: {} });
      const { reason, error } = unreadable;
      // A client that has left within its request is no failure.
      if (reason !== 'HPE_INVALID_EOF_STATE') {
        metrics?.countUnreadable(reason);
        const line = { requestId, status: error.status, reason };
        const write = (suppressed: number) => logger?.info({ ...line, suppressed }, 'unreadable');
        if (logger) throttleUnreadable(logger, write);
      }
      return answerUnreadable(unreadable, requestId, config);
    }),
    // A path that cannot be decoded is answered like other unknown paths.
    frameworkErrors: (_error, request, reply) =>
      answerUnroutable(request as FastifyRequest, reply as unknown as FastifyReply),
  });
  // Fastify answers unregistered methods with 404; the REST paths answer all with 405.
  for (const method of METHODS) {
    if (method !== 'CONNECT' && !app.supportedMethods.includes(method)) {
      app.addHttpMethod(method, { hasBody: true });
    }
  }
  return app;
}

/** In the form of the interface, with the headers of every answer, as far as the request could be read. */
function answerUnreadable(
  { error, origin = '', target }: Unreadable,
  requestId: string,
  config: Config,
): { readonly headers: Readonly<Record<string, string>>; readonly body: Buffer } {
  const { code, message } = error;
  const isGraphQL = target !== undefined && /^\/graphql\b/.test(target);
  return {
    headers: {
      [requestIdHeader]: requestId,
      ...securityHeaders,
      ...(config.legacyMode.kind === 'off' ? {} : { 'x-served-by': 'gateway' }),
      ...corsHeaders({ headers: { origin } }, config),
      'content-type': 'application/json',
    },
    body: encodeJson(
      isGraphQL ? { errors: [{ message, extensions: { code } }] } : { detail: message },
    ),
  };
}

function observeRequests(
  app: FastifyInstance,
  config: Config,
  { metrics, tracing, shutdown }: AppOptions,
): ObserveAnswer {
  tracing?.followRequests(app);
  decorateDisconnectSignal(app);
  const isTrusted = createTrust(config.trustProxy);
  decorateClient(app, isTrusted);
  const countsClients = config.rateLimit !== undefined || config.legacyMode.kind === 'canary';
  if (countsClients) warnOfUnknownProxy(app, isTrusted);
  app.addHook('onRequest', setRequestId);
  const observe = observeAnswers(app, [logAnswers(app), metrics?.countAnswers()]);
  shutdown?.follow(app);
  return observe;
}

/** The REST paths for comparisons. */
function serveUncounted(
  app: FastifyInstance,
  rest: RestOptions & { readonly config: Config },
): Promise<void> {
  followAnswers(app, rest.config);
  return serveRest(app, rest);
}

/** Rules of every answer of this gateway. */
function followAnswers(app: FastifyInstance, config: Config): void {
  keepCookieAnswersPrivate(app, config.authCookies);
  enableCors(app, config);
  prefixLocations(app, config.publicUrl);
}

/** The answer cache, and how what it lacks is read: concurrency limit, timeout, standbys. */
function createExecution(
  config: Config,
  database: AppDatabase,
  { metrics, replicas, tracing }: AppOptions,
) {
  const { cacheMaxSize, maxConcurrentRequests, readMaxStaleness, requestTimeout } = config;
  const limit = new ConcurrencyLimit(maxConcurrentRequests, requestTimeout);
  // A request that waits for a lane keeps its slot: with a quarter for each lane, half are left for others.
  for (const { pool } of [database, ...(replicas?.standbys ?? [])]) {
    pool.limitWaiting(Math.ceil(maxConcurrentRequests / 4));
  }
  const startTask = createTaskStarter(limit, requestTimeout, database.checkServers);
  const readsNeedState = replicas !== undefined;
  const onLookup = tracing?.observeLookup;
  const { snapshots } = database;
  const cache = new AnswerCache(
    ...([snapshots, startTask, cacheMaxSize, readMaxStaleness, readsNeedState, onLookup] as const),
  );
  metrics?.follow({ cache, limit });
  return { cache, startTask, readAt: replicas?.readAt };
}

async function readDocuments(config: Config, schema: GraphQLSchema): Promise<DocumentStore> {
  const { trustedDocuments, trustedDocumentsOnly } = config;
  if (trustedDocuments === undefined) return new DocumentStore(undefined, trustedDocumentsOnly);
  const { readTrustedDocuments } = await import('./graphql/trusted-documents.ts');
  const trusted = await readTrustedDocuments(trustedDocuments, schema, config);
  return new DocumentStore(trusted, trustedDocumentsOnly);
}

async function addGraphQL(
  scope: FastifyInstance,
  options: Omit<Parameters<typeof serveGraphQL>[1], 'sendPage'> & { readonly config: Config },
): Promise<void> {
  const graphiql = options.config.graphiql
    ? (await import('./pages/graphiql/graphiql.ts')).createGraphiQL(options.config)
    : undefined;
  const sendPage = graphiql?.sendPage;
  await scope.register((inner) => serveGraphQL(inner, { ...options, sendPage }));
  if (graphiql) await scope.register(async (inner) => graphiql.serveFiles(inner));
}

/** More fields than work of one turn has: each page has a turn of its own. */
const fieldsOfPage = 1_000;

const takePageTurn = (request: FastifyRequest) =>
  takeTurn(fieldsOfPage, new RequestCaller(request));

/** The REST paths, their pages and documents, and the answer of all unknown paths. */
async function addRest(
  scope: FastifyInstance,
  rest: RestOptions & { readonly config: Config },
  drawsPictures: boolean,
): Promise<void> {
  const { config } = rest;
  const pages = config.browsable
    ? new (await import('./pages/pages.tsx')).Pages({
        ...rest,
        drawsPictures,
        takeTurn: takePageTurn,
      })
    : undefined;
  await scope.register(async (inner) => {
    pages?.show(inner);
    await serveRest(inner, rest);
  });
  if (pages) await scope.register(async (inner) => pages.serve(inner));
  await scope.register(async (inner) => {
    pages?.show(inner);
    answerErrors(inner);
    // Before the body is read: an unknown path must not fail for its body first.
    inner.addHook('onRequest', (request, reply, _done) => {
      requireHost(request);
      sendError(reply, notFound());
    });
    inner.setNotFoundHandler(() => {});
  });
  await scope.register(async (inner) => serveOpenApi(inner, rest));
}

/** The REST paths of a gateway with these settings. @throws ConfigError */
export function readOwnRoutes(file: string | undefined): readonly Route[] {
  return readRoutes(ownSchema, file);
}

/** Checks the documents as buildApp does, without a database. @throws ConfigError */
export async function checkTrustedDocuments(file: string, config: Config): Promise<void> {
  const { readTrustedDocuments } = await import('./graphql/trusted-documents.ts');
  await readTrustedDocuments(file, ownSchema, config);
}

import { METHODS } from 'node:http';
import type { Socket } from 'node:net';
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  LogController,
} from 'fastify';
import { type Admit, createAdmission } from './admission/admission.ts';
import { AnswerCache } from './cache/answer-cache.ts';
import type { Config } from './config.ts';
import { allowOrigins } from './cors.ts';
import type { Database } from './database/database.ts';
import type { Context } from './graphql/context.ts';
import { schema } from './graphql/schema.ts';
import { serveGraphQL } from './graphql/server.ts';
import { createViewerReader, type Viewer } from './identity/viewer.ts';
import { createUserPageLoader } from './outfits/user-pages.ts';
import { visibilityFor } from './outfits/visibility.ts';
import { serveRest } from './rest/adapter.ts';
import { encodeJson } from './rest/json.ts';
import { routes } from './rest/routes.ts';
import { securityHeaders, setSecurityHeaders } from './security-headers.ts';

/** What of the configuration is not about the process and its database. */
export type AppConfig = Omit<
  Config,
  'databasePoolMax' | 'databaseUrl' | 'dataDir' | 'host' | 'metricsPort' | 'port' | 'seed'
>;

/**
 * The whole service on an open database, complete but not listening. Closing it leaves the
 * database open: whoever opened that closes it.
 * @param logger where the log goes; none when absent
 */
export async function buildApp(
  config: AppConfig,
  database: Pick<Database, 'prisma' | 'read' | 'snapshots'>,
  logger?: FastifyBaseLogger,
): Promise<FastifyInstance> {
  const app = Fastify({
    ...(logger ? { loggerInstance: logger } : {}),
    trustProxy: config.trustProxy.length > 0 ? [...config.trustProxy] : false,
    exposeHeadRoutes: false,
    // One line per answer, at debug: two per request at info took a third of the throughput.
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: 1_048_576,
    // REST and GraphQL read the query string themselves, each by its own rules.
    routerOptions: { querystringParser: () => ({}) },
    // A request without Host gets an answer in the shape of the others.
    http: { requireHostHeader: false },
    clientErrorHandler: answerUnreadable,
    // A path that cannot be decoded is just another unknown one.
    frameworkErrors: (_error, _request, reply) => sendNotFound(reply as unknown as FastifyReply),
  });
  // So that a method the listing does not know is answered with 405, whichever it is.
  for (const method of METHODS) {
    if (method !== 'CONNECT' && !app.supportedMethods.includes(method)) {
      app.addHttpMethod(method, { hasBody: true });
    }
  }
  app.addHook('onResponse', async ({ method, url, log }, { statusCode, elapsedTime }) => {
    log.debug({ method, url, statusCode, milliseconds: elapsedTime }, 'answered');
  });
  app.addHook('onRequest', setSecurityHeaders);
  allowOrigins(app, config.corsOrigins);
  // Before the body is read: a path that there is not must not fail for its body first.
  app.addHook('onRequest', (request, reply, done) => {
    if (request.is404) sendNotFound(reply);
    else done();
  });

  const createContext = (viewer: Viewer | undefined): Context => ({
    viewer,
    visibility: visibilityFor(config.privateOutfits, viewer),
    config,
    prisma: database.prisma,
    read: database.read,
    userPages: createUserPageLoader(database.read),
  });

  const admit: Admit = createAdmission(createViewerReader(config));
  const cache = new AnswerCache(database.snapshots, config.cacheMaxBytes);
  const shared = { schema, cache, admit, createContext };
  await app.register((scope) => serveGraphQL(scope, { ...shared, config }));
  await app.register((scope) =>
    serveRest(scope, { ...shared, routes, publicUrl: config.publicUrl }),
  );
  return app;
}

function sendNotFound(reply: FastifyReply): FastifyReply {
  return reply
    .code(404)
    .headers(securityHeaders)
    .header('Content-Type', 'application/json')
    .send(encodeJson({ detail: 'Not found.' }));
}

/** Answers bytes that Node cannot read as an HTTP request, such as a raw non-ASCII target. */
function answerUnreadable(error: Error & { code?: string }, socket: Socket): void {
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
  const body = encodeJson({ detail });
  const headers = {
    ...securityHeaders,
    'content-type': 'application/json',
    'content-length': body.length,
    connection: 'close',
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status}\r\n${lines.join('')}\r\n${body}`);
}

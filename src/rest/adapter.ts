import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { GraphQLSchema } from 'graphql';
import type { Context } from '../graphql/context.ts';
import { acceptsJson } from './accept.ts';
import { readBaseUrl } from './base-url.ts';
import { internalError, methodNotAllowed, notAcceptable, notFound, RestError } from './errors.ts';
import { encodeJson } from './json.ts';
import { type ListReader, prepareList } from './list-document.ts';
import { formatQuery, parseQuery } from './query-string.ts';
import type { Route } from './routes.ts';

export interface RestOptions {
  readonly schema: GraphQLSchema;
  readonly routes: readonly Route[];
  /** Base of the links; undefined: the request's own scheme and host. */
  readonly publicUrl: string | undefined;
  readonly createContext: (request: FastifyRequest) => Context;
}

/** Serves the legacy paths, which all begin with `/api/`. */
export async function serveRest(app: FastifyInstance, options: RestOptions): Promise<void> {
  app.setErrorHandler((error, request, reply) => {
    if (error instanceof RestError) return sendError(reply, error);
    request.log.error({ err: error }, 'unexpected error');
    return sendError(reply, internalError());
  });

  for (const route of options.routes) addRoute(app, route, options);

  app.route({
    method: app.supportedMethods,
    url: '/api/*',
    onRequest: async (request) => {
      baseUrlOf(request, options);
      throw notFound();
    },
    handler: () => {},
  });
}

function addRoute(app: FastifyInstance, route: Route, options: RestOptions): void {
  const readList = prepareList(options.schema, route.list);

  app.route({
    method: app.supportedMethods,
    url: route.path,
    // Before the body is read: a method that is not allowed must not fail for its body first.
    onRequest: async (request, reply) => {
      reply.header('Allow', route.allow).header('Vary', 'Accept');
      baseUrlOf(request, options);
      if (!acceptsJson(request.headers.accept)) throw notAcceptable();
      if (request.method === 'OPTIONS') return send(reply, 200, describe(route));
      if (request.method !== 'GET' && request.method !== 'HEAD')
        throw methodNotAllowed(request.method);
    },
    handler: async (request, reply) =>
      send(reply, 200, await readEnvelope(route, readList, request, options)),
  });

  app.route({
    method: app.supportedMethods,
    url: route.path.slice(0, -1),
    onRequest: async (request, reply) => {
      const permanent = request.method === 'GET' || request.method === 'HEAD' ? 301 : 308;
      const query = rawQuery(request);
      return reply.redirect(`${route.path}${query && `?${query}`}`, permanent);
    },
    handler: () => {},
  });
}

async function readEnvelope(
  route: Route,
  readList: ListReader,
  request: FastifyRequest,
  options: RestOptions,
) {
  const parameters = parseQuery(rawQuery(request));
  const { count, next, previous, results } = await readList(
    parameters,
    options.createContext(request),
  );
  const link = (page: number | null) =>
    page &&
    `${baseUrlOf(request, options)}${route.path}?${formatQuery(parameters, 'page', String(page))}`;
  return { count, next: link(next), previous: link(previous), results };
}

function baseUrlOf(request: FastifyRequest, { publicUrl }: RestOptions): string {
  return publicUrl ?? readBaseUrl(request);
}

/** What follows the first `?` of the request target, undecoded, up to a fragment that does not belong. */
function rawQuery({ raw }: FastifyRequest): string {
  return /^[^?]*\?([^#]*)/.exec(raw.url ?? '')?.[1] ?? '';
}

/** The metadata that OPTIONS answers. */
function describe({ name, description }: Route) {
  return {
    name,
    description,
    renders: ['application/json'],
    parses: ['application/json', 'application/x-www-form-urlencoded'],
  };
}

function sendError(reply: FastifyReply, { statusCode, body }: RestError): FastifyReply {
  return send(reply, statusCode, body);
}

function send(reply: FastifyReply, statusCode: number, body: unknown): FastifyReply {
  return reply.code(statusCode).header('Content-Type', 'application/json').send(encodeJson(body));
}

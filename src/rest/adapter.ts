import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { GraphQLSchema } from 'graphql';
import { LRUCache } from 'lru-cache';
import type { Admit } from '../admission/admission.ts';
import type { Answer, AnswerCache } from '../cache/answer-cache.ts';
import { entityTag, sendIfUnchanged } from '../conditional.ts';
import type { Context } from '../graphql/context.ts';
import type { Viewer } from '../identity/viewer.ts';
import { Refusal } from '../refusal.ts';
import type { StartWork, Waiter } from '../work.ts';
import { acceptsJson } from './accept.ts';
import { readBaseUrl } from './base-url.ts';
import { internalError, methodNotAllowed, notAcceptable, notFound, RestError } from './errors.ts';
import { encodeJson } from './json.ts';
import { type PreparedList, prepareList } from './list-document.ts';
import { formatQuery, parseQuery, type QueryParameters } from './query-string.ts';
import type { Page, Route } from './routes.ts';

export interface RestOptions {
  readonly schema: GraphQLSchema;
  readonly routes: readonly Route[];
  /** Base of the links; undefined: the request's own scheme and host. */
  readonly publicUrl: string | undefined;
  readonly cache: AnswerCache;
  readonly admit: Admit;
  readonly createContext: (viewer: Viewer | undefined) => Context;
  readonly startWork: StartWork;
}

/** Serves the legacy paths, which all begin with `/api/`. */
export async function serveRest(app: FastifyInstance, options: RestOptions): Promise<void> {
  app.setErrorHandler((error, request, reply) => {
    if (error instanceof RestError) return sendError(reply, error);
    if (error instanceof Refusal) {
      if (error.cause) request.log.error({ err: error.cause }, error.message);
      return send(reply.headers(error.headers), error.status, { detail: error.message });
    }
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
  const list = prepareList(options.schema, route.list);
  const readRequest = rememberRequests(route, list);

  app.route({
    method: app.supportedMethods,
    url: route.path,
    // Before the body is read: a method that is not allowed must not fail for its body first.
    onRequest: async (request, reply) => {
      reply.header('Allow', route.allow).header('Vary', 'Accept');
      const base = baseUrlOf(request, options);
      if (!acceptsJson(request.headers.accept)) throw notAcceptable();
      const context = options.createContext(await options.admit(request));
      if (request.method === 'OPTIONS') return send(reply, 200, describe(route));
      if (request.method !== 'GET' && request.method !== 'HEAD') {
        throw methodNotAllowed(request.method);
      }
      const asked = readRequest(rawQuery(request));
      const page = await readPage(asked, list, context, options, reply.raw);
      const { body, tag } = encloseFor(`${base}${route.path}`, page, asked);
      if (sendIfUnchanged(request, reply, tag, context.visibility.private !== 'own')) return reply;
      return sendBytes(reply, 200, body);
    },
    handler: () => {},
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

/** What a query string asks for. */
interface Asked {
  readonly query: string;
  readonly parameters: QueryParameters;
  readonly variables: Record<string, unknown>;
  /** Names the page in the cache: what is not a variable does not matter to it. */
  readonly key: string;
}

/** Query strings are few and come again: reading one anew took as long as sending the page. */
function rememberRequests(route: Route, list: PreparedList): (query: string) => Asked {
  const known = new LRUCache<string, Asked>({ maxSize: 1_000_000 });
  return (query) => {
    const remembered = known.get(query);
    if (remembered) return remembered;
    const parameters = parseQuery(query);
    const variables = list.readVariables(parameters);
    const asked = {
      query,
      parameters,
      variables,
      key: `${route.path} ${JSON.stringify(variables)}`,
    };
    known.set(query, asked, { size: 1000 + 4 * query.length });
    return asked;
  };
}

/** A page as it is kept: what does not depend on the address and parameters of a request. */
interface KeptPage extends Answer, Omit<Page, 'results'> {
  /** The JSON of the records. */
  readonly results: Buffer;
  readonly resultsTag: string;
  /** The envelope of the latest request: most clients use the same address. */
  latest?: Envelope;
}

interface Envelope {
  /** The address whose links it has. */
  readonly address: string;
  readonly body: Buffer;
  readonly tag: string;
}

async function readPage(
  { key, variables }: Asked,
  list: PreparedList,
  context: Context,
  { cache, startWork }: RestOptions,
  waiter: Waiter,
): Promise<KeptPage> {
  const read = async () => {
    const { count, next, previous, results } = await list.readPage(variables, context);
    const bytes = encodeJson(results);
    return {
      count,
      next,
      previous,
      results: bytes,
      resultsTag: entityTag(bytes),
      size: 2 * bytes.length,
      shareable: true,
    };
  };
  // What a viewer alone sees is given to nobody else.
  return context.visibility.private === 'own'
    ? startWork(read).join(waiter)
    : cache.get(key, read, waiter);
}

function encloseFor(path: string, page: KeptPage, { query, parameters }: Asked): Envelope {
  const address = `${path}?${query}`;
  if (page.latest?.address !== address) {
    const link = (number: number | null) =>
      number === null ? null : `${path}?${formatQuery(parameters, 'page', String(number))}`;
    const { count, next, previous } = page;
    const empty = { count, next: link(next), previous: link(previous), results: null };
    const head = JSON.stringify(empty).slice(0, -'null}'.length);
    page.latest = {
      address,
      body: Buffer.concat([Buffer.from(head), page.results, Buffer.from('}')]),
      tag: entityTag(head, page.resultsTag),
    };
  }
  return page.latest;
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
  return sendBytes(reply, statusCode, encodeJson(body));
}

function sendBytes(reply: FastifyReply, statusCode: number, bytes: Buffer): FastifyReply {
  return reply.code(statusCode).header('Content-Type', 'application/json').send(bytes);
}

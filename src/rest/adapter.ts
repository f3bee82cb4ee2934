// REST adapter: adds the routes of the table to Fastify. The order of errors is part of the contract.

import type { FastifyInstance, FastifyReply } from 'fastify';
import type { GraphQLSchema } from 'graphql';
import { type Admit, type GuardWrite, RequestCaller } from '../admission/admission.ts';
import type { Config } from '../config/config.ts';
import type { Engine } from '../graphql/engine.ts';
import {
  announceDeprecation,
  type DeprecationConfig,
  rawQuery,
  readBaseUrl,
} from '../http/headers.ts';
import {
  acceptsJson,
  encodeJson,
  type Representable,
  sendRepresentation,
} from '../http/representation.ts';
import { mediaTypes, readBody, storeCreate } from './create.ts';
import { describeFields, findField } from './describe.ts';
import { createReader } from './documents.ts';
import {
  answerErrors,
  internalError,
  methodNotAllowed,
  notAcceptable,
  notFound,
  RestError,
  send,
} from './errors.ts';
import type { DocumentOptions } from './openapi/document.ts';
import { allowOf, type Route } from './routes.ts';
import { fillPath, type PathParameters } from './variables.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Waits for the turn of its sender on the processor: a page is rendered from the answer. */
    waitForTurn?: () => Promise<void>;
  }
  interface FastifyContextConfig {
    /** Query parameters that the route reads. */
    readonly knownParameters?: ReadonlySet<string>;
    /** Whether the values in the path fit its parameters; otherwise it is no path of this service. */
    readonly hasPath?: (parameters: Readonly<Record<string, string>>) => boolean;
  }
}

export interface RestOptions {
  readonly engine: Engine;
  readonly schema: GraphQLSchema;
  readonly routes: readonly Route[];
  readonly admit: Admit;
  readonly guardWrite: GuardWrite;
  /** `publicUrl` is the base of links; undefined: the scheme and host of the request. */
  readonly config: DeprecationConfig & Pick<Config, 'compression' | 'pageSize'>;
}

export async function serveRest(app: FastifyInstance, options: RestOptions): Promise<void> {
  const { publicUrl } = options.config;
  announceDeprecation(app, options.config);
  // `readBody` parses bodies, after the checks that need none.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));

  answerErrors(app);
  serveRoutes(app, options);

  app.route({
    method: app.supportedMethods,
    url: '/api/*',
    onRequest: async (request) => {
      readBaseUrl(request, publicUrl);
      throw notFound();
    },
    handler: () => {},
  });
}

/** The table of paths, without what only `/api/` has. */
export function serveRoutes(app: FastifyInstance, options: RestOptions): void {
  for (const route of options.routes) {
    addRoute(app, route, options);
    if (route.path !== '/') addRedirect(app, route, options.config.publicUrl);
  }
}

function addRoute(app: FastifyInstance, route: Route, options: RestOptions): void {
  const { engine, schema, admit, config, guardWrite } = options;
  const allow = allowOf(route);
  const compresses = config.compression === 'all';
  const vary = compresses ? 'Accept, Accept-Encoding' : 'Accept';
  const read = createReader(engine, route, config);
  const create = route.create && storeCreate(engine, route.create);
  const { name, description } = route;
  const metadata = { name, description, renders: ['application/json'], parses: mediaTypes };
  const created = route.create && findField(schema, route.create.document, 'created', 'record');
  const actions = created && { POST: describeFields(schema, created, route.create.fields) };

  app.route({
    method: app.supportedMethods,
    url: route.path,
    config: { knownParameters: route.parameters, hasPath: createPathTest(route) },
    // Before the body is read: the error of the method has precedence.
    onRequest: async (request, reply) => {
      reply.header('allow', allow).header('vary', vary);
      const base = readBaseUrl(request, config.publicUrl);
      if (!acceptsJson(request.headers.accept)) throw notAcceptable();
      const isCreate = create !== undefined && request.method === 'POST';
      // Before authentication: the answer is the same for all viewers.
      if (isCreate) guardWrite();
      const admitted = admit(request, reply, isCreate);
      if (admitted) request.viewer = await admitted;
      if (isCreate) guardWrite(request.viewer);
      if (request.method === 'OPTIONS') {
        return send(reply, 200, request.viewer && actions ? { ...metadata, actions } : metadata);
      }
      if (isCreate) return;
      if (request.method !== 'GET' && request.method !== 'HEAD') {
        throw methodNotAllowed(request.method);
      }
      const answer = await read(request, base, new RequestCaller(request));
      if (request.waitForTurn) await request.waitForTurn();
      if (answer.headers) addHeaders(reply, answer.headers);
      return sendRepresentation(request, reply, answer, compresses);
    },
    handler: async (request, reply) => {
      if (!create) throw internalError();
      const body = readBody(request.headers, request.body as Buffer | undefined);
      return send(reply, 201, await create(body, new RequestCaller(request)));
    },
  });
}

/** Whether the variables in a path can be read: `/api/outfits/popular/` may be a path of the old service. */
function createPathTest({ readVariables }: Route) {
  return (parameters: PathParameters): boolean => {
    try {
      readVariables([], parameters);
      return true;
    } catch (error) {
      return !(error instanceof RestError) || error.statusCode !== 404;
    }
  };
}

/** `Link` may have the successor of a deprecated path. */
function addHeaders(reply: FastifyReply, headers: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(headers)) {
    const before = reply.getHeader(name);
    reply.header(name, before === undefined ? value : `${before}, ${value}`);
  }
}

/** From the path with the slash to that without, or the other way round. */
function addRedirect(app: FastifyInstance, { path }: Route, publicUrl: string | undefined): void {
  app.route({
    method: app.supportedMethods,
    url: path.endsWith('/') ? path.slice(0, -1) : `${path}/`,
    onRequest: async (request, reply) => {
      readBaseUrl(request, publicUrl);
      const permanent = request.method === 'GET' || request.method === 'HEAD' ? 301 : 308;
      const query = rawQuery(request.raw);
      const target = fillPath(path, request.params as PathParameters);
      return reply.redirect(`${target}${query && `?${query}`}`, permanent);
    },
    handler: () => {},
  });
}

export function serveOpenApi(
  app: FastifyInstance,
  options: RestOptions & DocumentOptions,
  url = '/api/openapi.json',
): void {
  const { admit, config } = options;
  const compresses = config.compression !== 'off';
  let document: Representable | undefined;
  announceDeprecation(app, config);
  answerErrors(app);
  app.route({
    method: app.supportedMethods,
    url,
    onRequest: async (request, reply) => {
      reply.header('Allow', 'GET, HEAD');
      if (compresses) reply.header('Vary', 'Accept-Encoding');
      readBaseUrl(request, config.publicUrl);
      const { method } = request;
      if (method !== 'GET' && method !== 'HEAD') throw methodNotAllowed(method);
      await admit(request, reply);
      if (!document) {
        const { createDocument } = await import('./openapi/document.ts');
        document = { body: encodeJson(createDocument(options)) };
      }
      return sendRepresentation(request, reply, document, compresses);
    },
    handler: () => {},
  });
}

// The legacy paths over HTTP: the table becomes routes. The order of errors is the contract's.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { GraphQLSchema } from 'graphql';
import type { Admit } from '../admission/admission.ts';
import type { Viewer } from '../admission/viewer.ts';
import { httpErrorFor } from '../database/errors.ts';
import type { Asker, Engine } from '../graphql/engine.ts';
import { sendIfUnchanged } from '../http/etag.ts';
import { encodeJson } from '../http/json.ts';
import { acceptsJson } from './accept.ts';
import { readBaseUrl } from './base-url.ts';
import { mediaTypes, readBody } from './body.ts';
import { storeCreate } from './create-document.ts';
import { describeRecord } from './describe.ts';
import {
  bodyTooLarge,
  internalError,
  methodNotAllowed,
  notAcceptable,
  notFound,
  RestError,
  unreadableBody,
  unsupportedMediaType,
} from './errors.ts';
import { storeList } from './list-document.ts';
import { encloseFor, readPage, rememberRequests } from './page-answers.ts';
import { parseQuery } from './query-string.ts';
import { storeRecord } from './record-document.ts';
import { allowOf, type Route } from './routes.ts';
import type { PathParameters } from './variables.ts';

export interface RestOptions {
  readonly schema: GraphQLSchema;
  readonly routes: readonly Route[];
  readonly engine: Engine;
  readonly admit: Admit;
  readonly askerOf: (request: FastifyRequest, viewer: Viewer | undefined) => Asker;
  /** `publicUrl` is the base of the links; undefined: the request's own scheme and host. */
  readonly config: { readonly publicUrl: string | undefined };
}

/** Serves the legacy paths, which all begin with `/api/`. */
export async function serveRest(app: FastifyInstance, options: RestOptions): Promise<void> {
  const { publicUrl } = options.config;
  // Bodies are read by their own rules, once it is known that they are wanted.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));

  app.setErrorHandler<{ statusCode?: number }>((error, request, reply) => {
    if (error instanceof RestError) return sendError(reply, error);
    if (error.statusCode === 413) return sendError(reply, bodyTooLarge());
    if (error.statusCode === 415) {
      return sendError(reply, unsupportedMediaType(request.headers['content-type'] ?? ''));
    }
    if (error.statusCode === 400) return sendError(reply, unreadableBody());
    const httpError = httpErrorFor(error);
    if (httpError) {
      app.logHttpError(request.log, httpError);
      return send(reply.headers(httpError.headers), httpError.status, {
        detail: httpError.message,
      });
    }
    request.log.error({ err: error }, 'unexpected error');
    return sendError(reply, internalError());
  });

  for (const route of options.routes) {
    addRoute(app, route, options);
    addRedirect(app, route, publicUrl);
  }

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

function addRoute(app: FastifyInstance, route: Route, options: RestOptions): void {
  const { engine, schema, admit, askerOf, config } = options;
  const allow = allowOf(route);
  const read = createReader(route, options);
  const create = route.create && storeCreate(engine, schema, route.create);
  const fields = route.create && create && describeRecord(schema, route.create, create.fields);

  app.route({
    method: app.supportedMethods,
    url: route.path,
    // Before the body is read: a method that is not allowed must not fail for its body first.
    onRequest: async (request, reply) => {
      reply.header('Allow', allow).header('Vary', 'Accept');
      const base = readBaseUrl(request, config.publicUrl);
      if (!acceptsJson(request.headers.accept)) throw notAcceptable();
      const isCreate = create !== undefined && request.method === 'POST';
      request.viewer = await admit(request, isCreate);
      if (request.method === 'OPTIONS') {
        return send(reply, 200, describe(route, request.viewer && fields));
      }
      if (isCreate) return;
      if (request.method !== 'GET' && request.method !== 'HEAD') {
        throw methodNotAllowed(request.method);
      }
      const { body, tag, shareable } = await read(request, base, askerOf(request, request.viewer));
      if (sendIfUnchanged(request, reply, tag, shareable)) return reply;
      return sendBytes(reply, 200, body);
    },
    // Only POST comes as far as here.
    handler: async (request, reply) => {
      if (!create) throw internalError();
      const body = readBody(request.headers, request.body as Buffer | undefined);
      return send(reply, 201, await create.create(body, askerOf(request, request.viewer)));
    },
  });
}

interface Found {
  readonly body: Buffer;
  readonly tag: string;
  readonly shareable: boolean;
}

/** What answers GET and HEAD of a path. */
function createReader(
  route: Route,
  { engine, schema }: RestOptions,
): (request: FastifyRequest, base: string, asker: Asker) => Promise<Found> {
  const { list, record, path } = route;
  if (list) {
    const document = storeList(engine, schema, list);
    const readRequest = rememberRequests(route, document);
    return async (request, base, asker) => {
      const asked = readRequest(rawQuery(request));
      const page = await readPage(engine, document, asked, asker);
      return { ...encloseFor(`${base}${path}`, page, asked), shareable: page.shareable };
    };
  }
  if (!record) throw new Error(`The path ${path} has neither a list nor a record.`);
  const readRecord = storeRecord(engine, schema, { ...route, record });
  return (request, _base, asker) =>
    readRecord(parseQuery(rawQuery(request)), request.params as PathParameters, asker);
}

/** The path without its slash leads to the one with it. */
function addRedirect(app: FastifyInstance, { path }: Route, publicUrl: string | undefined): void {
  app.route({
    method: app.supportedMethods,
    url: path.slice(0, -1),
    onRequest: async (request, reply) => {
      readBaseUrl(request, publicUrl);
      const permanent = request.method === 'GET' || request.method === 'HEAD' ? 301 : 308;
      const query = rawQuery(request);
      const parameters = request.params as PathParameters;
      const target = path.replace(/:(\w+)/g, (_all, name: string) =>
        encodeURIComponent(parameters[name] ?? ''),
      );
      return reply.redirect(`${target}${query && `?${query}`}`, permanent);
    },
    handler: () => {},
  });
}

/** What follows the first `?` of the request target, undecoded, up to a fragment that does not belong. */
function rawQuery({ raw }: FastifyRequest): string {
  return /^[^?]*\?([^#]*)/.exec(raw.url ?? '')?.[1] ?? '';
}

/** The metadata that OPTIONS answers, with the fields of POST for whoever may send it. */
function describe({ name, description }: Route, fields: object | undefined) {
  return {
    name,
    description,
    renders: ['application/json'],
    parses: mediaTypes,
    ...(fields ? { actions: { POST: fields } } : {}),
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

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { GraphQLSchema } from 'graphql';
import type { Admit } from '../admission/admission.ts';
import type { Viewer } from '../admission/viewer.ts';
import type { AnswerCache } from '../cache/answer-cache.ts';
import { httpErrorFor } from '../database/errors.ts';
import type { StartTask } from '../database/task.ts';
import type { Context } from '../graphql/context.ts';
import { sendIfUnchanged } from '../http/etag.ts';
import { encodeJson } from '../http/json.ts';
import { acceptsJson } from './accept.ts';
import { readBaseUrl } from './base-url.ts';
import { mediaTypes, readBody } from './body.ts';
import { prepareCreate } from './create-document.ts';
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
import { prepareList } from './list-document.ts';
import { encloseFor, readPage, rememberRequests } from './page-answers.ts';
import type { Route } from './routes.ts';

export interface RestOptions {
  readonly schema: GraphQLSchema;
  readonly routes: readonly Route[];
  /** Base of the links; undefined: the request's own scheme and host. */
  readonly publicUrl: string | undefined;
  readonly cache: AnswerCache;
  readonly admit: Admit;
  readonly createContext: (request: FastifyRequest, viewer: Viewer | undefined) => Context;
  readonly startTask: StartTask;
}

/** Serves the legacy paths, which all begin with `/api/`. */
export async function serveRest(app: FastifyInstance, options: RestOptions): Promise<void> {
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

  for (const route of options.routes) addRoute(app, route, options);

  app.route({
    method: app.supportedMethods,
    url: '/api/*',
    onRequest: async (request) => {
      readBaseUrl(request, options.publicUrl);
      throw notFound();
    },
    handler: () => {},
  });
}

function addRoute(app: FastifyInstance, route: Route, options: RestOptions): void {
  const list = prepareList(options.schema, route.list);
  const readRequest = rememberRequests(route, list);
  const create = route.create && prepareCreate(options.schema, route.create);
  const fields =
    route.create && create && describeRecord(options.schema, route.create, create.fields);
  const contexts = new WeakMap<FastifyRequest, Context>();

  app.route({
    method: app.supportedMethods,
    url: route.path,
    // Before the body is read: a method that is not allowed must not fail for its body first.
    onRequest: async (request, reply) => {
      reply.header('Allow', route.allow).header('Vary', 'Accept');
      const base = readBaseUrl(request, options.publicUrl);
      if (!acceptsJson(request.headers.accept)) throw notAcceptable();
      const isCreate = create !== undefined && request.method === 'POST';
      const viewer = await options.admit(request, isCreate);
      const context = options.createContext(request, viewer);
      if (request.method === 'OPTIONS') {
        return send(reply, 200, describe(route, context.viewer && fields));
      }
      if (isCreate) {
        contexts.set(request, context);
        return;
      }
      if (request.method !== 'GET' && request.method !== 'HEAD') {
        throw methodNotAllowed(request.method);
      }
      const asked = readRequest(rawQuery(request));
      const page = await readPage(asked, list, context, options, request);
      const { body, tag } = encloseFor(`${base}${route.path}`, page, asked);
      if (sendIfUnchanged(request, reply, tag, context.isShareable)) return reply;
      return sendBytes(reply, 200, body);
    },
    // Only POST comes as far as here.
    handler: async (request, reply) => {
      const context = contexts.get(request);
      if (!context || !create) throw internalError();
      const body = readBody(request.headers, request.body as Buffer | undefined);
      const work = options.startTask(() => create.create(body, context));
      return send(reply, 201, await work.wait(request));
    },
  });

  app.route({
    method: app.supportedMethods,
    url: route.path.slice(0, -1),
    onRequest: async (request, reply) => {
      readBaseUrl(request, options.publicUrl);
      const permanent = request.method === 'GET' || request.method === 'HEAD' ? 301 : 308;
      const query = rawQuery(request);
      return reply.redirect(`${route.path}${query && `?${query}`}`, permanent);
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

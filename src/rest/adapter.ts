// The legacy paths over HTTP: the table becomes routes. The order of errors is the contract's.
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { GraphQLSchema } from 'graphql';
import type { Admit } from '../admission/admission.ts';
import type { Viewer } from '../admission/viewer.ts';
import type { GuardWrite } from '../admission/write-guard.ts';
import type { Config } from '../config.ts';
import type { Asker, Engine } from '../graphql/engine.ts';
import { type Compressible, findForm } from '../http/compression.ts';
import { sendForm } from '../http/send-form.ts';
import { acceptsJson } from './accept.ts';
import { readBaseUrl } from './base-url.ts';
import { mediaTypes, readBody } from './body.ts';
import { storeCreate } from './create-document.ts';
import { announceDeprecation, type DeprecationConfig } from './deprecation.ts';
import { describeRecord } from './describe.ts';
import { internalError, methodNotAllowed, notAcceptable, notFound } from './errors.ts';
import {
  type CheckParameters,
  createParameterCheck,
  knownParametersOf,
} from './known-parameters.ts';
import { storeList } from './list-document.ts';
import { encloseFor, readPage, rememberRequests } from './page-answers.ts';
import { parseQuery } from './query-string.ts';
import { storeRecord } from './record-document.ts';
import { allowOf, type Route } from './routes.ts';
import { answerErrors, send } from './send.ts';
import type { PathParameters } from './variables.ts';

export interface RestOptions {
  readonly schema: GraphQLSchema;
  readonly routes: readonly Route[];
  readonly engine: Engine;
  readonly admit: Admit;
  readonly guardWrite: GuardWrite;
  readonly askerOf: (request: FastifyRequest, viewer: Viewer | undefined) => Asker;
  /** `publicUrl` is the base of the links; undefined: the request's own scheme and host. */
  readonly config: DeprecationConfig & Pick<Config, 'compression' | 'unknownParameters'>;
}

/** Serves the legacy paths, which all begin with `/api/`. */
export async function serveRest(app: FastifyInstance, options: RestOptions): Promise<void> {
  const { publicUrl } = options.config;
  announceDeprecation(app, options.config);
  // Bodies are read by their own rules, once it is known that they are wanted.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));

  answerErrors(app);

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
  const { engine, schema, admit, askerOf, config, guardWrite } = options;
  const allow = allowOf(route);
  const knownParameters = knownParametersOf(route);
  const compresses = config.compression === 'all';
  const vary = varyOf(config.compression);
  const check = createParameterCheck(knownParameters, config.unknownParameters);
  const read = createReader(route, options, check);
  const create = route.create && storeCreate(engine, schema, route.create);
  const fields = route.create && create && describeRecord(schema, route.create, create.fields);

  app.route({
    method: app.supportedMethods,
    url: route.path,
    config: { knownParameters },
    // Before the body is read: a method that is not allowed must not fail for its body first.
    onRequest: async (request, reply) => {
      reply.header('Allow', allow).header('Vary', vary);
      const base = readBaseUrl(request, config.publicUrl);
      if (!acceptsJson(request.headers.accept)) throw notAcceptable();
      const isCreate = create !== undefined && request.method === 'POST';
      // Before anyone is asked who they are: it is the same answer for all.
      if (isCreate) guardWrite();
      request.viewer = await admit(request, isCreate);
      if (request.method === 'OPTIONS') {
        return send(reply, 200, describe(route, request.viewer && fields));
      }
      if (isCreate) return;
      if (request.method !== 'GET' && request.method !== 'HEAD') {
        throw methodNotAllowed(request.method);
      }
      const { answer, shareable } = await read(request, base, askerOf(request, request.viewer));
      const form = await findForm(answer, request, compresses && shareable);
      return sendForm(request, reply, form, {
        contentType: 'application/json',
        tag: answer.tag,
        shareable,
      });
    },
    // Only POST comes as far as here.
    handler: async (request, reply) => {
      if (!create) throw internalError();
      const body = readBody(request.headers, request.body as Buffer | undefined);
      return send(reply, 201, await create.create(body, askerOf(request, request.viewer)));
    },
  });
}

/** The `Vary` header of the legacy paths. */
export function varyOf(compression: Config['compression']): string {
  return compression === 'all' ? 'Accept, Accept-Encoding' : 'Accept';
}

interface Found {
  readonly answer: Compressible & { readonly tag: string };
  readonly shareable: boolean;
}

/** What answers GET and HEAD of a path. */
function createReader(
  route: Route,
  { engine, schema }: RestOptions,
  check: CheckParameters,
): (request: FastifyRequest, base: string, asker: Asker) => Promise<Found> {
  const { list, record, path } = route;
  if (list) {
    const document = storeList(engine, schema, list);
    const readRequest = rememberRequests(route, document, check);
    return async (request, base, asker) => {
      const asked = readRequest(rawQuery(request));
      const page = await readPage(engine, document, asked, asker);
      return { answer: encloseFor(`${base}${path}`, page, asked), shareable: page.shareable };
    };
  }
  if (!record) throw new Error(`The path ${path} has neither a list nor a record.`);
  const readRecord = storeRecord(engine, schema, { ...route, record });
  return async (request, _base, asker) => {
    const parameters = parseQuery(rawQuery(request));
    check(parameters);
    const answer = await readRecord(parameters, request.params as PathParameters, asker);
    return { answer, shareable: answer.shareable };
  };
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

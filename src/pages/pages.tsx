// BROWSABLE: pages for people. A page renders the JSON answer of the same request, so that both have the same content.

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { print, separateOperations } from 'graphql';
import { LRUCache } from 'lru-cache';
import { appendVary, rawQuery, readBaseUrl, requestIdHeader } from '../http/headers.ts';
import {
  codedTag,
  entityTag,
  matchesIfNoneMatch,
  prefersHtml,
  type Representable,
  selectAtOnce,
} from '../http/representation.ts';
import { serveOpenApi, serveRoutes } from '../rest/adapter.ts';
import { answerErrors, RestError } from '../rest/errors.ts';
import type { Route } from '../rest/routes.ts';
import { type PathParameters, parseQuery, type QueryParameters } from '../rest/variables.ts';
import { ApiPage } from './api-page.tsx';
import { createBrowseRoutes, ErrorPage, HomePage, OutfitPage, OutfitsPage } from './browse.tsx';
import { DocsPage } from './docs-page.tsx';
import {
  linksOf,
  type PagesOptions,
  pageHeaders,
  type Site,
  toHtml,
  writingOf,
} from './parts/layout.tsx';

const views: Readonly<Record<string, typeof OutfitPage>> = {
  '/': HomePage,
  '/outfits/': OutfitsPage,
  '/outfits/:id': OutfitPage,
  '/api/docs': DocsPage,
};

interface Page extends Representable {
  readonly tag: string;
}

export class Pages {
  readonly #options: PagesOptions;
  /** Rendering takes ten times as long as the JSON answer, and bursts request the same page. */
  readonly #cache = new LRUCache<string, Page>({
    // About a hundred pages, with their compressed representations.
    maxSize: 16_000_000,
    sizeCalculation: ({ body }) => 2 * body.length,
  });
  readonly #browseRoutes: readonly Route[];
  readonly #routes: ReadonlyMap<string, Route>;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(options: PagesOptions) {
    const { config, schema, routes } = options;
    this.#options = options;
    this.#browseRoutes = createBrowseRoutes(schema);
    this.#routes = new Map([...routes, ...this.#browseRoutes].map((route) => [route.path, route]));
    this.#headers = pageHeaders(config.mediaUrl, config.videoUrl);
  }

  /** Answers requests of `app` that prefer HTML by the page of their JSON. Call it before the routes are added. */
  show(app: FastifyInstance): void {
    const requests = new WeakSet<FastifyRequest>();
    app.addHook('onRequest', (request, _reply, done) => {
      if (!prefersHtml(request.headers.accept)) return done();
      requests.add(request);
      // The routes then see a request for a complete JSON answer: they know nothing of pages.
      request.headers = {
        accept: 'application/json',
        'accept-encoding': undefined,
        'if-none-match': undefined,
      };
      // Before the work for it, and before it is rendered, as one read may be the answer to many.
      request.waitForTurn = async () => this.#options.takeTurn(request);
      request.waitForTurn().then(() => done());
    });
    // With a callback instead of a promise: this hook is on the hot path.
    app.addHook('onSend', (request, reply, payload, done) => {
      if (!requests.has(request)) return done(null, payload);
      const isJson = reply.getHeader('content-type') === 'application/json';
      if (!isJson || !(payload instanceof Buffer)) return done(null, payload);
      const location = reply.statusCode === 200 ? this.#withoutEmptyFields(request) : undefined;
      if (location !== undefined) {
        reply.code(302).header('Location', location);
        reply.removeHeader('ETag').removeHeader('Content-Type');
        return done(null, null);
      }
      // Synchronous: Fastify would continue with a request whose client disconnects meanwhile.
      try {
        payload = this.#send(app, request, reply, payload);
      } catch (error) {
        return done(error as Error);
      }
      done(null, payload);
    });
  }

  /** Replaces the headers of the JSON by those of its page. Returns the body; null for a 304. */
  #send(
    app: FastifyInstance,
    request: FastifyRequest,
    reply: FastifyReply,
    json: Buffer,
  ): Buffer | null {
    const page = this.#pageOf(app, request, reply, json);
    const compresses = this.#options.config.compression !== 'off';
    const { 'accept-encoding': accepted, 'if-none-match': known } = request.raw.headers;
    // A page of one viewer shows text of others and of the address beside it: its length would tell them apart (BREACH).
    const isPrivate = /private/.test(String(reply.getHeader('Cache-Control')));
    const coding = compresses && !isPrivate ? accepted?.toString() : undefined;
    const { bytes, encoding } = selectAtOnce(page, coding);
    const vary = reply.getHeader('Vary')?.toString() ?? '';
    if (!/\baccept\b(?!-)/i.test(vary)) reply.header('Vary', vary ? `Accept, ${vary}` : 'Accept');
    if (compresses && !/accept-encoding/i.test(vary)) appendVary(reply, 'Accept-Encoding');
    reply.removeHeader('ETag').headers(this.#headers);
    if (reply.statusCode === 200 && ['GET', 'HEAD'].includes(request.method)) {
      reply.header('ETag', codedTag(page.tag, encoding));
      if (matchesIfNoneMatch(known, page.tag)) {
        reply.code(304).removeHeader('Content-Type');
        return null;
      }
    }
    if (encoding) reply.header('Content-Encoding', encoding);
    return bytes;
  }

  /** The paths of the pages. */
  serve(app: FastifyInstance): void {
    const { publicUrl } = this.#options.config;
    answerErrors(app);
    this.show(app);
    serveRoutes(app, { ...this.#options, routes: this.#browseRoutes });
    app.register(async (inner) => serveOpenApi(inner, this.#options, '/api/docs'));
    const redirect = (url: string, to: string) =>
      app.get<{ Params: { id?: string } }>(
        url,
        { exposeHeadRoute: true },
        async (request, reply) => {
          readBaseUrl(request, publicUrl);
          return reply.redirect(to + encodeURIComponent(request.params.id ?? ''), 301);
        },
      );
    redirect('/api/docs/', '/api/docs');
    for (const end of ['', '/']) redirect(`/users/:id(^\\d+$)${end}`, '/outfits/?user=');
  }

  /** The list of a form, which sends its empty fields too, at an address without them. */
  #withoutEmptyFields({ method, raw, routeOptions }: FastifyRequest): string | undefined {
    if (routeOptions.url !== '/outfits/' || !/^(?:GET|HEAD)$/.test(method)) return undefined;
    const parameters = [...new URLSearchParams(`?${rawQuery(raw)}`)];
    // Of a repeated name, an empty value may be the one that counts.
    const filled = new Set(parameters.filter(([, value]) => value !== '').map(([name]) => name));
    const given = parameters.filter(([name]) => filled.has(name));
    if (given.length === parameters.length) return undefined;
    const query = given.length > 0 ? `?${new URLSearchParams(given)}` : '';
    return `${this.#options.config.publicUrl ?? ''}/outfits/${query}`;
  }

  #siteOf(app: FastifyInstance): Site {
    const { config, routes, drawsPictures, guardWrite } = this.#options;
    const root = config.publicUrl ?? '';
    const { mediaUrl: pictures, videoUrl: videos } = config;
    const media = { pictures, videos, drawn: drawsPictures ? `${root}/media` : undefined };
    const writing = writingOf(config, guardWrite);
    return { root, config, media, writing, links: linksOf(app, routes, config) };
  }

  /** The cached or rendered page of an answer. */
  #pageOf(
    app: FastifyInstance,
    request: FastifyRequest,
    reply: FastifyReply,
    payload: Buffer,
  ): Page {
    const { statusCode: status } = reply;
    const headers = Object.entries({ ...reply.getHeaders(), 'content-length': payload.length });
    const head = {
      // HEAD has the headers of GET, and so the same page.
      method: request.method === 'HEAD' ? 'GET' : request.method,
      target: request.raw.url ?? '',
      status,
      headers: headers
        // Useful with an error. On other pages it would be the only change, and prevent caching.
        .filter(([name]) => status >= 400 || name !== requestIdHeader)
        .map(([name, value]) => [name, String(value)] as const),
    };
    // The Host of a request with an error may be invalid.
    const base = status < 400 ? readBaseUrl(request, this.#options.config.publicUrl) : '';
    const site = this.#siteOf(app);
    const shown = JSON.stringify([head, base, site.writing, entityTag(payload)]);
    const key = status === 200 ? entityTag(shown) : undefined;
    const cached = key && this.#cache.get(key);
    if (cached) return cached;
    const { url = '' } = request.routeOptions;
    const route = this.#routes.get(url);
    const parameters = parseQuery(rawQuery(request.raw));
    const answer = { ...head, json: JSON.parse(payload.toString('utf8')) };
    const inGraphiQL =
      route &&
      site.config.graphiql &&
      translate(route, parameters, request.params as PathParameters);
    const graphiql = inGraphiQL ? site.root + inGraphiQL : undefined;
    const isRest = /^\/api(?:\/|$)/.test(head.target) || (route && !views[route.path]);
    // OPTIONS has a description instead of what its page shows.
    const shows = status < 400 && (head.method === 'GET' ? views[url] : ApiPage);
    const View = shows || (isRest ? ApiPage : ErrorPage);
    const body = Buffer.from(
      toHtml(<View {...{ site, answer, route, parameters, graphiql, base }} />),
    );
    const page = { body, tag: entityTag(body) };
    if (key) this.#cache.set(key, page);
    return page;
  }
}

/** The GraphQL request that is equivalent to a REST request, as an address of GraphiQL; undefined: it is invalid. */
function translate(
  { document, operation, readVariables }: Route,
  parameters: QueryParameters,
  path: PathParameters,
): string | undefined {
  // Without operations and fragments that it does not use.
  const own = separateOperations(document)[operation.name?.value ?? ''] ?? document;
  try {
    const variables = JSON.stringify(readVariables(parameters, path), null, 2);
    return `/graphql?${new URLSearchParams({ query: print(own), variables })}`;
  } catch (error) {
    if (error instanceof RestError) return undefined;
    throw error;
  }
}

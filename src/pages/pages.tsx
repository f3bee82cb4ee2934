// BROWSABLE: pages for people. A page renders the JSON answer of the same request, so that both have the same content.

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type GraphQLSchema, getOperationAST, print, separateOperations } from 'graphql';
import { LRUCache } from 'lru-cache';
import { rawQuery, readBaseUrl, requestIdHeader } from '../http/headers.ts';
import { entityTag } from '../http/representation.ts';
import { serveOpenApi, serveRoutes } from '../rest/adapter.ts';
import { answerErrors, RestError } from '../rest/errors.ts';
import type { Route } from '../rest/routes.ts';
import {
  createRouteReader,
  type PathParameters,
  parseQuery,
  type QueryParameters,
} from '../rest/variables.ts';
import { ApiPage } from './api-page.tsx';
import { browseRoutes, ErrorPage, HomePage, OutfitPage, OutfitsPage } from './browse.tsx';
import { DocsPage } from './docs-page.tsx';
import { negotiateHtml, type Page } from './html-negotiation.ts';
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

export class Pages {
  readonly #options: PagesOptions;
  /** Rendering takes ten times as long as the JSON answer, and bursts request the same page. */
  readonly #cache = new LRUCache<string, Page>({
    // About a hundred pages, with their compressed representations.
    maxSize: 16_000_000,
    sizeCalculation: ({ body }) => 2 * body.length,
  });
  readonly #routes: ReadonlyMap<string, readonly [Route, ReturnType<typeof createTranslator>]>;

  constructor(options: PagesOptions) {
    const { config, schema, routes } = options;
    this.#options = options;
    this.#routes = new Map(
      [...routes, ...browseRoutes].map((route) => [
        route.path,
        [route, config.graphiql ? createTranslator(schema, route) : undefined],
      ]),
    );
  }

  /** Renders JSON answers of `app` as HTML for requests that prefer it. Call it before the routes are added. */
  show(app: FastifyInstance): void {
    const { compression, mediaUrl, videoUrl } = this.#options.config;
    negotiateHtml(app, {
      headers: pageHeaders(mediaUrl, videoUrl),
      compresses: compression !== 'off',
      pageOf: (...answer) => this.#pageOf(app, ...answer),
      locationOf: (request) => this.#withoutEmptyFields(request),
    });
  }

  /** The paths of the pages. */
  serve(app: FastifyInstance): void {
    const { publicUrl } = this.#options.config;
    answerErrors(app);
    this.show(app);
    serveRoutes(app, { ...this.#options, routes: browseRoutes });
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
    const [route, toGraphiQL] = this.#routes.get(url) ?? [];
    const parameters = parseQuery(rawQuery(request.raw));
    const answer = { ...head, json: JSON.parse(payload.toString('utf8')) };
    const path = toGraphiQL?.(parameters, request.params as PathParameters);
    const graphiql = path && `${site.root}${path}`;
    const Other = /^\/api(?:\/|$)/.test(head.target) ? ApiPage : ErrorPage;
    const View = (status < 400 && views[url]) || Other;
    const body = Buffer.from(
      toHtml(<View {...{ site, answer, route, parameters, graphiql, base }} />),
    );
    const page = { body, tag: entityTag(body) };
    if (key) this.#cache.set(key, page);
    return page;
  }
}

/** Gives the GraphQL request that is equivalent to a REST request, as an address of GraphiQL; undefined: there is none. */
function createTranslator(schema: GraphQLSchema, route: Route) {
  const document = route.list ?? route.record;
  const operation = document && getOperationAST(document);
  // Without operations and fragments that it does not use.
  const own = document && separateOperations(document)[operation?.name?.value ?? ''];
  if (!operation || !own) return undefined;
  const readVariables = createRouteReader(schema, route, operation);

  return (parameters: QueryParameters, path: PathParameters): string | undefined => {
    try {
      const variables = JSON.stringify(readVariables(parameters, path), null, 2);
      return `/graphql?${new URLSearchParams({ query: print(own), variables })}`;
    } catch (error) {
      if (error instanceof RestError) return undefined;
      throw error;
    }
  };
}

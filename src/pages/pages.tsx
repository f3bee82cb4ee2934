// BROWSABLE: the browsable API, as in Django REST Framework. A page renders the JSON answer of the same request, so
// that both have the same content.

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { readBaseUrl } from '../http/base-url.ts';
import { requestIdHeader } from '../http/headers.ts';
import { entityTag } from '../http/representation.ts';
import { type RestOptions, serveRoutes } from '../rest/adapter.ts';
import type { Route } from '../rest/routes.ts';
import { type PathParameters, parseQuery } from '../rest/url.ts';
import { AnswerPage } from './answer-page.tsx';
import { BrowsePage, browseRoutes } from './browse.tsx';
import { createTranslator } from './graphql-request.ts';
import { serveHome } from './home.tsx';
import { HtmlNegotiation, type Page, PageCache } from './html-negotiation.ts';
import { pageHeaders, toHtml } from './parts/layout.tsx';
import { type Ordering, orderingsOf } from './parts/list.tsx';
import { linksOf, type PagesConfig, type Site, writingOf } from './parts/site.ts';

export interface PagesOptions extends RestOptions {
  readonly config: PagesConfig & RestOptions['config'];
  /** Whether this process draws the pictures, below `/media/`. */
  readonly drawsPictures: boolean;
}

type ReadRoute = readonly [Route, readonly Ordering[], ReturnType<typeof createTranslator>];

export class Pages {
  readonly #options: PagesOptions;
  readonly #cache = new PageCache();
  readonly #negotiation: HtmlNegotiation;
  readonly #routes: ReadonlyMap<string | undefined, ReadRoute>;

  constructor(options: PagesOptions) {
    const { config, schema, routes } = options;
    this.#options = options;
    const compresses = config.compression !== 'off';
    this.#negotiation = new HtmlNegotiation(pageHeaders(config.mediaUrl), compresses);
    this.#routes = new Map(
      [...routes, ...browseRoutes].map((route) => {
        const toGraphQLRequest = config.trustedDocumentsOnly
          ? undefined
          : createTranslator(schema, route);
        return [route.path, [route, orderingsOf(schema, route), toGraphQLRequest]];
      }),
    );
  }

  /** Renders JSON answers of `app` as HTML for requests that prefer it. Call it before the routes are added. */
  show(app: FastifyInstance): void {
    this.#negotiation.follow(app, (...answer) => this.#pageOf(app, ...answer));
  }

  /** The paths outside of /api/. */
  serve(app: FastifyInstance): void {
    this.show(app);
    const siteOf = () => this.#siteOf(app);
    const [negotiation, cache] = [this.#negotiation, this.#cache];
    serveHome(app, { ...this.#options, negotiation, cache, siteOf });
    serveRoutes(app, { ...this.#options, routes: browseRoutes });
  }

  #siteOf(app: FastifyInstance): Site {
    const { config, routes, drawsPictures } = this.#options;
    const root = config.publicUrl ?? '';
    const { mediaUrl: pictures, videoUrl: videos } = config;
    const media = { pictures, videos, drawn: drawsPictures ? `${root}/media` : undefined };
    return { root, config, media, writing: writingOf(config), links: linksOf(app, routes, config) };
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
    const base = findBase(request, this.#options.config.publicUrl);
    const parts = [head, base ?? null, entityTag(payload)];
    const key = status === 200 ? entityTag(JSON.stringify(parts)) : undefined;
    return this.#cache.getOrRender(key, () => {
      const [route, orderings = [], toGraphQLRequest] =
        this.#routes.get(request.routeOptions.url) ?? [];
      const parameters = parseQuery(/\?([^#]*)/.exec(head.target)?.[1] ?? '');
      const graphqlRequest = toGraphQLRequest?.(parameters, request.params as PathParameters);
      const answer = { ...head, json: JSON.parse(payload.toString('utf8')) };
      const site = this.#siteOf(app);
      const View = route && browseRoutes.includes(route) ? BrowsePage : AnswerPage;
      return toHtml(
        <View {...{ site, answer, route, parameters, orderings, graphqlRequest, base }} />,
      );
    });
  }
}

/** Undefined: the Host of the request is invalid. */
function findBase(request: FastifyRequest, publicUrl: string | undefined): string | undefined {
  try {
    return readBaseUrl(request, publicUrl);
  } catch {
    return undefined;
  }
}

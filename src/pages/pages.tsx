// BROWSABLE: pages for requests that prefer HTML. A page of REST is made of the very answer that a
// program would get, as in Django REST Framework, so that nothing on it can differ.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { GraphQLSchema } from 'graphql';
import type { Engine } from '../graphql/engine/engine.ts';
import { requestIdHeader } from '../http/headers.ts';
import { entityTag } from '../http/representation.ts';
import type { Route } from '../rest/routes.ts';
import { parseQuery, readBaseUrl } from '../rest/url.ts';
import type { PathParameters } from '../rest/variables.ts';
import { AnswerPage } from './answer-page.tsx';
import { serveHome } from './home.tsx';
import { HtmlNegotiation, type Page, PageCache } from './html-negotiation.ts';
import { pageHeaders, toHtml } from './parts/layout.tsx';
import { type Ordering, orderingsOf } from './parts/list.tsx';
import { linksOf, type PagesConfig, type Site, writingOf } from './parts/site.ts';
import { createQuestion } from './question.ts';

export interface PagesOptions {
  readonly schema: GraphQLSchema;
  readonly routes: readonly Route[];
  readonly engine: Engine;
  readonly config: PagesConfig;
  /** Whether pictures are drawn by this process, below `/media/`. */
  readonly drawsPictures: boolean;
}

type ReadRoute = readonly [Route, readonly Ordering[], ReturnType<typeof createQuestion>];

export class Pages {
  readonly #options: PagesOptions;
  readonly #cache = new PageCache();
  readonly #negotiation: HtmlNegotiation;
  readonly #routes: ReadonlyMap<string | undefined, ReadRoute>;

  constructor(options: PagesOptions) {
    const { config, schema, routes } = options;
    this.#options = options;
    this.#negotiation = new HtmlNegotiation(pageHeaders(config.mediaUrl));
    this.#routes = new Map(
      routes.map((route) => {
        const toQuestion = config.trustedDocumentsOnly ? undefined : createQuestion(schema, route);
        return [route.path, [route, orderingsOf(schema, route), toQuestion]];
      }),
    );
  }

  /** Shows JSON answers of `app` as pages, to requests that prefer them; to be called before its routes. */
  show(app: FastifyInstance): void {
    const negotiation = this.#negotiation;
    negotiation.follow(app);
    // With a callback, as it runs for the fastest answers too.
    app.addHook('onSend', (request, reply, payload, done) => {
      if (!negotiation.prefersPage(request)) return done(null, payload);
      const isJson = reply.getHeader('content-type') === 'application/json';
      if (!isJson || !(payload instanceof Buffer)) return done(null, payload);
      // At once: Fastify goes on with a request whose client leaves while this waits.
      let page: Page;
      try {
        page = this.#pageOf(app, request, reply, payload);
      } catch (error) {
        return done(error as Error);
      }
      done(null, negotiation.end(request, reply, page));
    });
  }

  serveHome(app: FastifyInstance): void {
    this.show(app);
    const siteOf = () => this.#siteOf(app);
    const [negotiation, cache] = [this.#negotiation, this.#cache];
    serveHome(app, { ...this.#options, negotiation, cache, siteOf });
  }

  #siteOf(app: FastifyInstance): Site {
    const { config, routes, drawsPictures } = this.#options;
    const root = config.publicUrl ?? '';
    const { mediaUrl: pictures, videoUrl: videos } = config;
    const media = { pictures, videos, drawn: drawsPictures ? `${root}/media` : undefined };
    return { root, config, media, writing: writingOf(config), links: linksOf(app, routes, config) };
  }

  /** The page of an answer, as it was made before or anew. */
  #pageOf(
    app: FastifyInstance,
    request: FastifyRequest,
    reply: FastifyReply,
    payload: Buffer,
  ): Page {
    const { statusCode: status } = reply;
    const headers = Object.entries({ ...reply.getHeaders(), 'content-length': payload.length });
    const head = {
      // HEAD has the headers of GET, and so its page.
      method: request.method === 'HEAD' ? 'GET' : request.method,
      target: request.raw.url ?? '',
      status,
      headers: headers
        // It tells one error from another. On other pages it would be all that changes.
        .filter(([name]) => status >= 400 || name !== requestIdHeader)
        .map(([name, value]) => [name, String(value)] as const),
    };
    const base = findBase(request, this.#options.config.publicUrl);
    const parts = [head, base ?? null, entityTag(payload)];
    const key = status === 200 ? entityTag(JSON.stringify(parts)) : undefined;
    return this.#cache.find(key, () => {
      const [route, orderings = [], toQuestion] = this.#routes.get(request.routeOptions.url) ?? [];
      const parameters = parseQuery(/\?([^#]*)/.exec(head.target)?.[1] ?? '');
      const question = toQuestion?.(parameters, request.params as PathParameters);
      const answer = { ...head, json: JSON.parse(payload.toString('utf8')) };
      const site = this.#siteOf(app);
      return toHtml(
        <AnswerPage {...{ site, answer, route, parameters, orderings, question, base }} />,
      );
    });
  }
}

/** Undefined: the host of the request is one that no command may repeat. */
function findBase(request: FastifyRequest, publicUrl: string | undefined): string | undefined {
  try {
    return readBaseUrl(request, publicUrl);
  } catch {
    return undefined;
  }
}

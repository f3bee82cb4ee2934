// HTML for requests that prefer it: negotiation of the request, headers of the answer, cache of pages.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { LRUCache } from 'lru-cache';
import { prefersHtml } from '../http/content-negotiation.ts';
import { appendVary } from '../http/headers.ts';
import {
  codedTag,
  entityTag,
  matchesIfNoneMatch,
  type Representable,
  selectAtOnce,
} from '../http/representation.ts';

export interface Page extends Representable {
  readonly tag: string;
}

/** The page of a JSON answer. */
type PageOf = (request: FastifyRequest, reply: FastifyReply, json: Buffer) => Page;

/** Rendering takes ten times as long as the JSON answer, and bursts request the same page. */
export class PageCache {
  readonly #pages = new LRUCache<string, Page>({
    // About a hundred pages, with their compressed representations.
    maxSize: 16_000_000,
    sizeCalculation: ({ body }) => 2 * body.length,
  });

  /** @param key identifies everything that the page shows; undefined: not cached */
  getOrRender(key: string | undefined, render: () => string): Page {
    const cached = key === undefined ? undefined : this.#pages.get(key);
    if (cached) return cached;
    const body = Buffer.from(render());
    const page = { body, tag: entityTag(body) };
    if (key !== undefined) this.#pages.set(key, page);
    return page;
  }
}

export class HtmlNegotiation {
  /** Requests that prefer HTML. */
  readonly #requests = new WeakSet<FastifyRequest>();

  /** @param compresses whether pages may have a content coding */
  constructor(
    private readonly headers: Readonly<Record<string, string>>,
    private readonly compresses: boolean,
  ) {}

  /** Answers requests of `app` that prefer HTML by the page of their JSON. Call it before the routes are added. */
  follow(app: FastifyInstance, pageOf: PageOf): void {
    app.addHook('onRequest', (request, _reply, done) => {
      if (prefersHtml(request.headers.accept)) {
        this.#requests.add(request);
        // The routes then see a request for a whole JSON answer: they know nothing of pages.
        request.headers = {
          accept: 'application/json',
          'accept-encoding': undefined,
          'if-none-match': undefined,
        };
      }
      done();
    });
    // With a callback instead of a promise: this hook is on the hot path.
    app.addHook('onSend', (request, reply, payload, done) => {
      if (!this.prefersPage(request)) return done(null, payload);
      const isJson = reply.getHeader('content-type') === 'application/json';
      if (!isJson || !(payload instanceof Buffer)) return done(null, payload);
      // Synchronous: Fastify would continue with a request whose client disconnects meanwhile.
      let page: Page;
      try {
        page = pageOf(request, reply, payload);
      } catch (error) {
        return done(error as Error);
      }
      done(null, this.end(request, reply, page));
    });
  }

  prefersPage(request: FastifyRequest): boolean {
    return this.#requests.has(request);
  }

  /** Replaces the headers of the JSON by those of the page. Returns the body; null for a 304. */
  end(request: FastifyRequest, reply: FastifyReply, page: Page): Buffer | null {
    const { 'accept-encoding': accepted, 'if-none-match': known } = request.raw.headers;
    // A page of one viewer shows text of others and of the address beside it: its length would tell them apart (BREACH).
    const isPrivate = /private/.test(String(reply.getHeader('Cache-Control')));
    const { bytes, encoding } = selectAtOnce(
      page,
      this.compresses && !isPrivate ? accepted?.toString() : undefined,
    );
    const vary = reply.getHeader('Vary')?.toString() ?? '';
    if (!/\baccept\b(?!-)/i.test(vary)) reply.header('Vary', vary ? `Accept, ${vary}` : 'Accept');
    if (this.compresses && !/accept-encoding/i.test(vary)) appendVary(reply, 'Accept-Encoding');
    reply.removeHeader('ETag').headers(this.headers);
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
}

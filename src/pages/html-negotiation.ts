// Requests that are answered with a page: how each begins and ends, and the pages as they were last made.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { LRUCache } from 'lru-cache';
import { prefersHtml } from '../http/content-negotiation.ts';
import { entityTag, matchesIfNoneMatch } from '../http/representation.ts';

export interface Page {
  readonly body: Buffer;
  readonly tag: string;
}

/** To make a page takes ten times as long as the answer that it shows, and a burst asks for the same one. */
export class PageCache {
  readonly #pages = new LRUCache<string, Page>({
    // A hundred of the usual size.
    maxSize: 8_000_000,
    sizeCalculation: ({ body }) => body.length,
  });

  /** @param key all that the page is made of; undefined: it is not kept */
  find(key: string | undefined, make: () => string): Page {
    const kept = key === undefined ? undefined : this.#pages.get(key);
    if (kept) return kept;
    const body = Buffer.from(make());
    const page = { body, tag: entityTag(body) };
    if (key !== undefined) this.#pages.set(key, page);
    return page;
  }
}

export class HtmlNegotiation {
  /** Requests that prefer a page, with their If-None-Match. */
  readonly #requests = new WeakMap<FastifyRequest, string | undefined>();
  readonly #headers: Readonly<Record<string, string>>;

  constructor(headers: Readonly<Record<string, string>>) {
    this.#headers = headers;
  }

  /** Notes requests of `app` that prefer a page; to be called before its routes. */
  follow(app: FastifyInstance): void {
    app.addHook('onRequest', (request, _reply, done) => {
      if (prefersHtml(request.headers.accept)) {
        this.#requests.set(request, request.headers['if-none-match']);
        // From here on it is the request of a program, for a whole answer: nothing below has heard of pages.
        request.headers = {
          accept: 'application/json',
          'accept-encoding': undefined,
          'if-none-match': undefined,
        };
      }
      done();
    });
  }

  prefersPage(request: FastifyRequest): boolean {
    return this.#requests.has(request);
  }

  /** Sets the headers of a page in place of those of its JSON. Gives the body; null: the browser has it already. */
  end(request: FastifyRequest, reply: FastifyReply, { body, tag }: Page): Buffer | null {
    const vary = reply.getHeader('Vary')?.toString() ?? '';
    if (!/\baccept\b(?!-)/i.test(vary)) reply.header('Vary', vary ? `Accept, ${vary}` : 'Accept');
    reply.removeHeader('ETag').headers(this.#headers);
    if (reply.statusCode !== 200 || !['GET', 'HEAD'].includes(request.method)) return body;
    reply.header('ETag', tag);
    if (!matchesIfNoneMatch(this.#requests.get(request), tag)) return body;
    reply.code(304).removeHeader('Content-Type');
    return null;
  }
}

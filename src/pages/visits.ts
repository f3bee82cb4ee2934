// Requests that are answered with a page: how each begins, and how it ends.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { prefersHtml } from '../http/accept.ts';
import { isUnchanged } from '../http/representation.ts';
import type { Page } from './kept-pages.ts';
import { pageHeaders } from './layout.tsx';

export class Visits {
  /** With the pages that the browser has already: the value of If-None-Match. */
  readonly #visits = new WeakMap<FastifyRequest, string | undefined>();
  readonly #headers: Readonly<Record<string, string>>;

  /** @param mediaUrl where pictures are */
  constructor(mediaUrl: string) {
    this.#headers = pageHeaders(mediaUrl);
  }

  /** Notes whoever prefers a page of `app`; to be called before its routes. */
  follow(app: FastifyInstance): void {
    app.addHook('onRequest', (request, _reply, done) => {
      if (prefersHtml(request.headers.accept)) {
        this.#visits.set(request, request.headers['if-none-match']);
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

  has(request: FastifyRequest): boolean {
    return this.#visits.has(request);
  }

  /**
   * Sets the headers of a page, in place of those of the JSON that it shows.
   * @returns what is sent; null: the browser has it already
   */
  end(request: FastifyRequest, reply: FastifyReply, { body, tag }: Page): Buffer | null {
    const vary = reply.getHeader('Vary')?.toString() ?? '';
    if (!/\baccept\b(?!-)/i.test(vary)) reply.header('Vary', vary ? `Accept, ${vary}` : 'Accept');
    reply.removeHeader('ETag').headers(this.#headers);
    if (reply.statusCode !== 200 || !['GET', 'HEAD'].includes(request.method)) return body;
    reply.header('ETag', tag);
    if (!isUnchanged(this.#visits.get(request), tag)) return body;
    reply.code(304).removeHeader('Content-Type');
    return null;
  }
}

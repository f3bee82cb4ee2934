// HTML for requests that prefer it: negotiation of the request, and headers of the answer.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { appendVary } from '../http/headers.ts';
import {
  codedTag,
  matchesIfNoneMatch,
  prefersHtml,
  type Representable,
  selectAtOnce,
} from '../http/representation.ts';

export interface Page extends Representable {
  readonly tag: string;
}

interface Options {
  readonly headers: Readonly<Record<string, string>>;
  /** Whether pages may have a content coding. */
  readonly compresses: boolean;
  /** The page of a JSON answer. */
  readonly pageOf: (request: FastifyRequest, reply: FastifyReply, json: Buffer) => Page;
  /** A better address of this page; undefined: it has none. */
  readonly locationOf: (request: FastifyRequest) => string | undefined;
}

/** Answers requests of `app` that prefer HTML by the page of their JSON. Call it before the routes are added. */
export function negotiateHtml(app: FastifyInstance, options: Options): void {
  const requests = new WeakSet<FastifyRequest>();
  app.addHook('onRequest', (request, _reply, done) => {
    if (prefersHtml(request.headers.accept)) {
      requests.add(request);
      // The routes then see a request for a complete JSON answer: they know nothing of pages.
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
    if (!requests.has(request)) return done(null, payload);
    const isJson = reply.getHeader('content-type') === 'application/json';
    if (!isJson || !(payload instanceof Buffer)) return done(null, payload);
    const location = reply.statusCode === 200 ? options.locationOf(request) : undefined;
    if (location !== undefined) {
      reply.code(302).header('Location', location);
      reply.removeHeader('ETag').removeHeader('Content-Type');
      return done(null, null);
    }
    // Synchronous: Fastify would continue with a request whose client disconnects meanwhile.
    try {
      payload = toPage(request, reply, payload, options);
    } catch (error) {
      return done(error as Error);
    }
    done(null, payload);
  });
}

/** Replaces the headers of the JSON by those of its page. Returns the body; null for a 304. */
function toPage(
  request: FastifyRequest,
  reply: FastifyReply,
  json: Buffer,
  { headers, compresses, pageOf }: Options,
): Buffer | null {
  const page = pageOf(request, reply, json);
  const { 'accept-encoding': accepted, 'if-none-match': known } = request.raw.headers;
  // A page of one viewer shows text of others and of the address beside it: its length would tell them apart (BREACH).
  const isPrivate = /private/.test(String(reply.getHeader('Cache-Control')));
  const coding = compresses && !isPrivate ? accepted?.toString() : undefined;
  const { bytes, encoding } = selectAtOnce(page, coding);
  const vary = reply.getHeader('Vary')?.toString() ?? '';
  if (!/\baccept\b(?!-)/i.test(vary)) reply.header('Vary', vary ? `Accept, ${vary}` : 'Accept');
  if (compresses && !/accept-encoding/i.test(vary)) appendVary(reply, 'Accept-Encoding');
  reply.removeHeader('ETag').headers(headers);
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

// CORS: the origins whose pages may read answers.
import type { FastifyInstance, FastifyRequest } from 'fastify';

/**
 * Headers that let the page that sent the request read the answer; undefined for other origins.
 * @see https://fetch.spec.whatwg.org/#http-responses
 */
export function corsHeaders(
  { headers: { origin } }: Pick<FastifyRequest, 'headers'>,
  origins: readonly string[],
): { 'Access-Control-Allow-Origin': string; 'Access-Control-Expose-Headers': string } | undefined {
  if (origin === undefined || !origins.includes(origin)) return undefined;
  return {
    'Access-Control-Allow-Origin': origin,
    'Access-Control-Expose-Headers': 'ETag, Retry-After, WWW-Authenticate, X-Request-Id',
  };
}

/**
 * Answers preflights. Not @fastify/cors: it sets `Vary` before routes do, and takes every OPTIONS for a preflight.
 * @see https://fetch.spec.whatwg.org/#cors-preflight-fetch
 */
export function enableCors(app: FastifyInstance, origins: readonly string[]): void {
  if (origins.length === 0) return;

  app.addHook('onRequest', async (request, reply) => {
    const { method, headers } = request;
    const readable = corsHeaders(request, origins);
    if (!readable) return;
    if (method === 'OPTIONS' && headers['access-control-request-method'] !== undefined) {
      const asked = headers['access-control-request-headers'];
      // Any header: without cookies, a page can send nothing that its own server could not send.
      if (asked !== undefined) reply.header('Access-Control-Allow-Headers', asked);
      const allowed = {
        'Access-Control-Allow-Origin': readable['Access-Control-Allow-Origin'],
        'Access-Control-Allow-Methods': 'GET, HEAD, POST',
        'Access-Control-Max-Age': '600',
        Vary: 'Access-Control-Request-Headers',
      };
      return reply.code(204).headers(allowed).send();
    }
    reply.headers(readable);
  });

  // Last, because routes set their own `Vary`. Answers to other origins have it too: they lack headers.
  app.addHook('onSend', async (_request, reply) => {
    const vary = reply.getHeader('Vary');
    reply.header('Vary', vary === undefined ? 'Origin' : `${vary}, Origin`);
  });
}

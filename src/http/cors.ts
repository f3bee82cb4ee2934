// Which origins' pages may read answers.
import type { FastifyInstance, FastifyRequest } from 'fastify';

/** What lets the page that has sent a request read its answer; undefined if it may not. */
export function originHeaders(
  { headers: { origin } }: Pick<FastifyRequest, 'headers'>,
  origins: readonly string[],
): { 'Access-Control-Allow-Origin': string; 'Access-Control-Expose-Headers': string } | undefined {
  if (origin === undefined || !origins.includes(origin)) return undefined;
  return {
    'Access-Control-Allow-Origin': origin,
    'Access-Control-Expose-Headers': 'ETag, Retry-After, WWW-Authenticate, X-Request-Id',
  };
}

/** There are no cookies. @fastify/cors sets `Vary` before routes do, and takes every OPTIONS for a preflight. */
export function allowOrigins(app: FastifyInstance, origins: readonly string[]): void {
  if (origins.length === 0) return;

  app.addHook('onRequest', async (request, reply) => {
    const { method, headers } = request;
    const readable = originHeaders(request, origins);
    if (!readable) return;
    if (method === 'OPTIONS' && headers['access-control-request-method'] !== undefined) {
      const asked = headers['access-control-request-headers'];
      // Whichever it asks for: without cookies, a page can send nothing that its server could not.
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

  // Last, because routes set their own `Vary`. Answers to other origins vary too: they lack headers.
  app.addHook('onSend', async (_request, reply) => {
    const vary = reply.getHeader('Vary');
    reply.header('Vary', vary === undefined ? 'Origin' : `${vary}, Origin`);
  });
}

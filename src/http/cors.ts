// Which origins' pages may read answers.
import type { FastifyInstance } from 'fastify';

/** Of the answer to a preflight. */
export const preflightHeaders = {
  'Access-Control-Allow-Methods': 'GET, HEAD, POST',
  'Access-Control-Max-Age': '600',
  Vary: 'Access-Control-Request-Headers',
};

/** What pages may read of an answer, beside what all may. */
export const exposedHeaders = 'ETag, Retry-After, WWW-Authenticate, X-Request-Id';

/**
 * Lets the pages of these origins read answers, and write with a bearer token. Not with cookies:
 * there are none. Without origins nothing is added to any answer. @fastify/cors would not do: it
 * sets `Vary` before the routes do, and takes every OPTIONS for a preflight.
 */
export function allowOrigins(app: FastifyInstance, origins: readonly string[]): void {
  if (origins.length === 0) return;
  const allowed = new Set(origins);

  app.addHook('onRequest', async ({ method, headers }, reply) => {
    const { origin } = headers;
    if (origin === undefined || !allowed.has(origin)) return;
    reply.header('Access-Control-Allow-Origin', origin);
    if (method === 'OPTIONS' && headers['access-control-request-method'] !== undefined) {
      const asked = headers['access-control-request-headers'];
      // Whichever it asks for: without cookies, a page can send nothing that its server could not.
      if (asked !== undefined) reply.header('Access-Control-Allow-Headers', asked);
      return reply.code(204).headers(preflightHeaders).send();
    }
    reply.header('Access-Control-Expose-Headers', exposedHeaders);
  });

  // Last, because routes set their own `Vary`. Answers to other origins vary too: they lack headers.
  app.addHook('onSend', async (_request, reply) => {
    reply.header('Vary', varyByOrigin(reply.getHeader('Vary')?.toString()));
  });
}

/** A `Vary` header with the origin. */
export function varyByOrigin(vary: string | undefined): string {
  return vary === undefined ? 'Origin' : `${vary}, Origin`;
}

// CORS: the origins whose pages may read answers.
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { appendVary } from './headers.ts';

/**
 * Headers that let the page that sent the request read the answer; undefined for other origins.
 * @see https://fetch.spec.whatwg.org/#http-responses
 */
export function corsHeaders(
  { headers: { origin } }: Pick<FastifyRequest, 'headers'>,
  { authCookies, corsExposeHeaders, corsOrigins }: CorsConfig,
): Readonly<Record<string, string>> | undefined {
  if (origin === undefined) return undefined;
  const isNamed = origin !== '*' && corsOrigins.includes(origin);
  if (!isNamed && !corsOrigins.includes('*')) return undefined;
  return {
    'Access-Control-Allow-Origin': isNamed ? origin : '*',
    // Only for an origin that is named: never for `*` or `null`.
    ...(isNamed && authCookies.length > 0 ? { 'Access-Control-Allow-Credentials': 'true' } : {}),
    'Access-Control-Expose-Headers': [ownExposed, ...corsExposeHeaders].join(', '),
  };
}

const ownExposed = 'ETag, RateLimit, RateLimit-Policy, Retry-After, WWW-Authenticate, X-Request-Id';

export interface CorsConfig {
  /** `*` is any origin, without credentials. */
  readonly corsOrigins: readonly string[];
  /** With any, pages of origins that are named may ask with `credentials: 'include'`. */
  readonly authCookies: readonly string[];
  /** Empty: those of `headersWithCookies` with credentials, and without them any. */
  readonly corsAllowHeaders: readonly string[];
  readonly corsExposeHeaders: readonly string[];
  /** Seconds for which browsers keep the answer to a preflight. */
  readonly corsMaxAge: number;
}

/** Request headers of pages that send cookies: what this service reads, and those of Django's clients. */
const headersWithCookies = [
  'Accept, Accept-Language, Apollo-Require-Preflight, ApolloGraphQL-Client-Name, ApolloGraphQL-Client-Version',
  'Authorization, Cache-Control, Content-Type, DNT, GraphQL-Cost, Idempotency-Key, If-None-Match, Last-Event-ID',
  'Traceparent, Tracestate, User-Agent, X-Client-Name, X-Client-Version, X-CSRFToken, X-Request-Id, X-Requested-With',
].join(', ');

/**
 * Answers preflights. Not @fastify/cors: it sets `Vary` before routes do, and takes every OPTIONS for a preflight.
 * @see https://fetch.spec.whatwg.org/#cors-preflight-fetch
 */
export function enableCors(app: FastifyInstance, config: CorsConfig): void {
  if (config.corsOrigins.length === 0) return;

  app.addHook('onRequest', async (request, reply) => {
    const { method, headers } = request;
    const readable = corsHeaders(request, config);
    if (!readable) return;
    if (method === 'OPTIONS' && headers['access-control-request-method'] !== undefined) {
      const { 'Access-Control-Expose-Headers': _exposed, ...readableLater } = readable;
      const asked = headers['access-control-request-headers'];
      const hasCredentials = 'Access-Control-Allow-Credentials' in readable;
      // Any header: without cookies, a page can send nothing that its own server could not send.
      const allowedHeaders =
        config.corsAllowHeaders.join(', ') || (hasCredentials ? headersWithCookies : asked);
      if (asked !== undefined) reply.header('Access-Control-Allow-Headers', allowedHeaders);
      const allowed = {
        ...readableLater,
        'Access-Control-Allow-Methods': 'GET, HEAD, POST',
        'Access-Control-Max-Age': `${Math.floor(config.corsMaxAge / 1000)}`,
        Vary: 'Access-Control-Request-Headers',
      };
      return reply.code(204).headers(allowed).send();
    }
    reply.headers(readable);
  });

  // Last, because routes set their own `Vary`. Answers to other origins have it too: they lack headers.
  app.addHook('onSend', async (_request, reply) => {
    appendVary(reply, 'Origin');
  });
}

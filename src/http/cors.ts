// CORS: the origins whose pages may read answers.
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Config } from '../config/config.ts';
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

const ownExposed = [
  ...['Deprecation', 'ETag', 'Link', 'RateLimit', 'RateLimit-Policy', 'Retry-After', 'Sunset'],
  ...['WWW-Authenticate', 'X-Request-Id'],
].join(', ');

/** `*` in `corsOrigins` is any origin, without credentials; no `corsAllowHeaders` allow the usual ones. */
export type CorsConfig = Pick<
  Config,
  'authCookies' | 'corsAllowHeaders' | 'corsExposeHeaders' | 'corsMaxAge' | 'corsOrigins'
>;

/** Request headers of pages that send cookies: what this service reads, and those of Django's clients. */
const headersWithCookies = [
  'Accept, Accept-Language, Apollo-Require-Preflight, ApolloGraphQL-Client-Name, ApolloGraphQL-Client-Version',
  'Authorization, Cache-Control, Content-Type, DNT, GraphQL-Cost, Idempotency-Key, If-None-Match, Last-Event-ID',
  'Traceparent, Tracestate, User-Agent, X-Client-Name, X-Client-Version, X-CSRFToken, X-Request-Id, X-Requested-With',
].join(', ');

/**
 * Answers preflights. Not @fastify/cors: see README.md.
 * @see https://fetch.spec.whatwg.org/#cors-preflight-fetch
 */
export function enableCors(app: FastifyInstance, config: CorsConfig): void {
  if (config.corsOrigins.length === 0) return;
  app.addHook('onRequest', (request, reply, done) => {
    const { method, headers } = request;
    const { 'Access-Control-Expose-Headers': exposed, ...readable } =
      corsHeaders(request, config) ?? {};
    if (exposed === undefined) return done();
    reply.headers(readable);
    if (method !== 'OPTIONS' || headers['access-control-request-method'] === undefined) {
      reply.header('Access-Control-Expose-Headers', exposed);
      return done();
    }
    const asked = headers['access-control-request-headers'];
    const usual = 'Access-Control-Allow-Credentials' in readable ? headersWithCookies : asked;
    // Any header: without cookies, a page can send nothing that its own server could not send.
    const allowed = config.corsAllowHeaders.join(', ') || usual;
    if (asked !== undefined) reply.header('Access-Control-Allow-Headers', allowed);
    reply.headers({
      'Access-Control-Allow-Methods': 'GET, HEAD, POST',
      'Access-Control-Max-Age': `${Math.floor(config.corsMaxAge / 1000)}`,
      Vary: 'Access-Control-Request-Headers',
    });
    reply.code(204).send();
  });
  // Last, because routes set their own `Vary`. Answers to other origins have it too: they lack headers.
  app.addHook('onSend', (_request, reply, payload, done) => {
    appendVary(reply, 'Origin');
    done(null, payload);
  });
}

// AUTH_COOKIES: which cookies are credentials, from which pages they authorise writes, and who may keep the answer.
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Config } from '../config/config.ts';
import { parseUrl } from '../config/values.ts';
import { appendVary } from '../http/headers.ts';

export type OriginConfig = Pick<Config, 'corsOrigins' | 'publicUrl'>;

/** The pairs of these names, as they came; undefined: none has a value. */
export function pickCookies(
  header: string | undefined,
  names: readonly string[],
): string | undefined {
  if (header === undefined || names.length === 0) return undefined;
  const pairs = header.split(';').map((pair) => pair.trim());
  const named = pairs.filter((pair) => {
    const end = pair.indexOf('=');
    return end !== -1 && end < pair.length - 1 && names.includes(pair.slice(0, end));
  });
  return named.length > 0 ? named.join('; ') : undefined;
}

/**
 * Whether a page of this service, or of an origin that CORS_ORIGINS names, has sent it. Browsers add cookies to what
 * any page sends, and `Origin` to each POST.
 */
export function isFromTrustedOrigin(
  { headers: { origin }, protocol, host }: Pick<FastifyRequest, 'headers' | 'host' | 'protocol'>,
  { corsOrigins, publicUrl }: OriginConfig,
): boolean {
  if (origin === undefined || origin === '*') return false;
  if (corsOrigins.includes(origin)) return true;
  return parseUrl(publicUrl ?? `${protocol}://${host}`)?.origin === origin;
}

/** Makes the answer to a request with such a cookie private. To be called before hooks that add to `Vary`. */
export function keepCookieAnswersPrivate(app: FastifyInstance, names: readonly string[]): void {
  if (names.length === 0) return;
  app.addHook('onSend', (request, reply, payload, done) => {
    const cached = String(reply.getHeader('Cache-Control') ?? '');
    // Files of pages are the same for all.
    if (pickCookies(request.headers.cookie, names) !== undefined && !/immutable/.test(cached)) {
      if (!/no-store/.test(cached)) reply.header('Cache-Control', 'private, no-cache');
      appendVary(reply, 'Cookie');
    }
    done(null, payload);
  });
}

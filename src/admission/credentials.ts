// The credentials of a request. Each form has one verifier: keys for JWTs, AUTH_WEBHOOK_URL for all others. AUTH_COOKIES
// says which cookies are credentials.
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { decodeProtectedHeader } from 'jose';
import type { Config, IdentityConfig } from '../config/config.ts';
import { parseUrl } from '../config/values.ts';
import { invalidToken } from '../errors.ts';
import { appendVary, groupAddress, isRepeated, safeMethods } from '../http/headers.ts';
import {
  bearerIn,
  createTokenVerifier,
  decodeClaims,
  findClaim,
  type VerifyToken,
  type Viewer,
} from './viewer.ts';
import {
  type Charge,
  type ObserveWebhook,
  type OnUser,
  Webhook,
  type WebhookConfig,
} from './webhook.ts';

type CredentialsConfig = IdentityConfig &
  OriginConfig &
  WebhookConfig &
  Pick<Config, 'authCookies'>;

/** What the sender of a request is identified by. */
export type Identified = Pick<FastifyRequest, 'headers' | 'host' | 'method' | 'protocol'> & {
  readonly raw: Pick<FastifyRequest['raw'], 'rawHeaders'>;
};

/** The session cookie of Django: looked for while AUTH_COOKIES names none. */
const usualCookies = ['sessionid'];

export class Credentials {
  readonly #config: CredentialsConfig;
  readonly #verifyToken: VerifyToken | undefined;
  readonly #webhook: Webhook | undefined;

  constructor(config: CredentialsConfig, onUser?: OnUser, observe?: ObserveWebhook) {
    this.#config = config;
    this.#verifyToken = createTokenVerifier(config);
    const { authWebhookUrl: url } = config;
    this.#webhook = url === undefined ? undefined : new Webhook(url, config, onUser, observe);
  }

  areIn({ headers }: Pick<FastifyRequest, 'headers'>): boolean {
    return (
      headers.authorization !== undefined ||
      pickCookies(headers.cookie, this.#config.authCookies) !== undefined
    );
  }

  /**
   * Undefined: anonymous. So is a refused cookie, as in Django: browsers keep sending one whose session has ended.
   * @throws HttpError 401 for an invalid credential, 503 when it cannot be verified now, or what `charge` throws
   */
  async authenticate(request: Identified, charge: Charge): Promise<Viewer | undefined> {
    if (isRepeated(request, 'authorization')) throw invalidToken();
    const authorization = request.headers.authorization?.trim() || undefined;
    const token = readBearer(authorization);
    if (token !== undefined && this.#verifyToken && isJwt(token)) return this.#verifyToken(token);
    if (!this.#webhook) {
      if (token !== undefined) throw invalidToken();
      return undefined;
    }
    let cookie = pickCookies(request.headers.cookie, this.#config.authCookies);
    if (authorization === undefined && cookie === undefined) return undefined;
    const isTrusted = cookie === undefined || isFromTrustedOrigin(request, this.#config);
    // A form that is posted to https://user:password@host sends both, from a page of any origin.
    if (authorization && !isTrusted && !safeMethods.has(request.method)) cookie = undefined;
    const viewer = await this.#webhook.authenticate({ authorization, cookie }, charge);
    if (!viewer && authorization) throw invalidToken();
    return viewer && cookie && !isTrusted ? { ...viewer, mayWrite: false } : viewer;
  }

  /** The setting that is missing to verify the credentials of a request; undefined: none is missing. */
  findMissingSetting({ headers }: Pick<FastifyRequest, 'headers'>): string | undefined {
    const { authCookies, authUserClaim } = this.#config;
    const authorization = headers.authorization?.trim();
    const token = bearerIn(authorization);
    if (this.#verifyToken && isJwt(token)) {
      const claims = decodeClaims(token);
      const isNamed = !claims || findClaim(claims, authUserClaim) !== undefined;
      return isNamed ? undefined : 'AUTH_USER_CLAIM';
    }
    const names = authCookies.length > 0 ? authCookies : usualCookies;
    const cookie = authorization ? undefined : pickCookies(headers.cookie, names);
    if (cookie && (!this.#webhook || authCookies.length === 0)) {
      return 'AUTH_WEBHOOK_URL and AUTH_COOKIES';
    }
    if (!authorization || this.#webhook) return undefined;
    return isJwt(token) ? 'AUTH_JWKS_URL or AUTH_JWT_SECRET' : 'AUTH_WEBHOOK_URL';
  }

  /** Key of a client that survives a renewed token: the unverified claim of the user, the session, or the address. */
  clientKeyOf({ headers, ip }: Pick<FastifyRequest, 'headers' | 'ip'>): string {
    const { authCookies, authUserClaim } = this.#config;
    const { authorization } = headers;
    const session = pickCookies(headers.cookie, authCookies);
    if (authorization === undefined) return session ?? `address ${groupAddress(ip)}`;
    const claim = findClaim(decodeClaims(bearerIn(authorization)), authUserClaim);
    return `user ${typeof claim === 'string' || typeof claim === 'number' ? claim : authorization}`;
  }

  stopSoon(): void {
    this.#webhook?.stopSoon();
  }

  async close(): Promise<void> {
    await this.#webhook?.close();
  }
}

/** Undefined for another scheme. @throws HttpError 401 unless there is one token */
function readBearer(authorization: string | undefined): string | undefined {
  const [scheme = '', token = '', ...more] = authorization?.split(/[ \t]+/) ?? [];
  if (scheme.toLowerCase() !== 'bearer') return undefined;
  if (token === '' || more.length > 0) throw invalidToken();
  return token;
}

function isJwt(token: string): boolean {
  try {
    decodeProtectedHeader(token);
    return true;
  } catch {
    return false;
  }
}

export type OriginConfig = Pick<Config, 'corsOrigins' | 'publicUrl'>;

/** The pairs of these names, as they came; undefined: none has a value. */
function pickCookies(header: string | undefined, names: readonly string[]): string | undefined {
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

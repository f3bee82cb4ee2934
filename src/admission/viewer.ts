// Authentication: a bearer token (a JWT) is verified by a shared secret or by a key set (JWKS).
import { createSecretKey } from 'node:crypto';
import {
  createLocalJWKSet,
  createRemoteJWKSet,
  customFetch,
  decodeJwt,
  errors,
  type FetchImplementation,
  type JWTPayload,
  type JWTVerifyGetKey,
  type JWTVerifyOptions,
  jwtVerify,
} from 'jose';
import { LRUCache } from 'lru-cache';
import { type IdentityConfig, legacyHostFor } from '../config/config.ts';
import { HttpError, invalidToken, unavailable } from '../errors.ts';
import { HttpClient } from '../http/client.ts';

/** How long a credential is valid. */
export interface Lease {
  /** Seconds since 1970; undefined: it never expires. */
  readonly expiresAt?: number | undefined;
  readonly renewal?: {
    /** Seconds from the first attempt to renew it on, in which renewing may fail. */
    readonly grace: number;
    /** Undefined: the lease is refused. @throws when that cannot be decided now */
    readonly renew: () => Promise<Lease | undefined>;
  };
}

export interface Viewer extends Lease {
  readonly userId: number;
  /** Whether the viewer may change and delete the outfits of others. */
  readonly isStaff?: boolean;
  /** False: authenticated by a cookie, which a page of another origin may have sent (cross-site request forgery). */
  readonly mayWrite?: false;
}

/** @throws HttpError 401 for an invalid token, 503 when the key set cannot be fetched */
export type VerifyToken = (token: string) => Promise<Viewer>;

/** The only place that verifies JWTs; undefined without keys. The key set is fetched when the first token arrives. */
export function createTokenVerifier(config: IdentityConfig): VerifyToken | undefined {
  const verify = createVerifier(config);
  if (!verify) return undefined;
  return async (token) => {
    const claims = await verify(token);
    // A refresh token of simplejwt has the same key and claims, and lives for weeks.
    if (claims['token_type'] !== undefined && claims['token_type'] !== 'access')
      throw invalidToken();
    const userId = toUserId(findClaim(claims, config.authUserClaim));
    if (userId === undefined) throw invalidToken();
    const { authStaffClaim } = config;
    const isStaff = authStaffClaim !== undefined && findClaim(claims, authStaffClaim) === true;
    return { userId, ...(isStaff ? { isStaff } : {}), expiresAt: claims.exp };
  };
}

type Verify = (token: string) => Promise<JWTPayload>;

function createVerifier(config: IdentityConfig): Verify | undefined {
  const claims: JWTVerifyOptions = {
    ...(config.authIssuer === undefined ? {} : { issuer: config.authIssuer }),
    ...(config.authAudience === undefined ? {} : { audience: config.authAudience }),
  };
  if (config.authJwtSecret !== undefined) return verifyBySecret(config.authJwtSecret, claims);
  const { authJwksUrl: url } = config;
  if (url === undefined) return undefined;
  return verifyByKeySet(createKeySet(new URL(url), legacyHostFor(url, config)), claims);
}

// Disjoint: otherwise a token could be signed with a public key as if that were the secret. @see RFC 8725 §3.1
const secretAlgorithms = ['HS256', 'HS384', 'HS512'];
const keyAlgorithms = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
];

function verifyBySecret(text: string, claims: JWTVerifyOptions): Verify {
  const secret = createSecretKey(Buffer.from(text));
  const options = { ...claims, algorithms: secretAlgorithms };
  // Verifying a signature takes a fifth of the time of a mutation. The secret is fixed, so `exp` alone invalidates.
  const verified = new LRUCache<string, JWTPayload>({
    maxSize: 1_000_000,
    sizeCalculation: (_, token) => token.length,
  });
  return async (token) => {
    const cached = verified.get(token);
    // In whole seconds, as jose compares them.
    if (cached && (cached.exp ?? Number.POSITIVE_INFINITY) > Math.floor(Date.now() / 1000))
      return cached;
    try {
      const { payload } = await jwtVerify(token, secret, options);
      verified.set(token, payload);
      return payload;
    } catch {
      throw invalidToken();
    }
  };
}

/** Throttle: milliseconds between two fetches of a key set. */
const fetchInterval = 1_000;
/** Milliseconds without a fetch after which the key server is no longer assumed to be down. */
const outageMemory = 4_000;

function verifyByKeySet(keys: JWTVerifyGetKey, claims: JWTVerifyOptions): Verify {
  const options = { ...claims, algorithms: keyAlgorithms };
  return async (token) => {
    try {
      return (await jwtVerify(token, keys, options)).payload;
    } catch (error) {
      if (error instanceof errors.JWKSMultipleMatchingKeys) {
        // The token has no `kid`: any matching key may have signed it.
        for await (const key of error) {
          const verified = await jwtVerify(token, key, options).catch(() => undefined);
          if (verified) return verified.payload;
        }
        throw invalidToken();
      }
      // Any other error concerns the token or its key, such as the TypeError for an RSA key below 2,048 bits.
      throw error instanceof HttpError ? error : invalidToken();
    }
  };
}

/** A cached key set: fetched again after ten minutes; while the key server is down, the last one is used (stale). */
function createKeySet(url: URL, host: Record<string, string>): JWTVerifyGetKey {
  // An unknown key is looked up again after a second: keys are rotated without notice.
  const current = createRemoteJWKSet(url, {
    cooldownDuration: fetchInterval,
    // Our own limit counts from when the client is imported.
    timeoutDuration: 5_000,
    [customFetch]: createFetch(host),
  });
  let outage: Outage | undefined;

  const retry = async (begun: Outage) => {
    begun.nextFetch = performance.now() + fetchInterval;
    try {
      await current.reload();
      outage = undefined;
    } catch (error) {
      begun.error = error;
    }
  };

  return async (header, token) => {
    const now = performance.now();
    // The last retry was long ago: the server may be up again.
    if (outage && now > outage.nextFetch + outageMemory) outage = undefined;
    if (!outage) {
      try {
        return await current(header, token);
      } catch (error) {
        const last = current.jwks();
        if (!last || !(error instanceof HttpError)) throw error;
        outage = {
          keys: createLocalJWKSet(last),
          error,
          nextFetch: performance.now() + fetchInterval,
        };
      }
    } else if (now >= outage.nextFetch) {
      // Not awaited: a key server that hangs must not delay tokens whose keys are cached.
      void retry(outage);
    }
    const { keys, error } = outage;
    try {
      return await keys(header, token);
    } catch (problem) {
      throw problem instanceof errors.JWKSNoMatchingKey ? error : problem;
    }
  };
}

/** A fetch that throws HttpError 503 unless the answer is a key set: a fault of the server, not of the token. */
function createFetch(host: Record<string, string>): FetchImplementation {
  const client = new HttpClient();
  return async (url, { headers, signal }) => {
    try {
      const { origin, pathname, search } = new URL(url);
      const { status, body } = await client.ask(origin, {
        target: pathname + search,
        headers: { ...Object.fromEntries(headers), ...host },
        signal,
        timeout: 1_500,
        // Some hundred keys.
        maxBytes: 1_048_576,
      });
      if (status !== 200) throw new Error(`The key set was answered with status ${status}.`);
      const keySet = JSON.parse(new TextDecoder().decode(body));
      createLocalJWKSet(keySet);
      return Response.json(keySet);
    } catch (cause) {
      throw unavailable({ cause });
    }
  };
}

/** The keys that a key set has now. @throws HttpError 503 with the cause */
export async function countKeys(url: string, config: IdentityConfig): Promise<number> {
  const fetchKeySet = createFetch(legacyHostFor(url, config));
  const signal = AbortSignal.timeout(5_000);
  const request = { headers: new Headers(), method: 'GET', redirect: 'manual', signal } as const;
  return (await (await fetchKeySet(url, request)).json()).keys.length;
}

interface Outage {
  readonly keys: JWTVerifyGetKey;
  error: unknown;
  nextFetch: number;
}

/** The unverified token; empty without one, or where there are several. */
export function bearerIn(authorization = ''): string {
  return /^bearer[ \t]+(\S+)$/i.exec(authorization)?.[1] ?? '';
}

/** The claims of a JWT, which is not verified; undefined: it is none. */
export function decodeClaims(token: string): JWTPayload | undefined {
  try {
    return decodeJwt(token);
  } catch {
    return undefined;
  }
}

/** By its whole name, which may be a URL, or else by a path into nested claims, such as `user.id`. */
export function findClaim(claims: unknown, name: string): unknown {
  if (typeof claims !== 'object' || claims === null) return undefined;
  if (Object.hasOwn(claims, name)) return (claims as Record<string, unknown>)[name];
  for (let dot = name.indexOf('.'); dot !== -1; dot = name.indexOf('.', dot + 1)) {
    const outer = name.slice(0, dot);
    if (!Object.hasOwn(claims, outer)) continue;
    const inner = findClaim((claims as Record<string, unknown>)[outer], name.slice(dot + 1));
    if (inner !== undefined) return inner;
  }
  return undefined;
}

export function toUserId(value: unknown): number | undefined {
  const text = typeof value === 'string' || typeof value === 'number' ? String(value) : '';
  const id = /^(?:0|-?[1-9]\d{0,9})$/.test(text) ? Number(text) : Number.NaN;
  return (id | 0) === id ? id : undefined;
}

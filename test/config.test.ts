// The environment is checked at start: a wrong value is named in one sentence.
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { type Config, ConfigError, readConfig } from '../src/config.ts';

function failureOf(environment: Record<string, string>): string {
  try {
    readConfig(environment);
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  throw new Error(`${JSON.stringify(environment)} was taken.`);
}

describe('the configuration', () => {
  test('of an empty environment has the documented defaults', () => {
    expect(readConfig({})).toEqual({
      host: 'localhost',
      port: 4000,
      databaseUrl: undefined,
      databasePoolMax: 10,
      dataDir: '.data',
      seed: 'demo',
      publicUrl: undefined,
      trustProxy: [],
      mediaUrl: 'https://media.example.com',
      videoUrl: 'https://video.example.com',
      cacheMaxBytes: 67_108_864,
      pageSize: 20,
      privateOutfits: 'listed',
      authJwksUrl: undefined,
      authJwtSecret: undefined,
      authIssuer: undefined,
      authAudience: undefined,
      rateLimit: undefined,
      maxConcurrentRequests: 128,
      requestTimeout: 10,
      graphqlMaxCost: 5_000,
      graphqlIntrospection: true,
      graphiql: true,
      corsOrigins: [],
      metricsPort: undefined,
      logLevel: 'info',
    } satisfies Config);
  });

  test('treats an empty variable as unset', () => {
    const empty = Object.fromEntries([...namesRead()].map((name) => [name, '']));
    expect(readConfig(empty)).toEqual(readConfig({}));
  });

  test('fills an empty PostgreSQL database with nothing unless told to', () => {
    const DATABASE_URL = 'postgresql://localhost/shop';
    expect(readConfig({ DATABASE_URL }).seed).toBe('none');
    expect(readConfig({ DATABASE_URL, SEED: 'demo' }).seed).toBe('demo');
  });

  test.each<[string, string, Partial<Config>]>([
    ['PORT', '0', { port: 0 }],
    ['PORT', '65535', { port: 65_535 }],
    ['HOST', '::', { host: '::' }],
    ['SEED', 'none', { seed: 'none' }],
    ['PAGE_SIZE', '1', { pageSize: 1 }],
    ['CACHE_MAX_BYTES', '0', { cacheMaxBytes: 0 }],
    ['DATABASE_URL', 'postgres://u:p@h/d', { databaseUrl: 'postgres://u:p@h/d', seed: 'none' }],
    ['PUBLIC_URL', 'https://shop.example/', { publicUrl: 'https://shop.example' }],
    ['MEDIA_URL', 'http://media.test/a/b//', { mediaUrl: 'http://media.test/a/b' }],
    ['TRUST_PROXY', '10.0.0.0/8, ::1', { trustProxy: ['10.0.0.0/8', '::1'] }],
    ['LOG_LEVEL', 'silent', { logLevel: 'silent' }],
    ['PRIVATE_OUTFITS', 'owner', { privateOutfits: 'owner' }],
    ['AUTH_JWT_SECRET', 'é'.repeat(16), { authJwtSecret: 'é'.repeat(16) }],
    ['AUTH_JWKS_URL', 'https://a.test/keys?v=1', { authJwksUrl: 'https://a.test/keys?v=1' }],
    ['RATE_LIMIT', '600/minute', { rateLimit: { requests: 600, seconds: 60 } }],
    ['GRAPHIQL', 'off', { graphiql: false }],
    ['GRAPHQL_INTROSPECTION', 'on', { graphqlIntrospection: true }],
    ['METRICS_PORT', '9100', { metricsPort: 9100 }],
    [
      'CORS_ORIGINS',
      'https://a.test, http://localhost:3000',
      { corsOrigins: ['https://a.test', 'http://localhost:3000'] },
    ],
  ])('takes %s=%s', (name, value, expected) => {
    expect(readConfig({ [name]: value })).toMatchObject(expected);
  });

  test.each([
    ['PORT', 'http', 'a whole number from 0 to 65535'],
    ['PORT', '65536', 'a whole number from 0 to 65535'],
    ['PORT', '-1', 'a whole number from 0 to 65535'],
    ['PORT', '80.5', 'a whole number from 0 to 65535'],
    ['PORT', ' ', 'a whole number from 0 to 65535'],
    ['PORT', '9'.repeat(400), 'a whole number from 0 to 65535'],
    ['DATABASE_POOL_MAX', '0', 'a whole number from 1 to 1000'],
    ['CACHE_MAX_BYTES', '64MB', 'a whole number from 0 to 1099511627776'],
    ['PAGE_SIZE', '0', 'a whole number from 1 to 1000'],
    ['PAGE_SIZE', '1e2', 'a whole number from 1 to 1000'],
    ['SEED', 'Demo', '"demo" or "none"'],
    ['LOG_LEVEL', 'trace', '"debug" or "info" or "warn" or "error" or "silent"'],
    ['PUBLIC_URL', 'shop.example', 'an absolute http or https URL'],
    ['PUBLIC_URL', 'ftp://shop.example', 'an absolute http or https URL'],
    ['PUBLIC_URL', 'https://shop.example/?a=1', 'an absolute http or https URL'],
    ['PUBLIC_URL', 'https://user:word@shop.example', 'an absolute http or https URL'],
    ['MEDIA_URL', '/media', 'an absolute http or https URL'],
    ['VIDEO_URL', 'https://video.example/#top', 'an absolute http or https URL'],
    ['TRUST_PROXY', 'true', 'a comma-separated list of addresses or CIDR ranges'],
    ['TRUST_PROXY', '10.0.0.1,,', 'a comma-separated list of addresses or CIDR ranges'],
    ['TRUST_PROXY', '10.0.0.0/99', 'a comma-separated list of addresses or CIDR ranges'],
    ['TRUST_PROXY', '999.0.0.1', 'a comma-separated list of addresses or CIDR ranges'],
    ['PRIVATE_OUTFITS', 'hidden', '"listed" or "owner"'],
    ['AUTH_JWKS_URL', 'file:///keys.json', 'an absolute http or https URL'],
    ['RATE_LIMIT', '0/minute', 'a number of requests per second, minute, hour or day'],
    ['RATE_LIMIT', '600', 'a number of requests per second, minute, hour or day'],
    ['REQUEST_TIMEOUT', '0', 'a whole number from 1 to 600'],
    ['GRAPHIQL', 'true', '"on" or "off"'],
    ['CORS_ORIGINS', '*', 'a comma-separated list of origins'],
    ['CORS_ORIGINS', 'https://a.test/', 'a comma-separated list of origins'],
    ['CORS_ORIGINS', 'null', 'a comma-separated list of origins'],
  ])('refuses %s=%s in one sentence that says what it may be', (name, value, allowed) => {
    const message = failureOf({ [name]: value });
    expect(message).toContain(`${name} is ${JSON.stringify(value)}, but it may be ${allowed}`);
    expect(message).toMatch(/^[^\n]*[^.\n]\.$/);
  });

  test.each(['mysql://root:s3cret@db/shop', 'db:s3cret', 's3cret', 'https://s3cret@db'])(
    'refuses DATABASE_URL=%s without repeating it, as it may hold a password',
    (value) => {
      const message = failureOf({ DATABASE_URL: value });
      expect(message).toMatch(/^DATABASE_URL is .*, but it may be .*postgresql:\/\/.*\.$/);
      expect(message).not.toContain('s3cret');
    },
  );

  test('refuses a short AUTH_JWT_SECRET without repeating it', () => {
    const message = failureOf({ AUTH_JWT_SECRET: 's3cret' });
    expect(message).toBe(
      'AUTH_JWT_SECRET is not valid, but it may be a secret of at least 32 bytes.',
    );
  });

  test('refuses two sources of keys', () => {
    const message = failureOf({
      AUTH_JWKS_URL: 'https://auth.test/jwks.json',
      AUTH_JWT_SECRET: 's'.repeat(32),
    });
    expect(message).toBe('AUTH_JWKS_URL and AUTH_JWT_SECRET are both set: keep one of them.');
  });

  test('is what .env.example lists, all of it with its defaults and nothing else', () => {
    const example = readFileSync(new URL('../.env.example', import.meta.url), 'utf8');
    const lines = [...example.matchAll(/^([A-Z_]+)=(.*)$/gm)].map(
      ([, name = '', value = '']) => [name, value] as const,
    );
    expect(lines.map(([name]) => name).toSorted()).toEqual([...namesRead()].toSorted());
    expect(readConfig(Object.fromEntries(lines))).toEqual(readConfig({}));
  });
});

/** The names of the variables that reading the configuration looks at. */
function namesRead(): Set<string> {
  const names = new Set<string>();
  readConfig(
    new Proxy<Record<string, string>>(
      {},
      {
        get(_environment, name) {
          names.add(String(name));
          return undefined;
        },
      },
    ),
  );
  return names;
}

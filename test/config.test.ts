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
      workers: 1,
      databasePoolMax: 10,
      databaseReadUrls: [],
      readMaxStaleness: 0,
      databasePooler: 'session',
      dataDir: '.data',
      firstId: undefined,
      seed: 'demo',
      publicUrl: undefined,
      trustProxy: [],
      mediaUrl: 'https://media.example.com',
      hasMediaUrl: false,
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
      maxStreams: 10_000,
      requestTimeout: 10,
      expensiveQueryTimeout: 2,
      graphqlMaxCost: 5_000,
      graphqlIntrospection: true,
      graphiql: true,
      trustedDocuments: undefined,
      trustedDocumentsOnly: false,
      corsOrigins: [],
      restDeprecated: undefined,
      restSunset: undefined,
      unknownParameters: 'ignore',
      compression: 'graphql',
      browsable: true,
      legacyUrl: undefined,
      legacyMode: { kind: 'off', percent: 100 },
      legacySample: 10,
      legacyAccept: [],
      legacyTimeout: 30,
      writes: true,
      metricsPort: undefined,
      otlpEndpoint: undefined,
      logLevel: 'info',
      logFormat: undefined,
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
    ['LEGACY_URL', 'https://old.test:8000/', { legacyUrl: 'https://old.test:8000' }],
    ['LEGACY_SAMPLE', '0.5', { legacySample: 0.5 }],
    ['LEGACY_ACCEPT', 'fraction, header:vary', { legacyAccept: ['fraction', 'header:vary'] }],
    ['PORT', '65535', { port: 65_535 }],
    ['HOST', '::', { host: '::' }],
    ['HOST', 'fe80::1%eth0', { host: 'fe80::1%eth0' }],
    ['HOST', '127.0.0.1', { host: '127.0.0.1' }],
    ['HOST', 'gateway_1.shop.example.', { host: 'gateway_1.shop.example.' }],
    ['SEED', 'none', { seed: 'none' }],
    ['PAGE_SIZE', '1', { pageSize: 1 }],
    ['CACHE_MAX_BYTES', '0', { cacheMaxBytes: 0 }],
    ['DATABASE_URL', 'postgres://u:p@h/d', { databaseUrl: 'postgres://u:p@h/d', seed: 'none' }],
    ['PUBLIC_URL', 'https://shop.example/', { publicUrl: 'https://shop.example' }],
    [
      'MEDIA_URL',
      'http://media.test/a/b//',
      { mediaUrl: 'http://media.test/a/b', hasMediaUrl: true },
    ],
    ['MEDIA_URL', 'https://media.example.com', { hasMediaUrl: true }],
    ['TRUST_PROXY', '10.0.0.0/8, ::1', { trustProxy: ['10.0.0.0/8', '::1'] }],
    ['LOG_LEVEL', 'silent', { logLevel: 'silent' }],
    ['LOG_FORMAT', 'pretty', { logFormat: 'pretty' }],
    ['PRIVATE_OUTFITS', 'owner', { privateOutfits: 'owner' }],
    ['AUTH_JWT_SECRET', 'é'.repeat(16), { authJwtSecret: 'é'.repeat(16) }],
    ['AUTH_JWKS_URL', 'https://a.test/keys?v=1', { authJwksUrl: 'https://a.test/keys?v=1' }],
    ['RATE_LIMIT', '600/minute', { rateLimit: { requests: 600, seconds: 60 } }],
    ['GRAPHIQL', 'off', { graphiql: false }],
    ['BROWSABLE', 'false', { browsable: false }],
    ['WRITES', '0', { writes: false }],
    ['TRUSTED_DOCUMENTS_ONLY', 'off', { trustedDocumentsOnly: false }],
    ['GRAPHQL_INTROSPECTION', 'true', { graphqlIntrospection: true }],
    ['METRICS_PORT', '9100', { metricsPort: 9100 }],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'http://a.test/', { otlpEndpoint: 'http://a.test' }],
    ['REST_DEPRECATED', '2027-01-31', { restDeprecated: new Date('2027-01-31T00:00:00Z') }],
    ['REST_SUNSET', '2027-01-31T02:00:00+02:00', { restSunset: new Date('2027-01-31T00:00:00Z') }],
    ['UNKNOWN_PARAMETERS', 'log', { unknownParameters: 'log' }],
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
    ['GRAPHIQL', 'yes', '"on" or "off"'],
    ['REST_DEPRECATED', '2027-02-29', 'a date, such as "2027-01-31", or a moment'],
    ['REST_SUNSET', 'tomorrow', 'a date, such as "2027-01-31", or a moment'],
    ['REST_SUNSET', '2027-01-31T12:00:00', 'a date, such as "2027-01-31", or a moment'],
    ['UNKNOWN_PARAMETERS', 'on', '"ignore" or "log" or "refuse"'],
    ['CORS_ORIGINS', '*', 'a comma-separated list of origins'],
    ['CORS_ORIGINS', 'https://a.test/', 'a comma-separated list of origins'],
    ['LEGACY_MODE', 'canary', '"off", "shadow", "canary:N"'],
    ['LEGACY_MODE', 'canary:101', '"off", "shadow", "canary:N"'],
    ['LEGACY_SAMPLE', '100.1', 'a number from 0 to 100'],
    ['LEGACY_TIMEOUT', '0', 'a whole number from 1 to 80'],
    ['LEGACY_ACCEPT', 'fraction,links', 'a comma-separated list of kinds of differences'],
    ['WRITES', 'no', '"on" or "off"'],
    ['LOG_FORMAT', 'text', '"json" or "pretty"'],
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

  test.each([
    'http://anna:s3cret@old',
    'https://old.test/api',
    's3cret',
    'https://old.test?s3cret',
  ])('refuses LEGACY_URL=%s without repeating it', (LEGACY_URL) => {
    const message = failureOf({ LEGACY_URL });
    expect(message).toMatch(/^LEGACY_URL is not valid, but it may be .*without \/api.*\.$/);
    expect(message).not.toContain('s3cret');
  });

  test.each(['grpc://collector:4317', 'collector', 'https://anna:s3cret@collector', 's3cret'])(
    'refuses OTEL_EXPORTER_OTLP_ENDPOINT=%s without repeating it',
    (OTEL_EXPORTER_OTLP_ENDPOINT) => {
      const message = failureOf({ OTEL_EXPORTER_OTLP_ENDPOINT });
      expect(message).toMatch(/^OTEL_EXPORTER_OTLP_ENDPOINT is not valid, but it may be .*\.$/);
      expect(message).not.toContain('s3cret');
    },
  );

  test('refuses a LEGACY_MODE that has nobody to ask', () => {
    expect(failureOf({ LEGACY_MODE: 'canary:5' })).toBe(
      'LEGACY_MODE is "canary", but LEGACY_URL is not set: set it to the base of the old service.',
    );
  });

  test('refuses TRUSTED_DOCUMENTS_ONLY without documents, and has no GraphiQL with them', () => {
    expect(failureOf({ TRUSTED_DOCUMENTS_ONLY: 'on' })).toBe(
      'TRUSTED_DOCUMENTS_ONLY is on, but TRUSTED_DOCUMENTS is not set: set it to the file of documents.',
    );
    const only = { TRUSTED_DOCUMENTS_ONLY: 'on', TRUSTED_DOCUMENTS: 'documents.json' };
    expect(readConfig({ ...only, GRAPHIQL: 'on' }).graphiql).toBe(false);
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

  test('is what docs/settings.md lists, with what .env.example says of it', () => {
    const page = readFileSync(new URL('../docs/settings.md', import.meta.url), 'utf8');
    const example = readFileSync(new URL('../.env.example', import.meta.url), 'utf8');
    const rows = [...page.matchAll(/^\| `([A-Z_]+)` \| (?:none|`([^`]*)`)/gm)];
    expect(rows.map(([, name]) => name).toSorted()).toEqual([...namesRead()].toSorted());
    for (const [, name = '', value = ''] of rows) {
      // What depends on the database has no value there.
      if (name !== 'SEED') expect(example).toMatch(new RegExp(`^${name}=${value}$`, 'm'));
    }
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

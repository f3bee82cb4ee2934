// The environment is checked at start: a wrong value is named in one sentence.
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { allSettings, type Config, ConfigError, readConfig } from '../../src/config/config.ts';

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
    ['HOST', '::', { host: '::' }],
    ['HOST', 'fe80::1%eth0', { host: 'fe80::1%eth0' }],
    ['HOST', 'gateway_1.shop.example.', { host: 'gateway_1.shop.example.' }],
    ['SEED', 'none', { seed: 'none' }],
    ['CACHE_MAX_SIZE', '0', { cacheMaxSize: 0 }],
    ['CACHE_MAX_SIZE', '8KiB', { cacheMaxSize: 8192 }],
    ['READ_MAX_STALENESS', '500ms', { readMaxStaleness: 500 }],
    ['REQUEST_TIMEOUT', '5m', { requestTimeout: 300_000 }],
    ['DATABASE_URL', 'postgres://u:p@h/d', { databaseUrl: 'postgres://u:p@h/d', seed: 'none' }],
    ['MEDIA_URL', 'http://a.test/b//', { mediaUrl: 'http://a.test/b', hasMediaUrl: true }],
    ['TRUST_PROXY', '10.0.0.0/8, ::1', { trustProxy: ['10.0.0.0/8', '::1'] }],
    ['AUTH_JWT_SECRET', 'é'.repeat(16), { authJwtSecret: 'é'.repeat(16) }],
    ['AUTH_JWKS_URL', 'https://a.test/keys?v=1', { authJwksUrl: 'https://a.test/keys?v=1' }],
    ['RATE_LIMIT', '600/minute', { rateLimit: { requests: 600, seconds: 60 } }],
    ['GRAPHIQL', 'off', { graphiql: false }],
    ['BROWSABLE', 'false', { browsable: false }],
    ['WRITES', '0', { writes: false }],
    ['REST_DEPRECATED', '2027-01-31', { restDeprecated: new Date('2027-01-31T00:00:00Z') }],
    ['REST_SUNSET', '2027-01-31T02:00:00+02:00', { restSunset: new Date('2027-01-31T00:00:00Z') }],
    [
      'CORS_ORIGINS',
      'https://a.test, http://b:3,capacitor://localhost,chrome-extension://abc',
      {
        corsOrigins: [
          ...['https://a.test', 'http://b:3', 'capacitor://localhost', 'chrome-extension://abc'],
        ],
      },
    ],
  ])('takes %s=%s', (name, value, expected) => {
    expect(readConfig({ [name]: value })).toMatchObject(expected);
  });

  const wholeNumber = 'a whole number from';
  const address = 'an IP address or a host name without port and brackets';
  const url = 'an absolute http or https URL';
  const proxies = 'a comma-separated list of addresses or CIDR ranges';
  const duration = 'a duration with its unit, such as "500ms", "10s" or "5m", from';

  test.each<[name: string, values: string[], allowed: string]>([
    ['HOST', ['300.1.1.1', 'localhost:80', 'not a host', '[::1]'], address],
    ['HOST', ['1.2.3', '0x7f.0x1', '-a', 'a..b'], address],
    ['PORT', ['http', '65536', '-1', '80.5', ' ', '9'.repeat(400)], `${wholeNumber} 0 to 65535`],
    ['DATABASE_POOL_MAX', ['0'], `${wholeNumber} 1 to 1000`],
    ['PAGE_SIZE', ['0', '1e2'], `${wholeNumber} 1 to 1000`],
    ['CACHE_MAX_SIZE', ['67108864', '64MB', '1025GiB'], 'a size with its unit, such as "8KiB"'],
    ['SEED', ['Demo'], '"demo" or "none"'],
    ['PUBLIC_URL', ['a.test', 'ftp://a.test', 'https://a.test/?b'], url],
    ['VIDEO_URL', ['/media', 'https://video.example/#top'], url],
    ['TRUST_PROXY', ['true', '10.0.0.1,,', '10.0.0.0/99', '999.0.0.1'], proxies],
    ['AUTH_JWKS_URL', ['file:///keys.json'], url],
    ['RATE_LIMIT', ['0/minute', '600'], 'a number of requests per second, minute, hour or day'],
    ['REQUEST_TIMEOUT', ['10', '0', '1.5s', '999ms'], `${duration} 1s to 10m`],
    ['CORS_MAX_AGE', ['25h'], duration],
    ['LEGACY_TIMEOUT', ['81s'], duration],
    ['GRAPHIQL', ['yes'], '"on" or "off"'],
    ['REST_DEPRECATED', ['2027-02-29'], 'a date, such as "2027-01-31", or a moment'],
    ['REST_SUNSET', ['tomorrow', '2027-01-31T12:00:00'], 'a date, such as "2027-01-31", or a'],
    [
      'CORS_ORIGINS',
      [
        ...['**', 'https://a.test/', 'null', 'https://*.a.test', 'http://localhost:*', 'app://*'],
        ...['capacitor://', 'capacitor://localhost/', 'app://a@b', 'APP://a', 'https://a.test:443'],
      ],
      'a comma-separated list of origins, such as "https://app.example.com" or "capacitor://localhost" (no patterns)',
    ],
    ['CORS_EXPOSE_HEADERS', ['X Total'], 'a comma-separated list of names of headers'],
    ['LEGACY_MODE', ['canary', 'canary:101'], '"off", "shadow", "canary:N"'],
    ['LEGACY_SAMPLE', ['100.1'], 'a number from 0 to 100'],
    ['LEGACY_ACCEPT', ['fraction,,value'], 'a comma-separated list of kinds of differences'],
  ])('refuses %s=%j in one sentence that says what it may be', (name, values, allowed) => {
    for (const value of values) {
      const message = failureOf({ [name]: value });
      expect(message).toContain(`${name} is ${JSON.stringify(value)}, but it must be ${allowed}`);
      expect(message).toMatch(/^[^\n]*[^.\n]\.$/);
    }
  });

  test.each([
    ['DATABASE_URL', ['mysql://root:s3cret@db/shop', 'db:s3cret', 's3cret'], 'postgresql://'],
    ['DATABASE_READ_URLS', ['postgresql://a/b,mysql://root:s3cret@db/shop'], 'postgresql://'],
    ['AUTH_JWT_SECRET', ['s3cret'], 'a secret of at least 32 bytes'],
    ['PUBLIC_URL', ['https://a:s3cret@a.test'], 'an absolute http or https URL'],
    [
      'AUTH_JWKS_URL',
      ['ftp://a:s3cret@a.test', 'https://a:s3cret@a.test/keys'],
      'an absolute http or https URL',
    ],
    [
      'LEGACY_URL',
      ['http://anna:s3cret@old', 'https://old.test/s3cret/api', 's3cret', 'https://a.test?s3cret'],
      'without /api',
    ],
    [
      'OTEL_EXPORTER_OTLP_ENDPOINT',
      ['grpc://s3cret:4317', 's3cret', 'https://anna:s3cret@collector'],
      'the base of an OpenTelemetry collector',
    ],
    [
      'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT',
      ['https://anna:s3cret@collector/v1/traces'],
      'without user and password',
    ],
  ])(
    'the configuration refuses a wrong %s without repeating it, as it may hold a secret',
    (name, values, allowed) => {
      for (const value of values) {
        const message = failureOf({ [name]: value });
        expect(message).toMatch(/^\w+ is not valid, but it must be [^\n]*\.$/);
        expect(message).toContain(allowed);
        expect(message).not.toContain('s3cret');
      }
    },
  );

  test.each([
    [
      { LEGACY_MODE: 'canary:5' },
      'LEGACY_MODE is "canary", but LEGACY_URL is not set: set it to the base of the old service.',
    ],
    [
      { AUTH_JWKS_URL: 'https://auth.test/jwks.json', AUTH_JWT_SECRET: 's'.repeat(32) },
      'AUTH_JWKS_URL and AUTH_JWT_SECRET are both set: keep one of them.',
    ],
    [
      { TRUSTED_DOCUMENTS_ONLY: 'on' },
      'TRUSTED_DOCUMENTS_ONLY is on, but TRUSTED_DOCUMENTS is not set: set it to the file of documents.',
    ],
  ])('the configuration refuses %j, which does not go together', (environment, message) => {
    expect(failureOf(environment)).toBe(message);
  });

  test('the configuration has no GraphiQL where only trusted documents are run', () => {
    const only = { TRUSTED_DOCUMENTS_ONLY: 'on', TRUSTED_DOCUMENTS: 'documents.json' };
    expect(readConfig({ ...only, GRAPHIQL: 'on' }).graphiql).toBe(false);
  });

  const example = readFileSync(new URL('../../.env.example', import.meta.url), 'utf8');

  test('the configuration is what .env.example lists, all of it with its defaults and nothing else', () => {
    const lines = [...example.matchAll(/^([A-Z_]+)=(.*)$/gm)].map(
      ([, name = '', value = '']) => [name, value] as const,
    );
    expect(lines.map(([name]) => name).toSorted()).toEqual([...namesRead()].toSorted());
    expect(readConfig(Object.fromEntries(lines))).toEqual(readConfig({}));
    const unset = lines.filter(([, value]) => value === '').map(([name]) => name);
    for (const { name, whenUnset } of allSettings) {
      if (unset.includes(name)) expect([undefined, []], name).toContainEqual(whenUnset);
    }
  });

  test('the configuration is what docs/settings.md lists, with what .env.example says of it', () => {
    const page = readFileSync(new URL('../../docs/settings.md', import.meta.url), 'utf8');
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
  const get = (_environment: object, name: string | symbol) => void names.add(String(name));
  readConfig(new Proxy({}, { get }));
  return names;
}

// Every answer of the legacy paths says since when they are deprecated, and when they end.
import { describe, expect, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { buildApp } from '../../src/app.ts';
import { readConfig } from '../../src/config.ts';
import { failure, migratedEnvironmentOf, runServer } from '../support/cli/process.ts';
import { useGateway } from '../support/gateway.ts';
import { secret, signIn } from '../support/http/tokens.ts';

const rows = [...generateOutfits({ outfits: 45, users: 6 })];
const dates = { REST_DEPRECATED: '2026-11-01', REST_SUNSET: '2027-05-31T22:00:00+02:00' };
const expected = {
  deprecation: '@1793491200',
  sunset: 'Mon, 31 May 2027 20:00:00 GMT',
  link: '</graphql>; rel="successor-version"',
};
const origin = 'https://app.example.com';

const named = (headers: Record<string, unknown>) =>
  Object.fromEntries(
    Object.entries(headers).filter(([name]) => ['deprecation', 'sunset', 'link'].includes(name)),
  );

const listing = '/api/outfits/';
const requests = [
  ['GET', listing, {}, 200],
  ['HEAD', listing, {}, 200],
  ['OPTIONS', listing, {}, 200],
  ['GET', listing, { 'if-none-match': '*' }, 304],
  ['GET', '/api/outfits', {}, 301],
  ['POST', '/api/outfits', {}, 308],
  ['GET', `${listing}?ordering=nope`, {}, 400],
  ['GET', listing, { host: 'a b' }, 400],
  ['POST', listing, {}, 401],
  ['GET', listing, { authorization: 'Bearer nonsense' }, 401],
  ['GET', `${listing}?page=99`, {}, 404],
  ['GET', '/api/nothing/', {}, 404],
  ['PUT', listing, {}, 405],
  ['GET', listing, { accept: 'image/png' }, 406],
] as const;

describe('with REST_DEPRECATED and REST_SUNSET', () => {
  const gateway = useGateway('PostgreSQL', rows, {
    ...dates,
    AUTH_JWT_SECRET: secret,
    CORS_ORIGINS: origin,
  });

  test.each(requests)('%s %s %j is a %i that says so', async (method, url, headers, status) => {
    const response = await gateway.app.inject({ method, url, headers });
    expect(response.statusCode).toBe(status);
    expect(named(response.headers)).toEqual(expected);
  });

  test('an answer to a write says so, and one that is too large', async () => {
    const headers = await signIn(1);
    const image_key = 'outfits/7f8ff8d1-5b46-4a35-9ac3-1f1a2c1b8c11.jpeg';
    for (const [payload, status] of [
      [{ image_key }, 201],
      [{}, 400],
      [{ title: 'x'.repeat(2_000_000) }, 413],
    ] as const) {
      const request = { method: 'POST', url: listing, payload, headers } as const;
      const response = await gateway.app.inject(request);
      expect(response.statusCode).toBe(status);
      expect(named(response.headers)).toEqual(expected);
    }
  });

  test('nothing else says so', async () => {
    for (const url of ['/graphql?query={__typename}', '/graphql', '/nothing', '/health/live']) {
      expect(named((await gateway.get(url)).headers)).toEqual({});
    }
  });

  test('pages of other origins may read it', async () => {
    const exposed = async (url: string) =>
      (await gateway.get(url, { origin })).headers['access-control-expose-headers'];
    const usual = 'ETag, RateLimit, RateLimit-Policy, Retry-After, WWW-Authenticate, X-Request-Id';
    expect(await exposed(listing)).toBe(`${usual}, Deprecation, Sunset, Link`);
    expect(await exposed('/graphql?query={__typename}')).toBe(usual);
    expect((await gateway.get(listing)).headers).not.toHaveProperty(
      'access-control-expose-headers',
    );
  });
});

describe('without one of them', () => {
  const gateway = useGateway('PostgreSQL', rows, { AUTH_JWT_SECRET: secret });

  test('or both, no answer of REST has such a header', async () => {
    for (const [method, url, headers, status] of requests) {
      const response = await gateway.app.inject({ method, url, headers });
      expect(response.statusCode).toBe(status);
      expect(named(response.headers)).toEqual({});
    }
  });

  test.each([
    [{ REST_DEPRECATED: dates.REST_DEPRECATED }, { deprecation: expected.deprecation }],
    [{ REST_SUNSET: dates.REST_SUNSET }, { sunset: expected.sunset }],
    // The same moment is no contradiction.
    [
      { REST_DEPRECATED: '2027-05-31T20:00:00Z', REST_SUNSET: dates.REST_SUNSET },
      { deprecation: '@1811793600', sunset: expected.sunset },
    ],
  ])('%j is said with a link below PUBLIC_URL', async (environment, headers) => {
    const PUBLIC_URL = 'https://bücher.example/shop/';
    const app = await buildApp(readConfig({ ...environment, PUBLIC_URL }), gateway.database);
    expect(named((await app.inject(listing)).headers)).toEqual({
      ...headers,
      link: '<https://xn--bcher-kva.example/shop/graphql>; rel="successor-version"',
    });
    await app.close();
  });
});

test('a sunset before the deprecation ends the start with one sentence', async () => {
  const server = runServer({
    ...(await migratedEnvironmentOf('PostgreSQL')),
    REST_DEPRECATED: '2027-01-31',
    REST_SUNSET: '2027-01-30T23:59:59Z',
  });
  expect(await failure(server, 2)).toBe(
    'REST_SUNSET is before REST_DEPRECATED: set it to the same or a later day.',
  );
});

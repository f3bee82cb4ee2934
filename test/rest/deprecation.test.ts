// Answers of the legacy paths say since when they are deprecated, and when they end. That each does is in
// openapi-answers.test.ts.
import { describe, expect, test } from 'vitest';
import { readConfig } from '../../src/config/config.ts';
import { buildForTest, useGateway } from '../support/gateway.ts';

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

describe('with REST_DEPRECATED and REST_SUNSET', () => {
  const gateway = useGateway('PostgreSQL', [], { ...dates, CORS_ORIGINS: origin });

  test('an unknown path is a 404 with the headers of a deprecated one', async () => {
    expect(named((await gateway.get('/api/nothing/')).headers)).toEqual(expected);
  });

  test('nothing else says so', async () => {
    for (const url of ['/graphql?query={__typename}', '/graphql', '/nothing', '/health/live']) {
      expect(named((await gateway.get(url)).headers)).toEqual({});
    }
  });

  test('pages of other origins may read it', async () => {
    const { headers } = await gateway.get(listing, { origin });
    expect(headers['access-control-expose-headers']).toMatch(
      /\bDeprecation\b.*\bLink\b.*\bSunset\b/,
    );
    expect((await gateway.get(listing)).headers).not.toHaveProperty(
      'access-control-expose-headers',
    );
  });
});

describe('one of them alone', () => {
  const gateway = useGateway('PostgreSQL');

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
    const app = await buildForTest(readConfig({ ...environment, PUBLIC_URL }), gateway.database);
    expect(named((await app.inject(listing)).headers)).toEqual({
      ...headers,
      link: '<https://xn--bcher-kva.example/shop/graphql>; rel="successor-version"',
    });
  });
});

test('a sunset before the deprecation is refused in a sentence', () => {
  const settings = { REST_DEPRECATED: '2027-01-31', REST_SUNSET: '2027-01-30T23:59:59Z' };
  const sentence = 'REST_SUNSET is before REST_DEPRECATED: set it to the same or a later day.';
  expect(() => readConfig(settings)).toThrow(sentence);
});

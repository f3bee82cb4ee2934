// Which pages of other origins may read answers.
import { describe, expect, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { useGateway } from '../support/gateway.ts';

const rows = [...generateOutfits({ outfits: 5, users: 2 })];
const listed = 'https://app.example.com';
const paths = ['/api/outfits/', '/graphql?query={__typename}', '/nope', '/api/outfits/?page=0'];
const preflight = { 'access-control-request-method': 'POST' };

const corsHeaders = (headers: object) =>
  Object.fromEntries(
    Object.entries(headers).filter(([name]) => name.startsWith('access-control-')),
  );

describe('without CORS_ORIGINS', () => {
  const gateway = useGateway('PostgreSQL', rows);

  test('no answer has a header for other origins, nor varies by them', async () => {
    for (const url of paths) {
      for (const method of ['GET', 'OPTIONS'] as const) {
        const headers = { origin: listed, ...preflight };
        const response = await gateway.app.inject({ method, url, headers });
        expect(corsHeaders(response.headers)).toEqual({});
        expect(response.headers.vary ?? 'Accept').toMatch(/^Accept(, Accept-Encoding)?$/);
      }
    }
  });
});

describe('with CORS_ORIGINS', () => {
  const CORS_ORIGINS = `${listed}, http://localhost:5173, capacitor://localhost, app://shop:80`;
  const gateway = useGateway('PostgreSQL', rows, { CORS_ORIGINS });

  test.each<[string | undefined, boolean]>([
    [listed, true],
    ['capacitor://localhost', true],
    ['app://shop:80', true],
    ['capacitor://other', false],
    ['https://evil.example.com', false],
    [`${listed}.evil.test`, false],
    ['http://app.example.com', false],
    ['null', false],
    ['', false],
    [undefined, false],
  ])(
    'a page of %s may read every answer, errors and unchanged ones too: %s',
    async (origin, may) => {
      const allowed = {
        'access-control-allow-origin': origin,
        'access-control-expose-headers':
          'Deprecation, ETag, Link, RateLimit, RateLimit-Policy, Retry-After, Sunset, WWW-Authenticate, X-Request-Id',
      };
      for (const url of paths) {
        for (const known of ['"other"', '*']) {
          const sent = origin === undefined ? {} : { origin };
          const { headers } = await gateway.get(url, { ...sent, 'if-none-match': known });
          expect(corsHeaders(headers)).toEqual(may ? allowed : {});
          expect(headers.vary).toMatch(/^(Accept, (Accept-Encoding, )?)?Origin$/);
        }
      }
    },
  );

  test.each(['authorization, content-type,if-none-match', undefined])(
    'a preflight is answered for a request with the headers %s',
    async (asked) => {
      for (const url of ['/api/outfits/', '/graphql']) {
        const more = asked === undefined ? {} : { 'access-control-request-headers': asked };
        const headers = { origin: listed, ...preflight, ...more };
        const response = await gateway.app.inject({ method: 'OPTIONS', url, headers });
        expect(response.statusCode).toBe(204);
        expect(response.body).toBe('');
        expect(corsHeaders(response.headers)).toEqual({
          'access-control-allow-origin': listed,
          'access-control-allow-methods': 'GET, HEAD, POST',
          ...(asked === undefined ? {} : { 'access-control-allow-headers': asked }),
          'access-control-max-age': '600',
        });
        expect(response.headers.vary).toBe('Access-Control-Request-Headers, Origin');
      }
    },
  );

  test('OPTIONS without a preflight of a listed origin is answered as without CORS', async () => {
    for (const headers of [{}, { origin: listed }, { origin: 'https://evil.test', ...preflight }]) {
      const url = '/api/outfits/';
      const response = await gateway.app.inject({ method: 'OPTIONS', url, headers });
      expect(response.json()).toHaveProperty('name', 'Outfit List');
      expect(response.headers).toMatchObject({
        allow: 'GET, POST, HEAD, OPTIONS',
        vary: 'Accept, Origin',
      });
    }
  });
});

/** No request of these tests has a credential, so none is asked about. */
const cookies = { AUTH_WEBHOOK_URL: 'http://127.0.0.1:9/whoami/', AUTH_COOKIES: 'sessionid' };

describe('with AUTH_COOKIES', () => {
  const gateway = useGateway('PostgreSQL', rows, { CORS_ORIGINS: listed, ...cookies });

  test('pages of origins that are named may send cookies, with the headers of clients of Django', async () => {
    const send = async (origin: string) => {
      const headers = { origin, ...preflight, 'access-control-request-headers': 'x-anything' };
      const request = { method: 'OPTIONS', url: '/api/outfits/', headers } as const;
      return [await gateway.app.inject(request), await gateway.get('/api/outfits/', { origin })];
    };
    const [asked, read] = (await send(listed)).map(({ headers }) => corsHeaders(headers));
    expect(asked).toMatchObject({
      'access-control-allow-credentials': 'true',
      'access-control-allow-headers': expect.stringMatching(/\bContent-Type\b.*\bX-CSRFToken\b/),
    });
    expect(asked?.['access-control-allow-headers']).not.toContain('anything');
    expect(read).toHaveProperty('access-control-allow-credentials', 'true');
    for (const { headers } of [...(await send('null')), ...(await send('*'))]) {
      expect(corsHeaders(headers)).toEqual({});
    }
  });
});

describe('as django-cors-headers can be set', () => {
  const gateway = useGateway('PostgreSQL', rows, {
    CORS_ORIGINS: `*, ${listed}`,
    CORS_ALLOW_HEADERS: 'authorization, x-app-version',
    CORS_EXPOSE_HEADERS: 'X-Total-Count',
    CORS_MAX_AGE: '86400s',
    ...cookies,
  });

  test.each([
    [listed, listed, 'true'],
    ['https://other.test', '*', undefined],
    ['null', '*', undefined],
    ['*', '*', undefined],
  ])('a page of %s may read as %s, with credentials: %s', async (origin, allowed, credentials) => {
    const { headers } = await gateway.get('/api/outfits/', { origin });
    expect(headers['access-control-allow-origin']).toBe(allowed);
    expect(headers['access-control-allow-credentials']).toBe(credentials);
    expect(headers['access-control-expose-headers']).toMatch(/, X-Total-Count$/);
    const answer = await gateway.app.inject({
      method: 'OPTIONS',
      url: '/api/outfits/',
      headers: { origin, ...preflight, 'access-control-request-headers': 'x-secret' },
    });
    expect(answer.statusCode).toBe(204);
    expect(answer.headers).toMatchObject({
      'access-control-allow-origin': allowed,
      'access-control-allow-headers': 'authorization, x-app-version',
      'access-control-max-age': '86400',
    });
    expect(answer.headers['access-control-allow-credentials']).toBe(credentials);
  });
});

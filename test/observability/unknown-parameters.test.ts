// What becomes of query parameters that no stored document reads.
import { describe, expect, onTestFinished, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { buildApp } from '../../src/app.ts';
import type { Config } from '../../src/config/config.ts';
import { schema } from '../../src/graphql/schema.ts';
import { Metrics } from '../../src/observability/metrics.ts';
import { readRoutes } from '../../src/rest/read-routes.ts';
import type { Route } from '../../src/rest/routes.ts';
import { keepLog, useGateway } from '../support/gateway.ts';
import { documentOf } from '../support/graphql/schema-extension.ts';

const rows = [...generateOutfits({ outfits: 45, users: 6 })];
const [first] = rows;
const gateway = useGateway('PostgreSQL', rows);
const listing = '/api/outfits/';

/** Routes that only a test has: their parameters are known by their documents. */
const described = { name: 'Test', description: 'Of a test.' };
const routes: readonly Route[] = [
  ...readRoutes(schema),
  {
    ...described,
    path: '/api/newest/',
    list: documentOf(
      `query ($order: OutfitOrdering, $page: Int) {
         page: outfits(ordering: $order, page: $page) { count next: nextPage previous: previousPage results { id } }
       }`,
    ),
  },
  {
    ...described,
    path: '/api/users/:username/',
    record: documentOf(
      `query ($username: String!, $page: Int) {
         record: user(username: $username) { id outfits(page: $page) { count } }
       }`,
    ),
  },
];

/** A service on the database of the gateway that has counted and logged nothing yet. */
async function open(unknownParameters: Config['unknownParameters']) {
  const { logger, lines } = keepLog();
  const metrics = new Metrics(gateway.database);
  const config = { ...gateway.config, unknownParameters };
  const app = await buildApp(config, gateway.database, { metrics, logger, routes });
  onTestFinished(() => app.close());
  return {
    app,
    ask: async (url: string, headers: Record<string, string> = {}) => {
      const response = await app.inject({ url, headers: { host: 'shop.test', ...headers } });
      const { statusCode: status, body: text, headers: sent } = response;
      return { status, text, body: response.json(), headers: sent };
    },
    lines,
    counts: async () =>
      [...(await metrics.print()).text.matchAll(/^gateway_unknown_parameters_total(.+)$/gm)].map(
        ([, value]) => value,
      ),
  };
}

const refused = (...names: string[]) => ({
  status: 400,
  body: Object.fromEntries(names.map((name) => [name, ['Unknown parameter.']])),
});
const next = (query: string) => `http://shop.test${listing}?${query}`;

describe('UNKNOWN_PARAMETERS=refuse', () => {
  test('UNKNOWN_PARAMETERS=refuse is a 400 that names all of them at once, in their order, with the headers of the contract', async () => {
    const { app, ask } = await open('refuse');
    const answer = await ask(`${listing}?user=5&ordering=id&brand=a&page=2&user=6`);
    expect(answer).toMatchObject(refused('user', 'brand'));
    expect(Object.keys(answer.body)).toEqual(['user', 'brand']);
    expect(answer.headers).toMatchObject({
      'content-type': 'application/json',
      allow: 'GET, POST, HEAD, OPTIONS',
      vary: 'Accept',
    });
    const head = await app.inject({ method: 'HEAD', url: `${listing}?user=5` });
    expect([head.statusCode, head.headers['content-length'], head.body]).toEqual([400, '31', '']);
  });

  test.each([
    ['user', refused('user')],
    ['=5', refused('')],
    ['Page=2', refused('Page')],
    ['last=true', refused('last')],
    ['__proto__=1', { status: 400, text: '{"__proto__":["Unknown parameter."]}' }],
    ['%6frdering=id', { status: 200 }],
    ['page=2&ordering=-created', { status: 200 }],
    ['page=&ordering=', { status: 200 }],
    ['', { status: 200 }],
  ])('the listing with ?%s', async (query, expected) => {
    const { ask } = await open('refuse');
    expect(await ask(`${listing}?${query}`)).toMatchObject(expected);
  });

  test('a page in memory is refused like any other', async () => {
    const { ask } = await open('refuse');
    expect(await ask(`${listing}?page=2`)).toMatchObject({ status: 200 });
    expect(await ask(`${listing}?page=2&user=5`)).toMatchObject(refused('user'));
  });

  test('it stands before what is wrong with the page, and behind host, type, token and method', async () => {
    const { app, ask } = await open('refuse');
    const url = `${listing}?user=5`;
    expect(await ask(`${url}&page=0`)).toMatchObject(refused('user'));
    expect(await ask(`${url}&ordering=nope`)).toMatchObject(refused('user'));
    const invalidHost = { body: { detail: 'Invalid Host header.' } };
    expect(await ask(url, { host: 'a b' })).toMatchObject(invalidHost);
    expect((await ask(url, { accept: 'image/png' })).status).toBe(406);
    expect((await ask(url, { authorization: 'Bearer nonsense' })).status).toBe(401);
    for (const [method, status] of [
      ['DELETE', 405],
      ['OPTIONS', 200],
      ['POST', 401],
    ] as const) {
      expect((await app.inject({ method, url })).statusCode).toBe(status);
    }
  });

  test('what is known is what the document of a path reads', async () => {
    const { ask } = await open('refuse');
    expect(await ask('/api/newest/?order=id&page=2')).toMatchObject({ status: 200 });
    expect(await ask('/api/newest/?ordering=id')).toMatchObject(refused('ordering'));
    const user = `/api/users/${first?.user.username}/`;
    expect(await ask(`${user}?page=1`)).toMatchObject({ status: 200 });
    expect(await ask(`${user}?username=nobody&x=1`)).toMatchObject(refused('username', 'x'));
  });

  test('who is refused is counted and logged too', async () => {
    const { ask, counts, lines } = await open('refuse');
    await ask(`${listing}?user=5`, { 'user-agent': 'app/1' });
    expect(await counts()).toEqual(['{client="app",parameter="user"} 1']);
    expect(lines()).toMatchObject([{ client: 'app', parameter: 'user', route: listing }]);
  });
});

describe('UNKNOWN_PARAMETERS=log', () => {
  test('UNKNOWN_PARAMETERS=log answers as ever, counts by client and name, and logs each once', async () => {
    const { app, ask, counts, lines } = await open('log');
    const url = `${listing}?user=5&page=1&brand=a`;
    for (let time = 0; time < 3; time += 1) {
      const { status, body } = await ask(url, { 'user-agent': `app/${time}` });
      expect(status).toBe(200);
      expect(body).toMatchObject({ count: 45, next: next('brand=a&page=2&user=5') });
    }
    await ask(`${listing}?user=5&page=0`, { 'user-agent': 'curl/8' });
    await ask(`${listing}?page=2&ordering=id`, { 'user-agent': 'curl/8' });
    await ask('/graphql?query={__typename}&user=5', { 'user-agent': 'curl/8' });
    await app.inject({ method: 'OPTIONS', url, headers: { 'user-agent': 'curl/8' } });
    expect(await counts()).toEqual([
      '{client="app",parameter="user"} 3',
      '{client="app",parameter="brand"} 3',
      '{client="curl",parameter="user"} 1',
    ]);
    const line = { level: 'warn', msg: 'unknown query parameter', route: listing };
    expect(lines()).toMatchObject([
      { ...line, client: 'app', parameter: 'user' },
      { ...line, client: 'app', parameter: 'brand' },
      { ...line, client: 'curl', parameter: 'user' },
    ]);
  });

  test('distinguishes at most 20 names of a client, and never shows a value', async () => {
    const { ask, counts, lines } = await open('log');
    for (let number = 0; number < 30; number += 1) await ask(`${listing}?p${number}=hidden`);
    expect(await counts()).toHaveLength(21);
    expect((await counts()).at(-1)).toMatch(/parameter="other"\} 10$/);
    expect(lines()).toHaveLength(21);
    expect(JSON.stringify(lines())).not.toContain('hidden');
  });
});

test('without the setting they are neither refused nor logged nor counted', async () => {
  const { ask, counts, lines } = await open('ignore');
  const { status, body } = await ask(`${listing}?user=5`);
  expect(status).toBe(200);
  expect(body).toMatchObject({ count: 45, next: next('page=2&user=5') });
  expect(lines()).toEqual([]);
  expect(await counts()).toEqual([]);
});

// What becomes of query parameters that no stored document reads.
import { describe, expect, onTestFinished, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { buildApp } from '../../src/app.ts';
import type { Config } from '../../src/config/config.ts';
import { Metrics } from '../../src/observability/metrics.ts';
import { keepLog, useGateway } from '../support/gateway.ts';

const rows = [...generateOutfits({ outfits: 45, users: 6 })];
const gateway = useGateway('PostgreSQL', rows);
const listing = '/api/outfits/';

/** A service on the database of the gateway that has counted and logged nothing yet. */
async function open(unknownParameters: Config['unknownParameters']) {
  const { logger, lines } = keepLog();
  const metrics = new Metrics(gateway.database);
  const config = { ...gateway.config, unknownParameters };
  const app = await buildApp(config, gateway.database, { metrics, logger });
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
    expect(await ask(`${listing}?user=5&page=0`)).toMatchObject(refused('user'));
    expect(await ask(`${listing}?user=5`, { accept: 'image/png' })).toMatchObject({ status: 406 });
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

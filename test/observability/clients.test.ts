// Who calls what: clients told apart, in the log and in metrics.
import { expect, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { buildObserved, useGateway } from '../support/gateway.ts';
import { stopClocks } from '../support/this-process.ts';

const gateway = useGateway('PostgreSQL', [...generateOutfits({ outfits: 45, users: 6 })]);

/** A gateway that has counted nothing yet, and its log. */
async function openCounted() {
  const { app, log, metrics } = await buildObserved(gateway, 'debug');
  const get = (url: string, headers: Record<string, string> = {}) => app.inject({ url, headers });
  return {
    app,
    get,
    /** Requests of clients that say who they are. */
    list: async (names: readonly string[]) => {
      for (const name of names) await get('/api/outfits/', { 'x-client-name': name });
    },
    /** The series of the counter, without its name. */
    counts: async () =>
      [...(await metrics()).matchAll(/^gateway_client_requests_total(.+)$/gm)].map(
        ([, series]) => series,
      ),
    lines: log.lines,
  };
}

/** Such as n0, n1, n2. */
const numbered = (letter: string, length: number) =>
  Array.from({ length }, (_, number) => `${letter}${number}`);

const latin1 = (text: string) => Buffer.from(text).toString('latin1');

const apollo = (name: string) => ({ 'apollographql-client-name': name });
const own = (name: string) => ({ 'x-client-name': name });
const agent = (text: string) => ({ 'user-agent': text });
const linux = 'Mozilla/5.0 (X11; Linux x86_64';
const agents = [
  [`${linux}) AppleWebKit/537.36 (KHTML) Chrome/120.0 Safari/537.36`, 'Chrome', '120.0'],
  [`${linux}) AppleWebKit/537.36 Chrome/120.0 Safari/537.36 Edg/120.1`, 'Edg', '120.1'],
  [`${linux}; rv:121.0) Gecko/20100101 Firefox/121.0`, 'Firefox', '121.0'],
  [`${linux}) AppleWebKit/605 Version/17.1 Mobile/15E148 Safari/604.1`, 'Safari', '17.1'],
  [`${linux}) AppleWebKit/605 (KHTML) Mobile/15E148 Outfits/3.1`, 'Outfits', '3.1'],
  [linux, 'Mozilla', '5.0'],
  ['Mozilla/5.0 (iPhone; CPU iPhone OS 17_0) Safari/604.1', 'Safari', '604.1'],
  ['Mozilla/5.0 (compatible; Findbot/2.1; +https://a.test)', 'Findbot', '2.1'],
  ['Outfits/3.1.4 CFNetwork/1410 Darwin/22.6.0', 'Outfits', '3.1.4'],
  ['curl', 'curl', 'unknown'],
  ['a/b/c', 'a', 'b/c'],
  ['(nothing but a comment)', 'unknown', 'unknown'],
  ['', 'unknown', 'unknown'],
].map(([text = '', name = '', version = '']) => [agent(text), name, version] as const);
test.each<readonly [Record<string, string>, string, string]>([
  ...agents,
  [{}, 'unknown', 'unknown'],
  [{ ...apollo('iOS app'), 'apollographql-client-version': '4.2' }, 'iOS app', '4.2'],
  [{ ...apollo('web'), ...own('x'), ...agent('a/1') }, 'web', 'unknown'],
  [{ ...own('kiosk'), 'x-client-version': '7', ...agent('a/1') }, 'kiosk', '7'],
  [{ ...apollo(' '), ...own('kiosk') }, 'kiosk', 'unknown'],
  [{ 'apollographql-client-version': '9', ...agent('okhttp/4.9.1') }, 'okhttp', '4.9.1'],
  [own(latin1('Магазин ✓')), 'Магазин \ufffd', 'unknown'],
  [own('caf\u00e9'), 'café', 'unknown'],
  [own(latin1('a\u202eb\u0085c')), 'a\ufffdb\ufffdc', 'unknown'],
  [
    { ...own('n'.repeat(10_000)), 'x-client-version': '1'.repeat(65) },
    'n'.repeat(64),
    '1'.repeat(64),
  ],
])(
  'a client with the headers %j is %s, version %s, in the metrics and the log',
  async (headers, name, version) => {
    const { app, counts, lines } = await openCounted();
    // Undefined takes away the one that inject sends by itself.
    await app.inject({ url: '/api/outfits/', headers: { 'user-agent': undefined, ...headers } });
    expect(await counts()).toEqual([`{client="${name}",interface="rest",path="/api/outfits/"} 1`]);
    expect(lines()).toMatchObject([
      { msg: expect.stringMatching(/^(?:answered|slow)$/), client: { name, version } },
    ]);
  },
);

const namesIn = (counts: readonly (string | undefined)[]) =>
  counts.map((series) => /client="([^"]*)"/.exec(series ?? '')?.[1]);

test('counts at most 50 clients by name, and the rest as other', async () => {
  const { list, counts } = await openCounted();
  await list(numbered('n', 60));
  expect(await counts()).toHaveLength(51);
  expect(await counts()).toContain('{client="other",interface="rest",path="/api/outfits/"} 10');
});

test('keeps an idle client until a new one needs its place after ten minutes, and no other', async () => {
  const pass = stopClocks(performance);
  const { list, counts } = await openCounted();
  await list(numbered('n', 50));
  pass(599);
  await list(['n0', 'early']);
  expect(namesIn(await counts())).not.toContain('early');
  pass(2);
  expect(namesIn(await counts())).toContain('n1');
  await list(['late']);
  const kept = numbered('n', 50).filter((name) => name !== 'n1');
  expect(namesIn(await counts()).toSorted()).toEqual([...kept, 'late', 'other'].toSorted());
});

test('counts requests by client, interface and path, without probes and other paths', async () => {
  const { app, get, counts } = await openCounted();
  const headers = { 'user-agent': 'app/1' };
  for (const url of ['/api/outfits/?user=5', '/api/outfits/?page=0', '/api/outfits', '/api/no/']) {
    await get(url, headers);
  }
  await app.inject({
    method: 'POST',
    url: '/graphql',
    headers,
    payload: { query: '{__typename}' },
  });
  for (const url of ['/health/live', '/nothing', '/', '/usage']) await get(url, headers);
  expect(await counts()).toEqual([
    '{client="app",interface="rest",path="/api/outfits/"} 2',
    '{client="app",interface="rest",path="/api/outfits"} 1',
    '{client="app",interface="rest",path="/api/*"} 1',
    '{client="app",interface="graphql",path="/graphql"} 1',
  ]);
});

// Who calls what: clients told apart, in the log, in metrics, and as a table on the metrics port.
import { createHash } from 'node:crypto';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { buildApp } from '../../src/app.ts';
import { Metrics } from '../../src/observability/metrics.ts';
import { serveMetrics } from '../../src/observability/metrics-server.ts';
import type { UsageRow } from '../../src/observability/usage.ts';
import { keepLog, useGateway } from '../support/gateway.ts';
import { accept as browser, elementsOf, textsOf } from '../support/http/html.ts';

const gateway = useGateway('PostgreSQL', [...generateOutfits({ outfits: 45, users: 6 })]);

/** A gateway that has counted nothing yet, its metrics port, and its log. */
async function openCounted() {
  const { logger, lines } = keepLog('debug');
  const metrics = new Metrics(gateway.database);
  const app = await buildApp(gateway.config, gateway.database, { metrics, logger });
  onTestFinished(() => app.close());
  const server = await serveMetrics(metrics, { host: '127.0.0.1', port: 0 });
  onTestFinished(() => server.close());
  const fetchUsage = (accept = '*/*') =>
    fetch(`http://127.0.0.1:${server.port}/usage`, { headers: { accept } });
  const usage = async (): Promise<{ since: string; namesForgotten: number; usage: UsageRow[] }> =>
    (await fetchUsage()).json();
  const get = (url: string, headers: Record<string, string> = {}) => app.inject({ url, headers });
  return {
    app,
    fetchUsage,
    usage,
    rows: async () => (await usage()).usage,
    get,
    /** Requests of clients that say who they are. */
    list: async (names: readonly string[], version = '1') => {
      const named = (name: string) => ({ 'x-client-name': name, 'x-client-version': version });
      for (const name of names) await get('/api/outfits/', named(name));
    },
    metrics: async () => (await metrics.print()).text,
    lines,
  };
}

/** Such as n0, n1, n2. */
const numbered = (letter: string, length: number) =>
  Array.from({ length }, (_, number) => `${letter}${number}`);

/** A clock that stands still until it is set. */
function stopClock(start: string) {
  let moment = Date.parse(start);
  const clock = vi.spyOn(Date, 'now').mockImplementation(() => moment);
  onTestFinished(() => clock.mockRestore());
  return { pass: (milliseconds: number) => (moment += milliseconds) };
}

const minute = 60_000;
const day = 86_400_000;
const latin1 = (text: string) => Buffer.from(text).toString('latin1');

describe('a client', () => {
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
    'with the headers %j is %s, version %s, in the table, the metrics and the log',
    async (headers, name, version) => {
      const { app, rows, metrics, lines } = await openCounted();
      // Undefined takes away the one that inject sends by itself.
      await app.inject({ url: '/api/outfits/', headers: { 'user-agent': undefined, ...headers } });
      expect(await rows()).toMatchObject([{ client: name, version }]);
      const counted = `gateway_client_requests_total{client="${name}",interface="rest"} 1\n`;
      expect(await metrics()).toContain(counted);
      expect(lines()).toMatchObject([{ msg: 'answered', client: { name, version } }]);
    },
  );
});

describe('at most so many clients are told apart', () => {
  test('50 names, and 10 versions of each; the rest are other', async () => {
    const { list, rows, metrics } = await openCounted();
    await list(numbered('n', 60));
    for (const version of numbered('v', 15)) await list(['n0'], version);
    const all = await rows();
    expect(new Set(all.map(({ client }) => client)).size).toBe(51);
    const others = { client: 'other', version: 'other', requests: 10 };
    expect(all).toContainEqual(expect.objectContaining(others));
    const versions = all.filter(({ client }) => client === 'n0');
    expect(versions).toHaveLength(11);
    expect(versions).toContainEqual(expect.objectContaining({ version: 'other', requests: 6 }));
    const text = await metrics();
    expect(text.match(/^gateway_client_requests_total\{/gm)).toHaveLength(51);
    expect(text).toContain('{client="other",interface="rest"} 10\n');
  });

  test('rubbish gives way after a minute, what is in use after a day', async () => {
    const clock = stopClock('2026-11-22T12:00:00Z');
    const { list, rows, usage } = await openCounted();
    const names = async () => (await rows()).map(({ client }) => client);
    await list(Array(100).fill('in use'));
    await list(numbered('n', 49));
    clock.pass(minute - 1);
    await list(['late']);
    expect(await names()).not.toContain('late');
    clock.pass(1);
    await list(['late']);
    expect(await names()).toContain('late');
    expect(await names()).not.toContain('n0');
    expect((await usage()).namesForgotten).toBe(1);

    clock.pass(day - minute - 1);
    await list(numbered('m', 60));
    expect(await names()).toContain('in use');
    clock.pass(1);
    await list(numbered('m', 60));
    expect(await names()).not.toContain('in use');
    expect(new Set(await names()).size).toBe(51);
  });

  test('being logged too is no other use of a name', async () => {
    const clock = stopClock('2026-11-22T12:00:00Z');
    const { list, rows, lines } = await openCounted();
    await list(Array(60).fill('rubbish'));
    expect(lines()).toHaveLength(60);
    await list(numbered('n', 49));
    clock.pass(minute);
    await list(numbered('m', 50));
    expect((await rows()).map(({ client }) => client)).not.toContain('rubbish');
  });

  test('20 query parameters of each row', async () => {
    const { get, rows } = await openCounted();
    for (const name of numbered('p', 30)) await get(`/api/outfits/?${name}=1`);
    const [row] = await rows();
    expect(row?.parameters).toHaveLength(21);
    expect(row?.parameters[0]).toEqual({ name: 'other', requests: 10, unknown: true });
  });
});

describe('the table', () => {
  test('has statuses, parameters and routes, REST first', async () => {
    const { app, get, rows } = await openCounted();
    const headers = { 'user-agent': 'app/1' };
    const { headers: first } = await get('/api/outfits/?ordering=id&user=5&user=6', headers);
    await get('/api/outfits/?page=0', headers);
    await get('/api/outfits/?', { ...headers, 'if-none-match': String(first['etag']) });
    await get('/api/outfits', headers);
    await get('/api/nothing/', headers);
    const payload = { query: '{__typename}' };
    for (let time = 0; time < 9; time += 1) {
      await app.inject({ method: 'POST', url: '/graphql', headers, payload });
    }
    const none = { '2xx': 0, '3xx': 0, '4xx': 0, '5xx': 0 };
    expect(await rows()).toMatchObject([
      {
        route: '/api/outfits/',
        requests: 3,
        statuses: { ...none, '2xx': 2, '4xx': 1 },
        parameters: [
          { name: 'ordering', requests: 1, unknown: false },
          { name: 'user', requests: 1, unknown: true },
          { name: 'page', requests: 1, unknown: false },
        ],
      },
      { route: '/api/outfits', requests: 1, statuses: { ...none, '3xx': 1 }, parameters: [] },
      { route: '/api/*', requests: 1, statuses: { ...none, '4xx': 1 }, parameters: [] },
      { route: '/graphql', requests: 9, statuses: { ...none, '2xx': 9 }, parameters: [] },
    ]);
  });

  test('leaves out probes, and paths that there are not: its own is not on the port of the service', async () => {
    const { get, rows } = await openCounted();
    for (const url of ['/health/live', '/health/ready', '/nothing', '/']) await get(url);
    expect((await get('/usage')).statusCode).toBe(404);
    expect(await rows()).toEqual([]);
  });

  test('says when a client was first and last seen, and the requests of each UTC day for 30 days', async () => {
    const clock = stopClock('2026-11-22T23:59:00Z');
    const { get, usage } = await openCounted();
    for (let time = 0; time < 3; time += 1) await get('/api/outfits/');
    clock.pass(minute);
    await get('/api/outfits/');
    const { since, usage: rows } = await usage();
    expect(since).toBe('2026-11-22T23:59:00.000Z');
    expect(rows).toMatchObject([
      {
        firstSeen: '2026-11-22T23:59:00.000Z',
        lastSeen: '2026-11-23T00:00:00.000Z',
        requestsADay: 2,
        days: { '2026-11-22': 3, '2026-11-23': 1 },
      },
    ]);
    clock.pass(29 * day);
    for (let time = 0; time < 5; time += 1) await get('/api/outfits/');
    const [row] = (await usage()).usage;
    expect(row).toMatchObject({
      requests: 9,
      requestsADay: 0.2,
      days: { '2026-11-23': 1, '2026-12-22': 5 },
    });
    expect(row?.days).not.toHaveProperty('2026-11-22');
  });

  test('is JSON, and for a browser a page without scripts, of its own style only', async () => {
    const { get, fetchUsage } = await openCounted();
    expect(await (await fetchUsage(browser)).text()).toContain('No requests yet.');
    await get('/api/outfits/?user=5', { 'user-agent': 'app/1' });
    for (const accept of ['*/*', 'text/html;q=0.5,application/json', '']) {
      const response = await fetchUsage(accept);
      expect(response.headers.get('content-type')).toBe('application/json');
      expect(await response.json()).toHaveProperty('usage');
    }
    const response = await fetchUsage(browser);
    const page = await response.text();
    const [, style = ''] = /<style>(.*?)<\/style>/s.exec(page) ?? [];
    const hash = createHash('sha256').update(style).digest('base64');
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
      'x-content-type-options': 'nosniff',
    });
    expect(textsOf(page, 'th').slice(-1)).toEqual(['app']);
    expect(textsOf(page, 'td').slice(0, 4)).toEqual(['1', '/api/outfits/', '1', '1']);
    expect(textsOf(page, 'li')).toEqual(['user × 1, read by nothing']);
    const names = elementsOf(page).map(({ name }) => name);
    expect(names.filter((name) => name === 'script' || name === 'link')).toEqual([]);
    expect(page).not.toMatch(/ on\w+=|https?:/);
  });

  test('escapes whatever clients send', async () => {
    const { get, fetchUsage, metrics, rows } = await openCounted();
    const markup = `<b>"'&</b>\\`;
    const query = `${encodeURIComponent(`${markup}\n\u202e`)}=1`;
    await get(`/api/outfits/?${query}`, { 'x-client-name': markup, 'x-client-version': markup });
    expect(await rows()).toMatchObject([
      { client: markup, version: markup, parameters: [{ name: `${markup}\ufffd\ufffd` }] },
    ]);
    const page = await (await fetchUsage(browser)).text();
    // Reading it is strict.
    expect(elementsOf(page).map(({ name }) => name)).not.toContain('b');
    expect(page.split("&lt;b>&quot;'&amp;&lt;/b>\\")).toHaveLength(4);
    expect(await metrics()).toContain(
      String.raw`gateway_client_requests_total{client="<b>\"'&</b>\\",interface="rest"} 1`,
    );
  });
});

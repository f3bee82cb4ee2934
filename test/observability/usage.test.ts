// Who calls what: clients told apart, in the log, in metrics, and as a table on the metrics port.
import { createHash } from 'node:crypto';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { buildApp } from '../../src/app.ts';
import { Metrics } from '../../src/observability/metrics.ts';
import { serveMetrics } from '../../src/observability/metrics-server.ts';
import type { UsageRow } from '../../src/observability/usage.ts';
import {
  baseOf,
  findFreePort,
  migratedEnvironmentOf,
  runServer,
  stop,
} from '../support/cli/process.ts';
import { keepLog, useGateway } from '../support/gateway.ts';
import { elementsOf, textsOf } from '../support/http/html.ts';

const rows = [...generateOutfits({ outfits: 45, users: 6 })];
/** Behind `Mozilla/5.0 (X11; Linux x86_64`. */
const browsers = [
  [
    ') AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36',
    'Chrome',
    '120.0.0.0',
  ],
  [') AppleWebKit/537.36 (KHTML) Chrome/120.0.0.0 Safari/537.36 Edg/120.1', 'Edg', '120.1'],
  ['; rv:121.0) Gecko/20100101 Firefox/121.0', 'Firefox', '121.0'],
  [') AppleWebKit/605 (KHTML) Version/17.1 Mobile/15E148 Safari/604.1', 'Safari', '17.1'],
  [') AppleWebKit/605 (KHTML) Mobile/15E148 Outfits/3.1', 'Outfits', '3.1'],
  ['', 'Mozilla', '5.0'],
] as const;
const browser = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';

const gateway = useGateway('PostgreSQL', rows);

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** A gateway that has counted nothing yet, its metrics port, and its log. */
async function openCounted() {
  const { logger, lines } = keepLog('debug');
  const metrics = new Metrics(gateway.database);
  const app = await buildApp(gateway.config, gateway.database, { metrics, logger });
  const server = await serveMetrics(metrics, { host: '127.0.0.1', port: 0 });
  closing.push(
    () => server.close(),
    () => app.close(),
  );
  const fetchUsage = (accept = '*/*') =>
    fetch(`http://127.0.0.1:${server.port}/usage`, { headers: { accept } });
  const usage = async (): Promise<{ since: string; namesForgotten: number; usage: UsageRow[] }> =>
    (await fetchUsage()).json();
  return {
    app,
    fetchUsage,
    usage,
    rows: async () => (await usage()).usage,
    get: (url: string, headers: Record<string, string> = {}) => app.inject({ url, headers }),
    metrics: async () => (await metrics.print()).text,
    lines,
  };
}

/** A clock that stands still until it is set. */
function stopClock(start: string) {
  let moment = Date.parse(start);
  const clock = vi.spyOn(Date, 'now').mockImplementation(() => moment);
  closing.push(() => clock.mockRestore());
  return {
    pass(milliseconds: number) {
      moment += milliseconds;
    },
  };
}

const minute = 60_000;
const day = 86_400_000;
const latin1 = (text: string) => Buffer.from(text).toString('latin1');

describe('a client', () => {
  test.each<[Record<string, string>, string, string]>([
    [
      { 'apollographql-client-name': 'iOS app', 'apollographql-client-version': '4.2' },
      'iOS app',
      '4.2',
    ],
    [
      { 'apollographql-client-name': 'web', 'x-client-name': 'x', 'user-agent': 'a/1' },
      'web',
      'unknown',
    ],
    [{ 'x-client-name': 'kiosk', 'x-client-version': '7', 'user-agent': 'a/1' }, 'kiosk', '7'],
    [{ 'apollographql-client-name': ' ', 'x-client-name': 'kiosk' }, 'kiosk', 'unknown'],
    [{ 'apollographql-client-version': '9', 'user-agent': 'okhttp/4.9.1' }, 'okhttp', '4.9.1'],
    [{ 'user-agent': 'Mozilla/5.0 (iPhone; CPU iPhone OS 17_0) Safari/604.1' }, 'Safari', '604.1'],
    ...browsers.map(([agent, name, version]): [Record<string, string>, string, string] => [
      { 'user-agent': `Mozilla/5.0 (X11; Linux x86_64${agent}` },
      name,
      version,
    ]),
    [{ 'user-agent': 'Outfits/3.1.4 CFNetwork/1410 Darwin/22.6.0' }, 'Outfits', '3.1.4'],
    [{ 'user-agent': 'Mozilla/5.0 (compatible; Findbot/2.1; +https://a.test)' }, 'Findbot', '2.1'],
    [{ 'user-agent': 'curl' }, 'curl', 'unknown'],
    [{ 'user-agent': 'a/b/c' }, 'a', 'b/c'],
    [{ 'user-agent': '(nothing but a comment)' }, 'unknown', 'unknown'],
    [{ 'user-agent': '' }, 'unknown', 'unknown'],
    [{}, 'unknown', 'unknown'],
    [{ 'x-client-name': latin1('Магазин ✓') }, 'Магазин \ufffd', 'unknown'],
    [{ 'x-client-name': 'caf\u00e9' }, 'café', 'unknown'],
    [{ 'x-client-name': latin1('a\u202eb\u0085c') }, 'a\ufffdb\ufffdc', 'unknown'],
    [
      { 'x-client-name': 'n'.repeat(10_000), 'x-client-version': '1'.repeat(65) },
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
      expect(await metrics()).toContain(
        `gateway_client_requests_total{client="${name}",interface="rest"} 1\n`,
      );
      expect(lines()).toMatchObject([{ msg: 'answered', client: { name, version } }]);
    },
  );
});

describe('at most so many clients are told apart', () => {
  const named = (name: string, version = '1') => ({
    'x-client-name': name,
    'x-client-version': version,
  });

  test('50 names, and 10 versions of each; the rest are other', async () => {
    const { get, rows, metrics } = await openCounted();
    for (let number = 0; number < 60; number += 1) await get('/api/outfits/', named(`n${number}`));
    for (let number = 0; number < 15; number += 1)
      await get('/api/outfits/', named('n0', `v${number}`));
    const all = await rows();
    expect(new Set(all.map(({ client }) => client)).size).toBe(51);
    expect(all).toContainEqual(
      expect.objectContaining({ client: 'other', version: 'other', requests: 10 }),
    );
    const versions = all.filter(({ client }) => client === 'n0');
    expect(versions).toHaveLength(11);
    expect(versions).toContainEqual(expect.objectContaining({ version: 'other', requests: 6 }));
    const text = await metrics();
    expect(text.match(/^gateway_client_requests_total\{/gm)).toHaveLength(51);
    expect(text).toContain('{client="other",interface="rest"} 10\n');
  });

  test('rubbish gives way after a minute, what is in use after a day', async () => {
    const clock = stopClock('2026-11-22T12:00:00Z');
    const { get, rows, usage } = await openCounted();
    const names = async () => new Set((await rows()).map(({ client }) => client));
    for (let time = 0; time < 100; time += 1) await get('/api/outfits/', named('in use'));
    for (let number = 0; number < 49; number += 1) await get('/api/outfits/', named(`n${number}`));
    clock.pass(minute - 1);
    await get('/api/outfits/', named('late'));
    expect(await names()).not.toContain('late');
    clock.pass(1);
    await get('/api/outfits/', named('late'));
    expect(await names()).toContain('late');
    expect(await names()).not.toContain('n0');
    expect((await usage()).namesForgotten).toBe(1);

    clock.pass(day - minute - 1);
    for (let number = 0; number < 60; number += 1) await get('/api/outfits/', named(`m${number}`));
    expect(await names()).toContain('in use');
    clock.pass(1);
    for (let number = 0; number < 60; number += 1) await get('/api/outfits/', named(`m${number}`));
    expect(await names()).not.toContain('in use');
    expect((await names()).size).toBe(51);
  });

  test('being logged too is no other use of a name', async () => {
    const clock = stopClock('2026-11-22T12:00:00Z');
    const { get, rows, lines } = await openCounted();
    for (let time = 0; time < 60; time += 1) await get('/api/outfits/', named('rubbish'));
    expect(lines()).toHaveLength(60);
    for (let number = 0; number < 49; number += 1) await get('/api/outfits/', named(`n${number}`));
    clock.pass(minute);
    for (let number = 0; number < 50; number += 1) await get('/api/outfits/', named(`m${number}`));
    expect((await rows()).map(({ client }) => client)).not.toContain('rubbish');
  });

  test('20 query parameters of each row', async () => {
    const { get, rows } = await openCounted();
    for (let number = 0; number < 30; number += 1) await get(`/api/outfits/?p${number}=1`);
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
    for (let time = 0; time < 9; time += 1) {
      await app.inject({
        method: 'POST',
        url: '/graphql',
        headers,
        payload: { query: '{__typename}' },
      });
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

  test('leaves out probes, and paths that there are not', async () => {
    const { get, rows } = await openCounted();
    for (const url of ['/health/live', '/health/ready', '/nothing', '/']) await get(url);
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
    expect(await (await fetchUsage(browser)).text()).toContain(
      'Nobody has asked for anything yet.',
    );
    await get('/api/outfits/?user=5', { 'user-agent': 'app/1' });
    for (const accept of ['*/*', 'application/json', 'text/html;q=0.5,application/json', '']) {
      const response = await fetchUsage(accept);
      expect(response.headers.get('content-type')).toBe('application/json');
      expect(await response.json()).toHaveProperty('usage');
    }
    for (const accept of [browser, 'text/html']) {
      const response = await fetchUsage(accept);
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
      expect(names).not.toContain('script');
      expect(names).not.toContain('link');
      expect(page).not.toMatch(/ on\w+=|https?:/);
    }
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

  test('is on METRICS_PORT and not on the port of the service', async () => {
    const metricsPort = await findFreePort();
    const server = runServer({
      ...(await migratedEnvironmentOf('PostgreSQL')),
      HOST: '127.0.0.1',
      METRICS_PORT: String(metricsPort),
    });
    const base = await baseOf(server);
    await fetch(`${base}/api/outfits/`, { headers: { 'user-agent': 'outfits-app/7' } });
    await expect
      .poll(async () => (await fetch(`http://127.0.0.1:${metricsPort}/usage`)).json())
      .toMatchObject({ usage: [{ client: 'outfits-app', version: '7', requests: 1 }] });
    expect((await fetch(`${base}/usage`)).status).toBe(404);
    expect(await stop(server)).toBe(0);
  });
});

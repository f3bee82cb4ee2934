// LEGACY_MODE and WRITES: who answers, who may write, and what is compared meanwhile.
import { once } from 'node:events';
import { connect } from 'node:net';
import { Registry } from 'prom-client';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Credentials } from '../../src/admission/credentials.ts';
import { readConfig } from '../../src/config.ts';
import { ComparisonBudget } from '../../src/legacy/proxy/comparison-budget.ts';
import { LegacyMetrics } from '../../src/legacy/proxy/metrics.ts';
import { isInCanary } from '../../src/legacy/proxy/modes.ts';
import { Metrics } from '../../src/observability/metrics.ts';
import { type DatabaseKind, databaseKinds, keepLog, outfitId } from '../support/gateway.ts';
import { sendRaw } from '../support/http/raw-http.ts';
import { secret, signIn } from '../support/http/tokens.ts';
import { startWebhook } from '../support/http/webhook.ts';
import { type LegacyService, startLegacyService } from '../support/legacy/legacy-service.ts';
import { type ListeningGateway, openBefore, records } from '../support/legacy/two-services.ts';

let legacy: LegacyService;
const gateways: ListeningGateway[] = [];

beforeEach(async () => {
  legacy = await startLegacyService(records());
});
afterEach(async () => {
  for (const gateway of gateways.splice(0)) await gateway.close();
  await legacy.close();
});

async function open(
  settings: Record<string, string>,
  options = {},
  kind: DatabaseKind = 'PostgreSQL',
): Promise<ListeningGateway> {
  const gateway = await openBefore(
    kind,
    legacy.base,
    { AUTH_JWT_SECRET: secret, LEGACY_TIMEOUT: '1s', LEGACY_SAMPLE: '0', ...settings },
    options,
  );
  gateways.push(gateway);
  return gateway;
}

/** Milliseconds for what is waited for, on a busy machine too. */
const pollTimeout = 20_000;

const servedBy = (response: Response) => response.headers.get('x-served-by');
const modes = ['shadow', 'canary:0', 'canary:100', 'mirror'] as const;

async function ask(gateway: ListeningGateway, query: string, headers = {}) {
  const response = await fetch(`${gateway.base}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ query }),
  });
  const { data, errors } = (await response.json()) as {
    data?: unknown;
    errors?: { extensions: { code: string } }[];
  };
  const code = errors?.[0]?.extensions.code;
  return { status: response.status, side: servedBy(response), data, code, response };
}

const like = `mutation { likeOutfit(id: "${outfitId(1)}") { outfit { likes } } }`;
const reading = '{ outfits { count } }';
const body = JSON.stringify({
  title: 'new',
  image_key: 'outfits/00000000-0000-4000-8000-000000000001.jpeg',
});

async function publish(gateway: ListeningGateway, headers = {}) {
  const response = await fetch(`${gateway.base}/api/outfits/`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body,
  });
  const { detail } = (await response.json()) as { detail?: string };
  return { status: response.status, side: servedBy(response), detail, response };
}

describe('who answers', () => {
  test('in off: the gateway, and the old service is never asked', async () => {
    const gateway = await open({ LEGACY_MODE: 'off', LEGACY_SAMPLE: '100' });
    const response = await fetch(`${gateway.base}/api/outfits/`);
    expect([response.status, servedBy(response)]).toEqual([200, null]);
    expect(servedBy(await fetch(`${gateway.base}/api/nothing/`))).toBeNull();
    expect((await ask(gateway, reading)).side).toBeNull();
    expect(legacy.requests).toEqual([]);
  });

  test.each<[string, [string, string, string, string]]>([
    ['shadow', ['legacy', 'legacy', 'legacy', 'legacy']],
    ['canary:0', ['legacy', 'legacy', 'legacy', 'legacy']],
    ['canary:100', ['gateway', 'gateway', 'legacy', 'legacy']],
    ['mirror', ['gateway', 'gateway', 'legacy', 'gateway']],
    ['fallback', ['gateway', 'gateway', 'legacy', 'gateway']],
  ])('in %s: a read, the path without its slash, another path, OPTIONS', async (mode, sides) => {
    const gateway = await open({ LEGACY_MODE: mode });
    const request = async (path: string, method = 'GET') =>
      servedBy(await fetch(`${gateway.base}${path}`, { method, redirect: 'manual' }));
    expect([
      await request('/api/outfits/'),
      await request('/api/outfits'),
      await request('/api/echo/'),
      await request('/api/outfits/', 'OPTIONS'),
    ]).toEqual(sides);
    expect((await ask(gateway, reading)).side).toBe('gateway');
    expect(await request('/nothing')).toBe('gateway');
    expect(await request('/%zz')).toBe('gateway');
    expect(await request('/health/ready')).toBe('gateway');
  });

  test('in canary a user stays on a side, however the token is renewed, and more percent only add', () => {
    const users = Array.from({ length: 200 }, (_, index) => String(index + 1));
    const here = (percent: number, exp: number) =>
      users.filter((sub) => {
        const claims = Buffer.from(JSON.stringify({ sub, exp })).toString('base64url');
        const headers = { authorization: `Bearer e30.${claims}.${exp}` };
        return isInCanary(
          percent,
          new Credentials(readConfig({})).clientKeyOf({ headers, ip: '' }),
        );
      });
    const [ten, again, forty] = [here(10, 600), here(10, 900), here(40, 600)];
    expect(again).toEqual(ten);
    expect(forty).toEqual(expect.arrayContaining(ten));
    // The hash is fixed, so these are not chances.
    expect(ten.length).toBeGreaterThan(8);
    expect(ten.length).toBeLessThan(40);
    expect(forty.length).toBeGreaterThan(55);
    expect(forty.length).toBeLessThan(110);
  });

  test('in canary a credential that cannot be verified here goes to the old service, with one line in the log', async () => {
    const webhook = await startWebhook();
    webhook.users.set('Token a', 1).set('sessionid=a', 1);
    const jwt = await signIn(1);
    const opaque = { authorization: 'Bearer abc' };
    const token = { authorization: 'Token a' };
    const session = { cookie: 'theme=dark; sessionid=a' };
    const key = { AUTH_JWT_SECRET: secret };
    const asking = { AUTH_WEBHOOK_URL: webhook.url };
    const cookies = { ...asking, AUTH_COOKIES: 'sessionid' };
    const cases: [Record<string, string>, Record<string, string>, string | undefined][] = [
      [{}, jwt, 'AUTH_JWKS_URL or AUTH_JWT_SECRET'],
      [{}, opaque, 'AUTH_WEBHOOK_URL'],
      [{}, token, 'AUTH_WEBHOOK_URL'],
      [{}, session, 'AUTH_WEBHOOK_URL and AUTH_COOKIES'],
      [key, jwt, undefined],
      [{ ...key, AUTH_USER_CLAIM: 'user_id' }, jwt, 'AUTH_USER_CLAIM'],
      [key, opaque, 'AUTH_WEBHOOK_URL'],
      [key, token, 'AUTH_WEBHOOK_URL'],
      [key, { ...jwt, ...session }, undefined],
      [asking, jwt, undefined],
      [asking, token, undefined],
      [asking, session, 'AUTH_WEBHOOK_URL and AUTH_COOKIES'],
      [cookies, session, undefined],
      [cookies, { cookie: 'theme=dark; csrftoken=a' }, undefined],
      [{}, { cookie: 'theme=dark; sessionid=' }, undefined],
      [{}, {}, undefined],
    ];
    try {
      for (const [settings, headers, missing] of cases) {
        const log = keepLog();
        const mode = { LEGACY_MODE: 'canary:100', AUTH_JWT_SECRET: '', ...settings };
        const gateway = await open(mode, { logger: log.logger });
        for (let times = 0; times < 3; times += 1) {
          const answer = await fetch(`${gateway.base}/api/outfits/`, { headers });
          expect([servedBy(answer), headers]).toEqual([missing ? 'legacy' : 'gateway', headers]);
        }
        const lines = log.lines().filter(({ msg }) => /cannot be verified here/.test(msg));
        expect(lines.map(({ msg }) => msg.replace(/.*: set /, ''))).toEqual(
          missing ? [missing] : [],
        );
      }
    } finally {
      await webhook.close();
    }
  });

  test('in canary clients without a token are told apart by address', async () => {
    const gateway = await open({ LEGACY_MODE: 'canary:50', TRUST_PROXY: '127.0.0.1' });
    const sides = new Set<string | null>();
    for (let address = 1; address <= 20; address += 1) {
      const headers = { 'x-forwarded-for': `10.0.0.${address}` };
      const first = await fetch(`${gateway.base}/api/outfits/`, { headers });
      const second = await fetch(`${gateway.base}/api/outfits/?page=2`, { headers });
      expect(servedBy(second)).toBe(servedBy(first));
      sides.add(servedBy(first));
    }
    expect(sides).toEqual(new Set(['gateway', 'legacy']));
  });
});

describe('who may write', () => {
  test.each(['shadow', 'canary:100'])('in %s: only the old service', async (mode) => {
    const gateway = await open({ LEGACY_MODE: mode });
    const headers = await signIn(1);
    const { status, side } = await publish(gateway, headers);
    expect([status, side]).toEqual([201, 'legacy']);
    expect(legacy.records.at(-1)?.title).toBe('new');
    expect(legacy.requests.at(-1)?.body.toString()).toBe(body);
    expect(await ask(gateway, like, headers)).toMatchObject({
      status: 403,
      code: 'LEGACY_OWNS_WRITES',
      side: 'gateway',
    });
    expect(await ask(gateway, reading, headers)).toMatchObject({
      status: 200,
      data: { outfits: { count: records().length } },
    });
  });

  test('in mirror: the gateway', async () => {
    const gateway = await open({ LEGACY_MODE: 'mirror' });
    const headers = await signIn(1);
    expect(await publish(gateway, headers)).toMatchObject({ status: 201, side: 'gateway' });
    expect(await ask(gateway, like, headers)).toMatchObject({ status: 200, code: undefined });
    expect(legacy.requests).toEqual([]);
  });

  test.each(['off', ...modes])('with WRITES=off in %s: nobody', async (mode) => {
    const gateway = await open({ LEGACY_MODE: mode, WRITES: 'off' });
    for (const headers of [{}, await signIn(1)]) {
      const { status, detail, response } = await publish(gateway, headers);
      expect([status, detail]).toEqual([503, 'Writing is switched off for now, try again later.']);
      expect(response.headers.get('retry-after')).toBe('60');
      const refused = await ask(gateway, like, headers);
      expect([refused.status, refused.code]).toEqual([503, 'WRITES_OFF']);
      expect(refused.response.headers.get('retry-after')).toBe('60');
    }
    const deleted = await fetch(`${gateway.base}/api/echo/`, { method: 'DELETE' });
    expect(deleted.status).toBe(mode === 'off' ? 404 : 503);
    expect(legacy.requests).toEqual([]);
    expect((await fetch(`${gateway.base}/api/outfits/`)).status).toBe(200);
    expect((await ask(gateway, reading)).status).toBe(200);
  });
});

describe('what is compared', () => {
  /** A gateway that compares everything, with what it counts and logs. */
  async function openComparing(
    mode: string,
    settings: Record<string, string> = {},
    kind: DatabaseKind = 'PostgreSQL',
    level: 'debug' | 'info' = 'info',
  ) {
    let metrics: Metrics | undefined;
    const { logger, text, lines } = keepLog(level);
    // Made on a database that the gateway opens only then.
    const options = {
      logger,
      get metrics() {
        return metrics;
      },
    };
    const pool = { totalCount: 0, idleCount: 0, lanes: {}, timedOut: 0 };
    metrics = new Metrics({ pool, snapshots: { observe: () => {} } } as never);
    const gateway = await open(
      { LEGACY_MODE: mode, LEGACY_SAMPLE: '100', ...settings },
      options,
      kind,
    );
    const values = async (name: string) => {
      const printed = (await metrics.print()).text;
      const lines = [...printed.matchAll(new RegExp(`^${name}{(.*)} (\\d+)$`, 'gm'))];
      return Object.fromEntries(lines.map(([, labels = '', value]) => [labels, Number(value)]));
    };
    return {
      gateway,
      comparisons: () => values('gateway_legacy_comparisons_total'),
      differences: () => values('gateway_legacy_differences_total'),
      requests: () => values('gateway_http_requests_total'),
      asked: () => values('gateway_legacy_request_duration_seconds_count'),
      text,
      lines: () => lines().filter(({ msg }) => String(msg).includes('answers differ')),
    };
  }

  const read = async (base: string, target: string, headers = {}) => {
    const response = await fetch(base + target, { headers });
    return { status: response.status, text: await response.text() };
  };

  test.each(databaseKinds.flatMap((kind) => modes.map((mode) => [mode, kind] as const)))(
    'in %s on %s every read is compared, once, and nothing is said',
    async (mode, kind) => {
      const opened = await openComparing(mode, {}, kind);
      const { gateway, comparisons, differences, requests, lines } = opened;
      const targets = [
        '/api/outfits/',
        '/api/outfits/?ordering=like_count',
        '/api/outfits/?page=9',
      ];
      for (const target of targets) await read(gateway.base, target);
      const asked = legacy.requests.length;
      for (const method of ['HEAD', 'OPTIONS']) {
        // Comparisons are limited: five at once are too many.
        await expect.poll(comparisons).toHaveProperty('outcome="same"');
        await new Promise((settle) => setTimeout(settle, 500));
        await fetch(`${gateway.base}/api/outfits/`, { method });
      }
      await expect.poll(comparisons).toEqual({ 'outcome="same"': targets.length + 2 });
      expect(await differences()).toEqual({});
      expect(lines()).toEqual([]);
      // Each is asked once: comparing is no request of anyone.
      expect(asked).toBeLessThanOrEqual(targets.length);
      const counted = Object.values(await requests()).reduce((sum, one) => sum + one, 0);
      expect(counted).toBe(targets.length + 2);
    },
  );

  test.each(modes)('in %s pages of another origin are compared, with preflights', async (mode) => {
    const origin = 'https://app.test';
    legacy.cors = { origin, methods: 'GET, HEAD, POST' };
    const { gateway, comparisons, lines } = await openComparing(mode, {
      CORS_ORIGINS: origin,
      LEGACY_ACCEPT: 'header:vary,header:access-control-max-age',
    });
    await read(gateway.base, '/api/outfits/', { origin });
    await expect.poll(comparisons).toEqual({ 'outcome="accepted"': 1 });
    await new Promise((settle) => setTimeout(settle, 500));
    const headers = { origin, 'access-control-request-method': 'POST' };
    await fetch(`${gateway.base}/api/outfits/`, { method: 'OPTIONS', headers });
    await expect.poll(comparisons).toEqual({ 'outcome="accepted"': 2 });
    expect(lines()).toEqual([]);
  });

  test.each(modes)('in %s a difference is counted and logged, without the body', async (mode) => {
    const { gateway, comparisons, differences, lines, text } = await openComparing(mode);
    legacy.fault = 'another value';
    const { authorization = '' } = await signIn(1);
    await read(gateway.base, '/api/outfits/?page=2', {
      authorization,
      'x-client-name': 'the app',
    });
    await expect.poll(comparisons).toEqual({ 'outcome="different"': 1 });
    const counted = Object.keys(await differences());
    expect(counted).not.toEqual([]);
    for (const labels of counted)
      expect(labels).toContain('route="/api/outfits/",client="the app"');
    expect(lines()).toEqual([
      expect.objectContaining({
        theirs: `${legacy.base}/api/outfits/?page=2`,
        ours: `${gateway.base}/api/outfits/?page=2`,
        suppressed: 0,
      }),
    ]);
    expect(text()).not.toContain('spoilt');
    expect(text()).not.toContain(authorization);
  });

  test.each(modes)(
    'in %s compressed and conditional answers compare as plain ones',
    async (mode) => {
      const { gateway, comparisons } = await openComparing(mode);
      legacy.fault = 'gzip';
      const headers = { 'accept-encoding': 'gzip', 'if-none-match': '*' };
      await read(gateway.base, '/api/outfits/', headers);
      await expect.poll(comparisons).toEqual({ 'outcome="same"': 1 });
    },
  );

  test.each([
    ['a long text', 'x'.repeat(600_000)],
    ['many values', ','.repeat(20_001)],
  ])('an answer with %s is passed on whole, and not compared', async (_name, description) => {
    const { gateway, comparisons } = await openComparing('shadow');
    Object.assign(legacy.records.at(-1) ?? {}, { description });
    const response = await fetch(`${gateway.base}/api/outfits/`);
    expect(await response.text()).toContain(description);
    await expect.poll(comparisons).toEqual({ 'outcome="skipped"': 1 });
  });

  test('private outfits are compared as their viewer sees them, beyond the rate limit', async () => {
    const settings = { PRIVATE_OUTFITS: 'owner', RATE_LIMIT: '1/day' };
    const { gateway, comparisons } = await openComparing('shadow', settings);
    const user = 3;
    for (const record of legacy.records.splice(0)) {
      if (!record['private'] || record.user.id === user) legacy.records.push(record);
    }
    for (let time = 1; time <= 3; time += 1) {
      await read(gateway.base, '/api/outfits/', await signIn(user));
      await expect.poll(comparisons).toEqual({ 'outcome="same"': time });
    }
  });

  test('lines about differences come at most once a second, with the number left out', async () => {
    // At debug, other lines are not held back.
    const { gateway, comparisons, lines } = await openComparing('shadow', {}, undefined, 'debug');
    legacy.fault = 'wrong count';
    const different = async () => (await comparisons())['outcome="different"'] ?? 0;
    for (let time = 1; time <= 5; time += 1) {
      // Some are not compared, so that comparing leaves time for answers.
      await vi.waitFor(async () => {
        await read(gateway.base, '/api/outfits/');
        expect(await different()).toBeGreaterThanOrEqual(time);
      }, pollTimeout);
    }
    // The first came at once. The next one waits for its second, and has the number of those between.
    await new Promise((settle) => setTimeout(settle, 1_000));
    await read(gateway.base, '/api/outfits/');
    await vi.waitFor(
      async () =>
        expect(lines().reduce((sum, { suppressed }) => sum + 1 + suppressed, 0)).toBe(
          await different(),
        ),
      pollTimeout,
    );
    expect(lines().length).toBeGreaterThanOrEqual(2);
    const times: number[] = lines().map(({ time }) => Date.parse(time));
    for (const [index, time] of times.slice(1).entries()) {
      expect(time - (times[index] ?? 0)).toBeGreaterThan(950);
    }
  });

  test('an old service that hangs costs a few comparisons, and no answer', async () => {
    // Long enough for all answers to come before the first comparison is given up.
    const { gateway, comparisons } = await openComparing('mirror', { LEGACY_TIMEOUT: '10s' });
    legacy.fault = 'hanging';
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, index) => read(gateway.base, `/api/outfits/?x=${index}`)),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array(30).fill(200));
    // No more than four wait for it at a time.
    expect(legacy.requests.length).toBeLessThanOrEqual(4);
    await expect
      .poll(comparisons, { timeout: 3 * pollTimeout })
      .toEqual({ 'outcome="dropped"': 26, 'outcome="unreachable"': 4 });
  });

  test('what LEGACY_ACCEPT names is counted as accepted, and not logged', async () => {
    const settings = { LEGACY_ACCEPT: 'previous-page-1,value:results.title' };
    const { gateway, comparisons, differences, lines } = await openComparing('shadow', settings);
    legacy.fault = 'another value';
    const label = 'route="/api/outfits/",client="app"';
    await read(gateway.base, '/api/outfits/?page=2', { 'user-agent': 'app' });
    await expect.poll(comparisons).toEqual({ 'outcome="accepted"': 1 });
    expect(await differences()).toEqual({
      [`kind="previous-page-1",${label},accepted="true"`]: 1,
      [`kind="value",${label},accepted="true"`]: 1,
    });
    expect(lines()).toEqual([]);
    legacy.fault = 'wrong count';
    // The first one may have used up the time of others.
    await vi.waitFor(async () => {
      await read(gateway.base, '/api/outfits/?page=2', { 'user-agent': 'app' });
      expect((await comparisons())['outcome="different"']).toBe(1);
    }, pollTimeout);
    expect(Object.keys(await differences())).toContain(`kind="count",${label},accepted="false"`);
    expect(lines()).toHaveLength(1);
  });

  test('a link that is the same for the client is no difference, whatever the gateway takes for its base', async () => {
    const PUBLIC_URL = 'https://shop.test';
    const { gateway, comparisons, differences } = await openComparing('shadow', { PUBLIC_URL });
    legacy.fault = 'wrong count';
    const head = 'Host: shop.test\r\nX-Forwarded-Proto: https\r\nConnection: close';
    const answer = await sendRaw(
      gateway.app,
      `GET /api/outfits/?page=2 HTTP/1.1\r\n${head}\r\n\r\n`,
    );
    expect(answer).toContain('"next":"https://shop.test/api/outfits/?page=3"');
    await expect.poll(comparisons).toEqual({ 'outcome="different"': 1 });
    const kinds = Object.keys(await differences()).map((labels) => labels.split('"')[1]);
    expect(kinds).toEqual(['count', 'previous-page-1']);
  });

  test('what a proxy has said of a client holds when the connection is gone', async () => {
    const { gateway, comparisons } = await openComparing('mirror', { TRUST_PROXY: '127.0.0.1' });
    const head = 'Host: shop.test\r\nX-Forwarded-Proto: https\r\nConnection: close';
    await sendRaw(gateway.app, `GET /api/outfits/ HTTP/1.1\r\n${head}\r\n\r\n`);
    await expect.poll(comparisons).toEqual({ 'outcome="same"': 1 });
  });

  test('after comparisons that took long, none is made for ten times as long', () => {
    let now = 10_000;
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => now);
    const budget = new ComparisonBudget();
    const take = (milliseconds: number) => {
      if (!budget.tryAcquire()) return false;
      budget.charge(() => {
        now += milliseconds;
      });
      budget.release();
      return true;
    };
    // Half a second of pause may accumulate.
    expect([take(20), take(20), take(20), take(20)]).toEqual([true, true, true, false]);
    now += 1_000;
    expect(take(1_000)).toBe(true);
    now += 9_499;
    expect(take(1)).toBe(false);
    now += 1;
    expect(take(1)).toBe(true);
    clock.mockRestore();
  });

  test('the log shows values only of the parameters that the route reads', async () => {
    const { gateway, comparisons, lines, text } = await openComparing('shadow');
    legacy.fault = 'wrong count';
    await read(gateway.base, '/api/outfits/?page=1&token=s3cret&email=a%40b&ordering=id');
    await expect.poll(comparisons).toEqual({ 'outcome="different"': 1 });
    const shown = '/api/outfits/?page=1&token=…&email=…&ordering=id';
    expect(lines()).toMatchObject([{ theirs: legacy.base + shown, ours: gateway.base + shown }]);
    expect(text()).not.toContain('s3cret');
  });

  test('clients that leave, with others waiting behind them, take no place of other comparisons', async () => {
    const { gateway, comparisons, asked } = await openComparing('canary:100');
    legacy.fault = 'hanging';
    const { hostname, port } = new URL(gateway.base);
    const client = connect({ host: hostname, port: Number(port) });
    const line = (method: string) => `${method} /api/outfits/ HTTP/1.1\r\nHost: a\r\n\r\n`;
    // The first is answered by the old service, and holds up the answers of the others.
    client.write(line('OPTIONS') + line('GET').repeat(8));
    await expect.poll(() => legacy.requests.length).toBe(1);
    client.destroy();
    await expect.poll(asked).toEqual({ 'result="left"': 1 });
    legacy.fault = undefined;
    for (let time = 1; time <= 6; time += 1) {
      await read(gateway.base, '/api/outfits/');
      await expect.poll(comparisons).toEqual({ 'outcome="skipped"': 1, 'outcome="same"': time });
    }
  });

  test('a client that leaves is no failure of the old service', async () => {
    const { gateway, comparisons, asked } = await openComparing('shadow');
    legacy.fault = 'hanging';
    const leaving = new AbortController();
    const answer = fetch(`${gateway.base}/api/outfits/`, { signal: leaving.signal });
    await expect.poll(() => legacy.requests.length).toBe(1);
    leaving.abort();
    await expect(answer).rejects.toThrow();
    await expect.poll(comparisons).toEqual({ 'outcome="skipped"': 1 });
    expect(await asked()).toEqual({ 'result="left"': 1 });
  });

  test('at most 50 clients have differences of their own', async () => {
    const registry = new Registry();
    const metrics = new LegacyMetrics(registry);
    for (let number = 0; number < 120; number += 1) {
      metrics.countDifference('count', '/', `n${number}`, false);
    }
    const lines = (await registry.metrics()).match(/^gateway_legacy_differences_total{.*/gm);
    expect(lines).toHaveLength(51);
    expect(lines?.at(-1)).toMatch(/client="other".* 70$/);
  });
});

describe('what the gateway itself answers there', () => {
  test('says who, also to what is no request, and that REST ends', async () => {
    const gateway = await open({
      LEGACY_MODE: 'shadow',
      WRITES: 'off',
      REST_DEPRECATED: '2026-11-01',
    });
    expect(await sendRaw(gateway.app, 'nonsense\r\n\r\n')).toContain('x-served-by: gateway\r\n');
    const refused = await publish(gateway);
    expect(refused.response.headers.get('deprecation')).toBe('@1793491200');
    legacy.fault = 'closing early';
    const failed = await fetch(`${gateway.base}/api/outfits/`);
    expect([failed.status, failed.headers.get('deprecation')]).toEqual([502, '@1793491200']);
  });

  test('has only the usual time to arrive, unlike what is passed on', async () => {
    const gateway = await open({ LEGACY_MODE: 'shadow', LEGACY_TIMEOUT: '80s' });
    const { hostname, port } = new URL(gateway.base);
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const begin = async (path: string) => {
      const client = connect({ host: hostname, port: Number(port) });
      client.write(`POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n`);
      client.write('Content-Type: application/json\r\n\r\n{');
      await once(gateway.app.server, 'request');
      return client;
    };
    const [passedOn, own] = [await begin('/api/echo/'), await begin('/graphql')];
    vi.advanceTimersByTime(30_000);
    vi.useRealTimers();
    const [answer] = await once(own, 'data');
    expect(String(answer)).toMatch(/^HTTP\/1.1 408 [\s\S]*x-served-by: gateway\r\n/);
    passedOn.write('123}');
    const [echo] = await once(passedOn, 'data');
    expect(String(echo)).toMatch(/^HTTP\/1.1 200 [\s\S]*x-served-by: legacy\r\n/);
    for (const client of [own, passedOn]) client.destroy();
  });

  test.each([
    ['shadow', 3_600_000],
    ['canary:100', 3_600_000],
    ['mirror', 3_600_000],
    ['off', 30_000],
  ])('in %s a request has %i ms to arrive, and its head ten seconds', async (mode, time) => {
    const { app } = await open({ LEGACY_MODE: mode });
    expect([app.server.requestTimeout, app.server.headersTimeout]).toEqual([time, 10_000]);
  });
});

// LEGACY_MODE and WRITES: who answers, who may write, and what is compared meanwhile.
import { once } from 'node:events';
import { connect } from 'node:net';
import { Registry } from 'prom-client';
import {
  afterAll,
  afterEach,
  beforeEach,
  describe,
  expect,
  onTestFinished,
  test,
  vi,
} from 'vitest';
import { Credentials } from '../../src/admission/credentials.ts';
import { readConfig } from '../../src/config/config.ts';
import { ComparisonBudget } from '../../src/legacy/proxy/comparison-budget.ts';
import { LegacyMetrics } from '../../src/legacy/proxy/metrics.ts';
import { isInCanary } from '../../src/legacy/proxy/modes.ts';
import { keepLog, outfitId } from '../support/gateway.ts';
import { sendRaw } from '../support/http/raw-http.ts';
import { secret, signIn } from '../support/http/tokens.ts';
import { startWebhook } from '../support/http/webhook.ts';
import { type LegacyService, startLegacyService } from '../support/legacy/legacy-service.ts';
import {
  type ListeningGateway,
  makeMetrics,
  openBefore,
  records,
} from '../support/legacy/two-services.ts';

let legacy: LegacyService;

beforeEach(async () => {
  legacy = await startLegacyService(records());
});
afterEach(() => legacy.close());

async function open(settings: Record<string, string>, options = {}): Promise<ListeningGateway> {
  const usual = {
    AUTH_JWT_SECRET: secret,
    LEGACY_TIMEOUT: '1s',
    LEGACY_SAMPLE: '0',
    LEGACY_RECHECK: '0',
  };
  const gateway = await openBefore('PostgreSQL', legacy.base, { ...usual, ...settings }, options);
  onTestFinished(() => gateway.close());
  return gateway;
}

const servedBy = (response: Response) => response.headers.get('x-served-by');
/** One in which the old service answers, and one in which the gateway does. */
const sides = ['shadow', 'mirror'];

function post({ base }: ListeningGateway, path: string, sent: object, headers = {}) {
  const body = JSON.stringify(sent);
  const type = { 'content-type': 'application/json' };
  return fetch(base + path, { method: 'POST', headers: { ...type, ...headers }, body });
}

async function ask(gateway: ListeningGateway, query: string, headers = {}) {
  const response = await post(gateway, '/graphql', { query }, headers);
  const { data, errors } = (await response.json()) as {
    data?: unknown;
    errors?: { extensions: { code: string } }[];
  };
  const code = errors?.[0]?.extensions.code;
  return { status: response.status, side: servedBy(response), data, code, response };
}

const like = `mutation { likeOutfit(id: "${outfitId(1)}") { outfit { likes } } }`;
const reading = '{ outfits { count } }';
const outfit = { title: 'new', image_key: 'outfits/00000000-0000-4000-8000-000000000001.jpeg' };
const publish = (gateway: ListeningGateway, headers = {}) =>
  post(gateway, '/api/outfits/', outfit, headers);

describe('who answers', () => {
  test('in off: the gateway, and the old service is never asked', async () => {
    const gateway = await open({ LEGACY_MODE: 'off', LEGACY_SAMPLE: '100' });
    for (const path of ['/api/outfits/', '/api/nothing/', '/graphql']) {
      expect(servedBy(await fetch(gateway.base + path))).toBeNull();
    }
    expect(legacy.requests).toEqual([]);
  });

  test.each<[string, [string, string, string, string]]>([
    ['shadow', ['legacy', 'legacy', 'legacy', 'legacy']],
    ['canary:100', ['gateway', 'gateway', 'legacy', 'legacy']],
    ['mirror', ['gateway', 'gateway', 'legacy', 'gateway']],
    ['fallback', ['gateway', 'gateway', 'legacy', 'gateway']],
  ])('in %s: a read, the path without its slash, another path, OPTIONS', async (mode, expected) => {
    const gateway = await open({ LEGACY_MODE: mode });
    const request = async (path: string, method = 'GET') =>
      servedBy(await fetch(`${gateway.base}${path}`, { method, redirect: 'manual' }));
    expect([
      await request('/api/outfits/'),
      await request('/api/outfits'),
      await request('/api/echo/'),
      await request('/api/outfits/', 'OPTIONS'),
    ]).toEqual(expected);
    for (const path of ['/graphql', '/nothing', '/%zz', '/health/ready']) {
      expect(await request(path)).toBe('gateway');
    }
  });

  test('in canary a user stays on a side, however the token is renewed, and more percent only add', () => {
    const credentials = new Credentials(readConfig({}));
    const users = Array.from({ length: 200 }, (_, index) => String(index + 1));
    const here = (percent: number, exp: number) =>
      users.filter((sub) => {
        const claims = Buffer.from(JSON.stringify({ sub, exp })).toString('base64url');
        const headers = { authorization: `Bearer e30.${claims}.${exp}` };
        return isInCanary(percent, credentials.clientKeyOf({ headers, ip: '' }));
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
    onTestFinished(() => webhook.close());
    webhook.users.set('Token a', 1).set('sessionid=a', 1);
    const jwt = await signIn(1);
    const opaque = { authorization: 'Bearer abc' };
    const token = { authorization: 'Token a' };
    const session = { cookie: 'theme=dark; sessionid=a' };
    const key = { AUTH_JWT_SECRET: secret };
    const asking = { AUTH_WEBHOOK_URL: webhook.url };
    const [hook, cookies] = ['AUTH_WEBHOOK_URL', 'AUTH_WEBHOOK_URL and AUTH_COOKIES'];
    const none = {};
    const claim = { ...key, AUTH_USER_CLAIM: 'user_id' };
    const both = { ...asking, AUTH_COOKIES: 'sessionid' };
    // Settings, a credential, and what is missing for it; undefined: it can be verified.
    const cases: [Record<string, string>, Record<string, string>, string | undefined][] = [
      [none, jwt, 'AUTH_JWKS_URL or AUTH_JWT_SECRET'],
      [none, opaque, hook],
      [none, token, hook],
      [none, session, cookies],
      [none, { cookie: 'theme=dark; sessionid=' }, undefined],
      [none, {}, undefined],
      [key, jwt, undefined],
      [key, opaque, hook],
      [key, token, hook],
      [key, { ...jwt, ...session }, undefined],
      [claim, jwt, 'AUTH_USER_CLAIM'],
      [asking, jwt, undefined],
      [asking, token, undefined],
      [asking, session, cookies],
      [both, session, undefined],
      [both, { cookie: 'theme=dark; csrftoken=a' }, undefined],
    ];
    for (const settings of [none, key, claim, asking, both]) {
      const credentials = cases.filter(([given]) => given === settings);
      const { logger, lines } = keepLog();
      const mode = { LEGACY_MODE: 'canary:100', AUTH_JWT_SECRET: '', ...settings };
      const gateway = await open(mode, { logger });
      for (const [, headers, missing] of [...credentials, ...credentials]) {
        const answer = await fetch(`${gateway.base}/api/outfits/`, { headers });
        expect([servedBy(answer), headers]).toEqual([missing ? 'legacy' : 'gateway', headers]);
      }
      const told = lines().filter(({ msg }) => /cannot be verified here/.test(msg));
      const names = credentials.flatMap(([, , missing]) => missing ?? []);
      expect(told.map(({ msg }) => msg.replace(/.*: set /, ''))).toEqual([...new Set(names)]);
    }
  });

  test('in canary clients without a token are told apart by address', async () => {
    const gateway = await open({ LEGACY_MODE: 'canary:50', TRUST_PROXY: '127.0.0.1' });
    const found = new Set<string | null>();
    for (let address = 1; address <= 20; address += 1) {
      const headers = { 'x-forwarded-for': `10.0.0.${address}` };
      const first = await fetch(`${gateway.base}/api/outfits/`, { headers });
      const second = await fetch(`${gateway.base}/api/outfits/?page=2`, { headers });
      expect(servedBy(second)).toBe(servedBy(first));
      found.add(servedBy(first));
    }
    expect(found).toEqual(new Set(['gateway', 'legacy']));
  });
});

describe('who may write', () => {
  test.each(['shadow', 'canary:100'])('in %s: only the old service', async (mode) => {
    const gateway = await open({ LEGACY_MODE: mode });
    const headers = await signIn(1);
    const response = await publish(gateway, headers);
    expect([response.status, servedBy(response)]).toEqual([201, 'legacy']);
    expect(legacy.records.at(-1)?.title).toBe('new');
    const forwarded = legacy.requests.find(({ method }) => method === 'POST');
    expect(forwarded?.body.toString()).toBe(JSON.stringify(outfit));
    const refused = { status: 403, code: 'LEGACY_OWNS_WRITES', side: 'gateway' };
    expect(await ask(gateway, like, headers)).toMatchObject(refused);
    const { length: count } = records();
    expect(await ask(gateway, reading, headers)).toMatchObject({ data: { outfits: { count } } });
  });

  test('in mirror: the gateway', async () => {
    const gateway = await open({ LEGACY_MODE: 'mirror' });
    const headers = await signIn(1);
    const response = await publish(gateway, headers);
    expect([response.status, servedBy(response)]).toEqual([201, 'gateway']);
    expect(await ask(gateway, like, headers)).toMatchObject({ status: 200, code: undefined });
    expect(legacy.requests).toEqual([]);
  });

  test.each(['off', ...sides])('with WRITES=off in %s: nobody', async (mode) => {
    const gateway = await open({ LEGACY_MODE: mode, WRITES: 'off' });
    for (const headers of [{}, await signIn(1)]) {
      const response = await publish(gateway, headers);
      expect([response.status, await response.json()]).toEqual([
        503,
        { detail: 'Writing is switched off for now, try again later.' },
      ]);
      const refused = await ask(gateway, like, headers);
      expect([refused.status, refused.code]).toEqual([503, 'WRITES_OFF']);
      for (const one of [response, refused.response]) {
        expect(one.headers.get('retry-after')).toBe('60');
      }
    }
    const deleted = await fetch(`${gateway.base}/api/echo/`, { method: 'DELETE' });
    expect(deleted.status).toBe(mode === 'off' ? 404 : 503);
    expect(legacy.requests).toEqual([]);
    expect((await fetch(`${gateway.base}/api/outfits/`)).status).toBe(200);
    expect((await ask(gateway, reading)).status).toBe(200);
  });
});

test('after comparisons that took long, none is made for ten times as long', () => {
  let now = 10_000;
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now);
  onTestFinished(() => clock.mockRestore());
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
});

test('no more than fifty comparisons begin in a second', () => {
  let now = 10_000;
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now);
  onTestFinished(() => clock.mockRestore());
  const budget = new ComparisonBudget();
  const begin = () => {
    const begins = budget.tryAcquire();
    if (begins) budget.release();
    return begins;
  };
  const begun = () => Array.from({ length: 60 }, begin).filter(Boolean).length;
  expect([begun(), begun()]).toEqual([50, 0]);
  now += 1_000;
  expect(begun()).toBe(50);
});

describe('what is compared', () => {
  // Otherwise a busy machine would leave out some comparisons.
  const charge = vi.spyOn(ComparisonBudget.prototype, 'charge');
  beforeEach(() => {
    charge.mockReset().mockImplementation((work) => work());
  });
  afterAll(() => charge.mockRestore());

  /** A gateway that compares everything, with what it counts and logs. */
  async function openComparing(mode: string, settings = {}, level: 'debug' | 'info' = 'info') {
    const { logger, text, lines } = keepLog(level);
    const metrics = makeMetrics();
    const all = { LEGACY_MODE: mode, LEGACY_SAMPLE: '100', ...settings };
    const gateway = await open(all, { logger, metrics });
    const values = async (name: string) => {
      const printed = (await metrics.print()).text;
      const lines = [...printed.matchAll(new RegExp(`^${name}{(.*)} (\\d+)$`, 'gm'))];
      return Object.fromEntries(lines.map(([, labels = '', value]) => [labels, Number(value)]));
    };
    return {
      gateway,
      comparisons: () => values('gateway_legacy_comparisons_total'),
      differences: () => values('gateway_legacy_differences_total'),
      requests: () => values('gateway_http_request_duration_seconds_count'),
      asked: () => values('gateway_legacy_request_duration_seconds_count'),
      text,
      lines: () => lines().filter(({ msg }) => String(msg).includes('answers differ')),
    };
  }

  const read = async ({ base }: ListeningGateway, target = '/api/outfits/', headers = {}) => {
    const response = await fetch(base + target, { headers });
    return { status: response.status, text: await response.text() };
  };

  test.each(['canary:0', 'canary:100', ...sides])(
    'in %s every read is compared, once, and nothing is said',
    async (mode) => {
      const { gateway, comparisons, ...opened } = await openComparing(mode);
      const reads = [
        ['GET', '/api/outfits/'],
        ['GET', '/api/outfits/?ordering=like_count'],
        ['GET', '/api/outfits/?page=9'],
        ['HEAD', '/api/outfits/'],
        ['OPTIONS', '/api/outfits/'],
      ] as const;
      for (const [index, [method, target]] of reads.entries()) {
        await fetch(gateway.base + target, { method });
        await expect.poll(comparisons).toEqual({ 'outcome="same"': index + 1 });
      }
      expect(await opened.differences()).toEqual({});
      expect(opened.lines()).toEqual([]);
      // Each is asked once: comparing is no request of anyone.
      expect(legacy.requests).toHaveLength(reads.length);
      const counted = Object.values(await opened.requests()).reduce((sum, one) => sum + one, 0);
      expect(counted).toBe(reads.length);
    },
  );

  test('in canary the answer to a creation that does not end is begun after five seconds', async () => {
    const gateway = await open({ LEGACY_MODE: 'canary:100', LEGACY_TIMEOUT: '80s' });
    legacy.intercept = ({ method }, response) => {
      if (method !== 'POST') return undefined;
      response.writeHead(201, { 'Content-Type': 'application/json' }).write('{"id": 7');
      return true;
    };
    const created = await post(gateway, '/api/outfits/', {});
    expect(created.status).toBe(201);
    expect(new TextDecoder().decode((await created.body?.getReader().read())?.value)).toBe(
      '{"id": 7',
    );
  });

  test('in shadow answers that arrive slowly keep no other one from being compared', async () => {
    const { gateway, comparisons } = await openComparing('shadow', { LEGACY_TIMEOUT: '10s' });
    legacy.intercept = ({ url }, response) => {
      if (!url.search.includes('held')) return undefined;
      response.writeHead(200, { 'Content-Type': 'application/json' }).write('{');
      return true;
    };
    const leaving = new AbortController();
    onTestFinished(() => leaving.abort());
    const { signal } = leaving;
    for (let number = 0; number < 4; number++) {
      await fetch(`${gateway.base}/api/outfits/?held=${number}`, { signal });
    }
    await read(gateway);
    await expect.poll(comparisons).toMatchObject({ 'outcome="same"': 1 });
  });

  test.each(sides)('in %s pages of another origin are compared, with preflights', async (mode) => {
    const origin = 'https://app.test';
    legacy.cors = { origin, methods: 'GET, HEAD, POST' };
    const { gateway, comparisons, lines } = await openComparing(mode, {
      CORS_ORIGINS: origin,
      LEGACY_ACCEPT: 'header:vary,header:access-control-max-age',
    });
    await read(gateway, '/api/outfits/', { origin });
    await expect.poll(comparisons).toEqual({ 'outcome="accepted"': 1 });
    const headers = { origin, 'access-control-request-method': 'POST' };
    await fetch(`${gateway.base}/api/outfits/`, { method: 'OPTIONS', headers });
    await expect.poll(comparisons).toEqual({ 'outcome="accepted"': 2 });
    expect(lines()).toEqual([]);
  });

  test.each(sides)('in %s a difference is counted and logged, without the body', async (mode) => {
    const { gateway, comparisons, differences, lines, text } = await openComparing(mode);
    legacy.fault = 'another value';
    const { authorization = '' } = await signIn(1);
    const target = '/api/outfits/?page=2';
    await read(gateway, target, { authorization, 'x-client-name': 'the app' });
    await expect.poll(comparisons).toEqual({ 'outcome="different"': 1 });
    const counted = Object.keys(await differences());
    const label = expect.stringContaining('route="/api/outfits/",client="the app"');
    expect(counted).toEqual(counted.map(() => label));
    expect(counted).not.toEqual([]);
    const [theirs, ours] = [legacy.base + target, gateway.base + target];
    expect(lines()).toMatchObject([{ theirs, ours, suppressed: 0 }]);
    expect(text()).not.toContain('spoilt');
    expect(text()).not.toContain(authorization);
  });

  describe('a difference that data can cause is compared again after LEGACY_RECHECK', () => {
    const wait = { LEGACY_RECHECK: '2s' };
    /** Until it is compared for the first time, which counts nothing. */
    const firstLook = () => expect.poll(() => charge.mock.calls.length).toBe(1);
    const rename = (id: number, title: string) =>
      Object.assign(legacy.records.find((record) => record.id === id) ?? {}, { title });
    const renameHere = ({ database }: ListeningGateway, id: number, title: string) =>
      database.pool.query('UPDATE outfits SET title = $2 WHERE id = $1', [id, title]);

    test.each(['shadow', 'canary:100'])(
      'and is stale in %s when the next round has brought it, which is not logged',
      async (mode) => {
        const { gateway, comparisons, differences, lines } = await openComparing(mode, wait);
        rename(44, 'Renamed');
        await read(gateway);
        await firstLook();
        await renameHere(gateway, 44, 'Renamed');
        await expect.poll(comparisons).toEqual({ 'outcome="stale"': 1 });
        expect([await differences(), lines()]).toEqual([{}, []]);
        expect(legacy.requests.length).toBe(2);
      },
    );

    test('and is stale while the data goes on changing, but reported when it stays', async () => {
      const { gateway, comparisons, differences, lines } = await openComparing('shadow', wait);
      rename(44, 'First');
      await read(gateway);
      await firstLook();
      await renameHere(gateway, 44, 'First');
      rename(44, 'Second');
      await expect.poll(comparisons).toEqual({ 'outcome="stale"': 1 });
      await read(gateway);
      const both = { 'outcome="stale"': 1, 'outcome="different"': 1 };
      await expect.poll(comparisons).toEqual(both);
      expect(Object.keys(await differences())).toEqual([
        expect.stringMatching(/^kind="value",.*accepted="false"$/),
      ]);
      expect(lines()).toHaveLength(1);
    });

    test('and one that only code can cause is reported at once', async () => {
      const { gateway, comparisons } = await openComparing('shadow', { LEGACY_RECHECK: '1h' });
      await read(gateway, '/api/outfits/?ordering=title');
      await expect.poll(comparisons).toEqual({ 'outcome="different"': 1 });
    });

    test('and what is written here is stale in mirror, without a wait', async () => {
      const settings = { LEGACY_RECHECK: '1h', LEGACY_ACCEPT: 'previous-page-1,header' };
      const { gateway, comparisons, lines } = await openComparing('mirror', settings);
      const created = await publish(gateway, await signIn(1));
      const { id } = (await created.json()) as { id: number };
      await gateway.database.pool.query(
        "UPDATE outfits SET title = 'x', modified = 1 WHERE id = 29",
      );
      await gateway.database.pool.query('UPDATE outfit_like_counts SET likes = 77 WHERE id = 31');
      legacy.hasDetails = true;
      const targets = ['', '?page=2', '29/', '31/', `${id}/`, '?ordering=-like_count'];
      for (const [index, target] of targets.entries()) {
        await read(gateway, `/api/outfits/${target}`);
        await expect.poll(comparisons).toEqual({ 'outcome="stale"': index + 1 });
      }
      expect(lines()).toEqual([]);
    });
  });

  test.each(sides)(
    'in %s compressed and conditional answers compare as plain ones',
    async (mode) => {
      const { gateway, comparisons } = await openComparing(mode);
      legacy.fault = 'gzip';
      await read(gateway, '/api/outfits/', { 'accept-encoding': 'gzip', 'if-none-match': '*' });
      await expect.poll(comparisons).toEqual({ 'outcome="same"': 1 });
    },
  );

  test.each([
    ['a long text', 'x'.repeat(600_000)],
    ['many values', ','.repeat(20_001)],
  ])('an answer with %s is passed on whole, and not compared', async (_name, description) => {
    const { gateway, comparisons } = await openComparing('shadow');
    Object.assign(legacy.records.at(-1) ?? {}, { description });
    expect((await read(gateway)).text).toContain(description);
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
      await read(gateway, '/api/outfits/', await signIn(user));
      await expect.poll(comparisons).toEqual({ 'outcome="same"': time });
    }
  });

  test('lines about differences come at most once a second, with the number left out', async () => {
    // At debug, other lines are not held back.
    const { gateway, comparisons, lines } = await openComparing('shadow', {}, 'debug');
    legacy.fault = 'wrong count';
    for (let time = 1; lines().length < 2; time += 1) {
      await read(gateway);
      await expect.poll(comparisons).toEqual({ 'outcome="different"': time });
    }
    const [first, second] = lines();
    expect(first).toMatchObject({ suppressed: 0 });
    expect(Date.parse(second.time) - Date.parse(first.time)).toBeGreaterThan(950);
    const { 'outcome="different"': different = 0 } = await comparisons();
    expect(second.suppressed).toBe(different - 2);
  });

  test('an old service that hangs costs a few comparisons, and no answer', async () => {
    // Long enough for all answers to come before the first comparison is given up.
    const { gateway, comparisons } = await openComparing('mirror', { LEGACY_TIMEOUT: '5s' });
    legacy.fault = 'hanging';
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, index) => read(gateway, `/api/outfits/?x=${index}`)),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array(30).fill(200));
    // No more than four wait for it at a time.
    await expect
      .poll(comparisons, { timeout: 60_000 })
      .toEqual({ 'outcome="dropped"': 26, 'outcome="unreachable"': 4 });
    expect(legacy.requests).toHaveLength(4);
  });

  test('what LEGACY_ACCEPT names is counted as accepted, and not logged', async () => {
    const settings = { LEGACY_ACCEPT: 'previous-page-1,value:results.title' };
    const { gateway, comparisons, differences, lines } = await openComparing('shadow', settings);
    legacy.fault = 'another value';
    const label = 'route="/api/outfits/",client="app"';
    await read(gateway, '/api/outfits/?page=2', { 'user-agent': 'app' });
    await expect.poll(comparisons).toEqual({ 'outcome="accepted"': 1 });
    expect(await differences()).toEqual({
      [`kind="previous-page-1",${label},accepted="true"`]: 1,
      [`kind="value",${label},accepted="true"`]: 1,
    });
    expect(lines()).toEqual([]);
    legacy.fault = 'wrong count';
    await read(gateway, '/api/outfits/?page=2', { 'user-agent': 'app' });
    await expect.poll(comparisons).toHaveProperty('outcome="different"', 1);
    expect(await differences()).toHaveProperty(`kind="value",${label},accepted="false"`);
    expect(lines()).toHaveLength(1);
  });

  const forwarded = (target: string) =>
    `GET ${target} HTTP/1.1\r\nHost: shop.test\r\nX-Forwarded-Proto: https\r\nConnection: close\r\n\r\n`;

  test('a link that is the same for the client does not count as a difference, whatever base the gateway uses', async () => {
    const PUBLIC_URL = 'https://shop.test';
    const { gateway, comparisons, differences } = await openComparing('shadow', { PUBLIC_URL });
    legacy.fault = 'wrong count';
    const answer = await sendRaw(gateway.app, forwarded('/api/outfits/?page=2'));
    expect(answer).toContain('"next":"https://shop.test/api/outfits/?page=3"');
    await expect.poll(comparisons).toEqual({ 'outcome="different"': 1 });
    const kinds = Object.keys(await differences()).map((labels) => labels.split('"')[1]);
    expect(kinds).toEqual(['value', 'previous-page-1']);
  });

  test('what a proxy has said of a client holds when the connection is gone', async () => {
    const { gateway, comparisons } = await openComparing('mirror', { TRUST_PROXY: '127.0.0.1' });
    await sendRaw(gateway.app, forwarded('/api/outfits/'));
    await expect.poll(comparisons).toEqual({ 'outcome="same"': 1 });
  });

  test('the log shows values only of the parameters that the route reads', async () => {
    const { gateway, comparisons, lines, text } = await openComparing('shadow');
    legacy.fault = 'wrong count';
    await read(gateway, '/api/outfits/?page=1&token=s3cret&email=a%40b&ordering=id');
    await expect.poll(comparisons).toEqual({ 'outcome="different"': 1 });
    const shown = '/api/outfits/?page=1&token=…&email=…&ordering=id';
    expect(lines()).toMatchObject([{ theirs: legacy.base + shown, ours: gateway.base + shown }]);
    expect(text()).not.toContain('s3cret');
  });

  test('clients that leave do not count as failures of the old service, and take no place of other comparisons', async () => {
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
      await read(gateway);
      await expect.poll(comparisons).toEqual({ 'outcome="skipped"': 1, 'outcome="same"': time });
    }
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
  test('answers to unreadable requests name the service, and the end of REST', async () => {
    const settings = { LEGACY_MODE: 'shadow', WRITES: 'off', REST_DEPRECATED: '2026-11-01' };
    const gateway = await open(settings);
    expect(await sendRaw(gateway.app, 'nonsense\r\n\r\n')).toContain('x-served-by: gateway\r\n');
    legacy.fault = 'closing early';
    for (const answer of [await publish(gateway), await fetch(`${gateway.base}/api/outfits/`)]) {
      expect(answer.headers.get('deprecation')).toBe('@1793491200');
    }
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
    ['off', 30_000],
  ])('in %s a request has %i ms to arrive, and its head ten seconds', async (mode, time) => {
    const { app } = await open({ LEGACY_MODE: mode });
    expect([app.server.requestTimeout, app.server.headersTimeout]).toEqual([time, 10_000]);
  });
});

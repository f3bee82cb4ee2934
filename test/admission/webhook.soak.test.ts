// AUTH_WEBHOOK_URL and AUTH_COOKIES: credentials that another service verifies, over REST and GraphQL.
import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance, InjectOptions } from 'fastify';
import {
  afterAll,
  beforeAll,
  beforeEach,
  describe,
  expect,
  onTestFinished,
  test,
  vi,
} from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { Webhook } from '../../src/admission/webhook.ts';
import { readConfig } from '../../src/config/config.ts';
import { HttpClient } from '../../src/http/client.ts';
import { buildForTest, buildObserved, keepLog, outfitId, useGateway } from '../support/gateway.ts';
import { baseOfApp, openStream } from '../support/http/event-stream.ts';
import { postGraphql } from '../support/http/graphql.ts';
import { secret, signIn } from '../support/http/tokens.ts';
import { sendJson, startWebhook, type Webhook as TestWebhook } from '../support/http/webhook.ts';
import { keepWarnings, stopClocks } from '../support/this-process.ts';

const gateway = useGateway('PostgreSQL', [...generateOutfits({ outfits: 5, users: 2 })]);
let webhook: TestWebhook;
beforeAll(async () => {
  webhook = await startWebhook();
});
afterAll(() => webhook.close());
beforeEach(async () => {
  webhook.asked.length = 0;
  webhook.users.clear();
  webhook.answer = undefined;
  webhook.underWay.most = 0;
  await gateway.database.pool.query('TRUNCATE rate_limits');
});

async function open(environment: Record<string, string> = {}, logger = keepLog().logger) {
  const config = readConfig({
    AUTH_WEBHOOK_URL: webhook.url,
    AUTH_COOKIES: 'sessionid',
    PUBLIC_URL: 'https://shop.test',
    ...environment,
  });
  return buildForTest(config, gateway.database, { logger });
}

const own = 'https://shop.test';
const like = `mutation { likeOutfit(id: "${outfitId(1)}") { outfit { viewerHasLiked } } }`;
const image = 'outfits/2b1d3c4e-0000-4000-8000-000000000001.png';

const read = (app: FastifyInstance, headers: Record<string, string>, more: InjectOptions = {}) =>
  app.inject({ method: 'GET', url: '/api/outfits/', ...more, headers });

const create = (app: FastifyInstance, headers: Record<string, string>) =>
  app.inject({ method: 'POST', url: '/api/outfits/', headers, payload: { image_key: image } });

const ask = (app: FastifyInstance, query: string, headers: Record<string, string>) =>
  postGraphql(app, { query }, headers);

async function viewerOf(app: FastifyInstance, headers: Record<string, string>): Promise<unknown> {
  const { statusCode, body } = await ask(app, '{ viewer { user { databaseId } } }', headers);
  if (statusCode !== 200) return statusCode;
  return JSON.parse(body).data.viewer?.user?.databaseId ?? null;
}

const token = (name: string) => ({ authorization: `Token ${name}` });
const session = (value: string) => ({ cookie: `_ga=1; sessionid=${value}; theme=dark` });

test.each([
  ['a token', 'Token abc'],
  ['an opaque bearer token', 'Bearer abc'],
  ['a bearer token with dots', 'Bearer sk.live.abc'],
  ['a password', 'Basic dXNlcjpwYXNz'],
  ['a JWT without keys', 'Bearer eyJhbGciOiJIUzI1NiJ9.e30.abc'],
])('a credential of another form is asked about: %s', async (_name, authorization) => {
  const app = await open();
  webhook.users.set(authorization, 1);
  expect((await read(app, { authorization })).statusCode).toBe(200);
  expect(await viewerOf(app, { authorization })).toBe(1);
  expect((await create(app, { authorization })).json()).toMatchObject({ user: { id: 1 } });
  expect(webhook.asked).toMatchObject([
    { method: 'GET', target: '/whoami/?from=gateway', headers: { authorization } },
  ]);
});

test('a credential is asked about with the cookies that AUTH_COOKIES names, and nothing else of the request', async () => {
  const app = await open();
  webhook.users.set('sessionid=a; sessionid=b', 2);
  const headers = {
    cookie: 'x=1; sessionid=a;  Sessionid=c; sessionid=; xsessionid=d;sessionid=b; sessionid',
    'x-secret': 'of the client',
    origin: own,
  };
  expect(await viewerOf(app, headers)).toBe(2);
  expect(webhook.asked[0]?.headers).toEqual({
    accept: 'application/json',
    connection: 'keep-alive',
    cookie: 'sessionid=a; sessionid=b',
    host: new URL(webhook.url).host,
  });
});

test('without a credential nothing is asked', async () => {
  const app = await open();
  const others = [{}, { cookie: 'csrftoken=1' }, { cookie: 'sessionid=' }, { authorization: '' }];
  for (const headers of others) expect((await read(app, headers)).statusCode).toBe(200);
  expect((await create(app, {})).statusCode).toBe(401);
  expect(webhook.asked).toEqual([]);
});

test('a credential that is a JWT which the keys do not verify is never asked about', async () => {
  const app = await open({ AUTH_JWT_SECRET: secret });
  const [header, payload] = (await signIn(1))['authorization']?.split('.') ?? [];
  const expired = (await signIn(1, -10))['authorization'] ?? '';
  for (const authorization of [
    `${header}.${payload}.${'A'.repeat(43)}`,
    expired,
    `${expired} `,
    expired.replace('Bearer', 'bearer '),
    `${header}.${payload}.a.b.c`,
    'Bearer',
    'Bearer a b',
  ]) {
    expect((await read(app, { authorization })).statusCode).toBe(401);
    expect((await read(app, { authorization, ...session('a') })).statusCode).toBe(401);
  }
  expect(webhook.asked).toEqual([]);
  expect((await read(app, await signIn(1))).statusCode).toBe(200);
  webhook.users.set('Token abc', 2);
  expect(await viewerOf(app, token('abc'))).toBe(2);
  expect(webhook.asked).toHaveLength(1);
});

test('a credential is not in the log, and neither is what the webhook says', async () => {
  const log = keepLog('debug');
  const app = await open({}, log.logger);
  webhook.answer = (response) => response.end('{"id": "top secret"');
  const credentials = { ...token('hidden-token'), ...session('hidden-session') };
  expect((await read(app, credentials)).statusCode).toBe(503);
  await expect.poll(log.text).toContain('Service temporarily unavailable');
  expect(log.text()).not.toMatch(/hidden|secret/);
});

test('a refusal is a 401, with 403 too, and of a cookie alone makes the request anonymous, as in Django', async () => {
  const app = await open();
  webhook.answer = (response) => sendJson(response, 403, { id: 1 });
  expect((await read(app, token('abc'))).json()).toEqual({ detail: 'Invalid token.' });
  expect((await create(app, token('abc'))).statusCode).toBe(401);
  expect(await viewerOf(app, token('abc'))).toBe(401);
  const ended = { ...session('ended'), origin: own };
  expect((await read(app, ended)).statusCode).toBe(200);
  expect(await viewerOf(app, ended)).toBeNull();
  expect((await create(app, ended)).statusCode).toBe(401);
  expect((await ask(app, like, ended)).body).toContain('UNAUTHENTICATED');
});

describe('anything else that the webhook does', () => {
  const answers: [string, (response: ServerResponse) => void][] = [
    ['a redirect', (response) => response.writeHead(302, { location: webhook.url }).end()],
    ['an error', (response) => sendJson(response, 500, { id: 1 })],
    ['nothing there', (response) => sendJson(response, 404, { id: 1 })],
    ['a page', (response) => response.end('<h1>Sign in</h1>')],
    ['no object', (response) => sendJson(response, 200, [{ id: 1 }])],
    ['half an id', (response) => sendJson(response, 200, { id: 1.5 })],
    ['invalid UTF-8', (response) => response.end(Buffer.from('{"id":1,"a":"\xff"}', 'latin1'))],
    ['a body without end', (response) => void response.write(' '.repeat(100_000))],
    ['a large body', (response) => response.end(`{"id":1,"a":"${'a'.repeat(70_000)}"}`)],
    ['large headers', (response) => response.setHeader('x-a', 'a'.repeat(20_000)).end('{"id":1}')],
    ['a broken connection', (response) => response.socket?.destroy()],
    ['broken gzip', (response) => response.setHeader('content-encoding', 'gzip').end('{"id":1}')],
  ];

  test.each(answers)(
    'is a 503 for requests with credentials, and nothing for others: %s',
    async (_name, answer) => {
      // A body without end is given up after half of it.
      const app = await open({ REQUEST_TIMEOUT: '3s' });
      webhook.answer = answer;
      for (const request of [read(app, token('abc')), read(app, session('a'))]) {
        const { statusCode, headers, json } = await request;
        expect([statusCode, headers['retry-after']]).toEqual([503, '1']);
        expect(json()).toEqual({ detail: 'Service temporarily unavailable, try again later.' });
      }
      expect(await viewerOf(app, token('abc'))).toBe(503);
      expect((await read(app, {})).statusCode).toBe(200);
      // Nothing of it is kept.
      webhook.answer = undefined;
      webhook.users.set('Token abc', 1);
      expect(await viewerOf(app, token('abc'))).toBe(1);
    },
  );

  test('one that hangs is asked 32 questions at a time, costs a 503, and delays no other request', async () => {
    const app = await open({ TRUST_PROXY: '127.0.0.1' });
    const warnings = keepWarnings();
    webhook.answer = () => {};
    const statuses: number[] = [];
    const waiting = Array.from({ length: 200 }, async (_, index) => {
      const headers = { ...token(String(index)), 'x-forwarded-for': `10.0.0.${index}` };
      statuses.push((await read(app, headers)).statusCode);
    });
    for (let index = 0; index < 20; index += 1) {
      expect((await read(app, {})).statusCode).toBe(200);
    }
    expect(statuses).toEqual([]);
    await Promise.all(waiting);
    expect(new Set(statuses)).toEqual(new Set([503]));
    expect(webhook.underWay.most).toBe(32);
    expect(warnings).toEqual([]);
  });

  const outages = answers.filter(([name]) => /^(?:an error|a broken connection)$/.test(name));
  test.each<(typeof answers)[number]>([...outages, ['no answer', () => {}]])(
    'is an outage, in which a credential goes on after its last acceptance, but no other: %s',
    async (_name, outage) => {
      const settings = { AUTH_WEBHOOK_TTL: '1s', REQUEST_TIMEOUT: '4s' };
      const app = await open({ ...settings, AUTH_WEBHOOK_STALE: '6s' });
      const off = await open({ ...settings, AUTH_WEBHOOK_STALE: '0' });
      const pass = stopClocks(Date, performance);
      const short = await signIn(2, 4);
      webhook.users.set('Token abc', 1).set('Token gone', 1).set(short['authorization'], 2);
      for (const headers of [token('abc'), token('gone'), short]) {
        expect(await viewerOf(app, headers)).not.toBe(503);
      }
      expect(await viewerOf(off, token('abc'))).toBe(1);
      pass(1.1);
      webhook.users.delete('Token gone');
      expect(await viewerOf(app, token('gone'))).toBe(401);
      pass(1.1);
      webhook.answer = outage;
      expect(await viewerOf(app, token('abc'))).toBe(1);
      expect((await create(app, token('abc'))).statusCode).toBe(201);
      const others = ['gone', 'new'].map((name) => viewerOf(app, token(name)));
      expect(await Promise.all([...others, viewerOf(off, token('abc'))])).toEqual([503, 503, 503]);
      expect(await viewerOf(app, short)).toBe(2);
      // A token ends by itself.
      pass(2);
      expect(await viewerOf(app, short)).toBe(503);
      expect(await viewerOf(app, token('abc'))).toBe(1);
      pass(2);
      expect(await viewerOf(app, token('abc'))).toBe(503);
    },
  );

  test('is not an outage when it answers: a credential that was accepted does not go on', async () => {
    const app = await open({ AUTH_WEBHOOK_TTL: '1s' });
    const pass = stopClocks(performance);
    webhook.users.set('Token abc', 1);
    expect(await viewerOf(app, token('abc'))).toBe(1);
    pass(1.1);
    for (const [name, answer] of answers.filter(([one]) => /there|page|object/.test(one))) {
      webhook.answer = answer;
      expect([name, await viewerOf(app, token('abc'))]).toEqual([name, 503]);
    }
    webhook.answer = (response) => sendJson(response, 500, {});
    expect(await viewerOf(app, token('abc'))).toBe(1);
    webhook.answer = (response) => sendJson(response, 401, {});
    // The first one does not wait for the answer.
    await expect.poll(() => viewerOf(app, token('abc'))).toBe(401);
    webhook.answer = (response) => sendJson(response, 500, {});
    pass(1.1);
    expect(await viewerOf(app, token('abc'))).toBe(503);
  });

  test('each request to the webhook is measured by its outcome, and a cached decision is not', async () => {
    const config = readConfig({
      AUTH_WEBHOOK_URL: webhook.url,
      AUTH_WEBHOOK_TTL: '60s',
      REQUEST_TIMEOUT: '4s',
    });
    const { app, metrics } = await buildObserved({ database: gateway.database, config });
    webhook.users.set('Token good', 1);
    for (const name of ['good', 'bad', 'good', 'bad']) await read(app, token(name));
    webhook.answer = (response) => sendJson(response, 500, {});
    await read(app, token('failed'));
    webhook.answer = () => {};
    await read(app, token('late'));
    stopClocks(performance)(61);
    await read(app, token('good'));
    const text = await metrics();
    expect(text).toContain('\ngateway_auth_webhook_stale_total 1\n');
    for (const outcome of ['accepted', 'refused', 'failed', 'timeout']) {
      expect(text).toContain(
        `\ngateway_auth_webhook_duration_seconds_count{outcome="${outcome}"} 1\n`,
      );
    }
    const [, late] = /_seconds_sum\{outcome="timeout"\} (\S+)/.exec(text) ?? [];
    expect(Number(late)).toBeGreaterThan(1.5);
  });

  test('LEGACY_HOST is its Host where it is at the origin of LEGACY_URL', async () => {
    webhook.users.set('Token a', 1);
    const LEGACY_HOST = 'old.example.com';
    for (const LEGACY_URL of [new URL(webhook.url).origin, 'http://elsewhere.test']) {
      const app = await open({ LEGACY_URL, LEGACY_HOST });
      expect((await read(app, token('a'))).statusCode).toBe(200);
    }
    const hosts = webhook.asked.map(({ headers }) => headers.host);
    expect(hosts).toEqual([LEGACY_HOST, new URL(webhook.url).host]);
  });

  test('a kept connection that ends as it is used again is not a failure', async () => {
    const app = await open();
    webhook.answer = (response) => {
      if (webhook.asked.length === 2) response.socket?.destroy();
      else sendJson(response, 200, { id: 1 });
    };
    expect(await viewerOf(app, token('a'))).toBe(1);
    expect(await viewerOf(app, token('b'))).toBe(1);
    expect(webhook.asked).toHaveLength(3);
  });
});

test('the answer of the webhook is kept for AUTH_WEBHOOK_TTL, answer and refusal alike', async () => {
  const app = await open({ AUTH_WEBHOOK_TTL: '1s' });
  const pass = stopClocks(performance);
  webhook.users.set('Token good', 1);
  for (let index = 0; index < 3; index += 1) {
    expect(await viewerOf(app, token('good'))).toBe(1);
    expect(await viewerOf(app, token('bad'))).toBe(401);
  }
  expect(webhook.asked).toHaveLength(2);
  webhook.users.clear();
  webhook.users.set('Token bad', 2);
  pass(1.1);
  expect(await viewerOf(app, token('good'))).toBe(401);
  expect(await viewerOf(app, token('bad'))).toBe(2);
  expect(webhook.asked).toHaveLength(4);
});

test('the time of an answer counts from the question on: a slow answer is no longer valid than a fast one', async () => {
  const app = await open({ AUTH_WEBHOOK_TTL: '1s' });
  webhook.answer = (response) => setTimeout(() => sendJson(response, 200, { id: 1 }), 700);
  expect(await viewerOf(app, token('a'))).toBe(1);
  await sleep(350);
  webhook.answer = (response) => sendJson(response, 401, {});
  expect(await viewerOf(app, token('a'))).toBe(401);
});

test('the webhook is asked one question for all who ask with the same credential at a time', async () => {
  const app = await open();
  webhook.answer = (response) => setTimeout(() => sendJson(response, 200, { id: 1 }), 100);
  const answers = await Promise.all(Array.from({ length: 300 }, () => viewerOf(app, token('a'))));
  expect(new Set(answers)).toEqual(new Set([1]));
  expect(webhook.asked).toHaveLength(1);
});

test('the answer for a credential is never given to another credential', async () => {
  const app = await open();
  webhook.users.set('Token a', 1).set('sessionid=a', 2);
  expect(await viewerOf(app, token('a'))).toBe(1);
  expect(await viewerOf(app, { ...session('a'), origin: own })).toBe(2);
  expect(await viewerOf(app, token('a '))).toBe(1);
  expect(await viewerOf(app, token('A'))).toBe(401);
  expect(await viewerOf(app, { ...session('A'), origin: own })).toBeNull();
  expect(webhook.asked).toHaveLength(4);
  await viewerOf(app, { authorization: 'sessionid=a' });
  expect(webhook.asked).toHaveLength(5);
});

const used = async () => {
  const { rows } = await gateway.database.pool.query(
    `SELECT regexp_replace(sender, '^\\S+ ', '') || ': ' || used AS line FROM rate_limits ORDER BY 1`,
  );
  return rows.map(({ line }) => line);
};

test('RATE_LIMIT counts a request once, for its address, later for its user, and refuses before it is asked about', async () => {
  const app = await open({ RATE_LIMIT: '5/day', AUTH_WEBHOOK_TTL: '1s' });
  const pass = stopClocks(performance);
  webhook.users.set('Token a', 1);
  const statusOf = async (name: string) => (await read(app, token(name))).statusCode;
  expect(await statusOf('a')).toBe(200);
  expect(await used()).toEqual(['address 127.0.0.1: 1']);
  expect(await statusOf('a')).toBe(200);
  expect(await used()).toEqual(['address 127.0.0.1: 1', 'user 1: 1']);
  pass(1.1);
  expect(await statusOf('a')).toBe(200);
  expect(webhook.asked).toHaveLength(2);
  expect(await used()).toEqual(['address 127.0.0.1: 1', 'user 1: 2']);
  const guesses: number[] = [];
  for (let index = 0; index < 8; index += 1) guesses.push(await statusOf(`guess ${index}`));
  expect(guesses).toEqual([401, 401, 401, 401, 429, 429, 429, 429]);
  expect(webhook.asked).toHaveLength(6);
  expect(await statusOf('a')).toBe(200);
});

test('a flood of credentials from one address leaves places for others', async () => {
  const app = await open({ TRUST_PROXY: '127.0.0.1' });
  const held: ServerResponse[] = [];
  const refuse = (response: ServerResponse) => sendJson(response, 401, {});
  webhook.answer = (response, { headers }) => {
    if (/guess/.test(headers.authorization ?? '')) held.push(response);
    else refuse(response);
  };
  const statuses: number[] = [];
  const flood = Array.from({ length: 1_500 }, async (_, index) => {
    const headers = { ...token(`guess ${index}`), 'x-forwarded-for': '10.0.0.1' };
    statuses.push((await read(app, headers)).statusCode);
  });
  await expect.poll(() => held.length).toBe(8);
  for (let index = 0; index < 20; index += 1) {
    const headers = { ...token(`other ${index}`), 'x-forwarded-for': `10.0.1.${index}` };
    expect((await read(app, headers)).statusCode).toBe(401);
  }
  // The others do not wait behind the flood.
  expect(statuses).not.toContain(401);
  webhook.answer = refuse;
  held.forEach(refuse);
  await Promise.all(flood);
  expect(new Set(statuses)).toEqual(new Set([401, 503]));
  expect(webhook.underWay.most).toBeLessThanOrEqual(9);
});

test('a flood of refused credentials evicts no accepted one', async () => {
  // 21,000 questions would take a minute to send.
  stopClocks(performance);
  const questions = vi.spyOn(HttpClient.prototype, 'ask');
  onTestFinished(() => questions.mockRestore());
  questions.mockImplementation(async (_origin, { headers }) => ({
    status: headers['authorization'] === 'Token a' ? 200 : 401,
    headers: {},
    body: Buffer.from('{"id":1}'),
  }));
  const asking = new Webhook('http://old.test/', readConfig({}), undefined, undefined);
  const userOf = async (name: string) => {
    const credential = { ...token(name), cookie: undefined };
    return (await asking.authenticate(credential, () => 'one sender'))?.userId;
  };
  expect(await userOf('a')).toBe(1);
  for (let round = 0; round < 21; round += 1) {
    const flood = Array.from({ length: 1_000 }, (_, index) => userOf(`${round}-${index}`));
    expect(new Set(await Promise.all(flood))).toEqual(new Set([undefined]));
  }
  expect(questions).toHaveBeenCalledTimes(21_001);
  expect(await userOf('a')).toBe(1);
  expect(questions).toHaveBeenCalledTimes(21_001);
});

const other = { CORS_ORIGINS: '*,https://app.test' };
test.each<[string, Record<string, string>, string | undefined, number]>([
  ['the own origin', other, own, 200],
  ['an origin of CORS_ORIGINS', other, 'https://app.test', 200],
  ['another one', other, 'https://evil.test', 403],
  ['one that looks alike', other, 'https://shop.test.evil.test', 403],
  ['another scheme', other, 'http://shop.test', 403],
  ['another port', other, 'https://shop.test:8443', 403],
  ['null', other, 'null', 403],
  ['a star', other, '*', 403],
  ['no Origin', other, undefined, 403],
  ['two of them', other, 'https://shop.test, https://evil.test', 403],
  ['the host of the request', other, 'http://shop.example', 403],
  ['the host of the request without PUBLIC_URL', { PUBLIC_URL: '' }, 'http://shop.example', 200],
  ['its host over HTTPS', { PUBLIC_URL: '' }, 'https://shop.example', 403],
  ['another port of its host', { PUBLIC_URL: '' }, 'http://shop.example:4000', 403],
])(
  'a cookie authorises a write only from an origin that is named: %s',
  async (_name, settings, origin, status) => {
    const app = await open(settings);
    webhook.users.set('sessionid=a', 1);
    const sent = origin === undefined ? {} : { origin };
    const headers = { ...session('a'), host: 'shop.example', ...sent };
    const created = await create(app, headers);
    expect(created.statusCode).toBe(status === 200 ? 201 : 403);
    const liked = await ask(app, like, headers);
    expect(liked.statusCode).toBe(status);
    expect(liked.json()).toMatchObject(
      status === 200
        ? { data: { likeOutfit: { outfit: { viewerHasLiked: true } } } }
        : { errors: [{ extensions: { code: 'FORBIDDEN' } }] },
    );
    if (status === 403) expect(created.json().detail).toMatch(/^CSRF Failed: /);
    // It reads for its user all the same: no page of another origin can read the answer.
    expect(await viewerOf(app, headers)).toBe(1);
  },
);

test('a cookie beside an Authorization that the webhook takes is not needed, and from another page is not sent', async () => {
  const app = await open();
  webhook.users.set('Token a', 1).set('sessionid=b', 2);
  const headers = { ...token('a'), ...session('b') };
  // An app that keeps cookies, and has no origin.
  expect((await create(app, headers)).statusCode).toBe(201);
  expect(webhook.asked.at(-1)?.headers.cookie).toBeUndefined();
  // A form of another page can send both, but then the password must hold by itself.
  const basic = { authorization: 'Basic eDp5', ...session('b'), origin: 'https://evil.test' };
  expect((await create(app, basic)).statusCode).toBe(401);
  expect(webhook.asked.at(-1)?.headers.cookie).toBeUndefined();
  expect((await create(app, { ...basic, origin: own })).statusCode).toBe(201);
});

test('a cookie cannot write by GET, with whatever method a header names', async () => {
  const app = await open();
  webhook.users.set('sessionid=a', 1);
  const headers = { ...session('a'), origin: own, 'x-http-method-override': 'POST' };
  const url = `/graphql?query=${encodeURIComponent(like)}`;
  expect((await read(app, headers, { url })).statusCode).toBe(405);
  expect((await read(app, headers, { url: `/api/outfits/?_method=POST` })).statusCode).toBe(200);
});

test.each([
  '/api/outfits/',
  '/api/outfits/?page=99',
  '/api/nope',
  '/graphql?query={__typename}',
  '/graphql?query={x}',
  '/nope',
  '/',
])('a cookie makes the answer of %s private, and one that varies by Cookie', async (url) => {
  const app = await open({ CORS_ORIGINS: 'https://app.test' });
  webhook.users.set('sessionid=a', 1);
  for (const accept of ['application/json', 'text/html,*/*;q=0.8']) {
    for (const headers of [session('a'), session('refused')]) {
      const answer = await read(app, { ...headers, accept }, { url });
      expect(answer.headers['cache-control']).toMatch(/^(private, no-cache|no-store.*)$/);
      expect(answer.headers.vary).toMatch(
        /^(Accept, )?(Accept-Encoding, )?Cookie, Origin(, Accept-Encoding)?$/,
      );
      const again = { ...headers, accept, 'if-none-match': String(answer.headers.etag) };
      const unchanged = await read(app, again, { url });
      expect(unchanged.headers['cache-control']).toBe(answer.headers['cache-control']);
      expect(unchanged.headers.vary).toBe(answer.headers.vary);
    }
    const other = await read(app, { accept, cookie: 'theme=dark' }, { url });
    expect(other.headers.vary ?? '').not.toContain('Cookie');
  }
});

test('without a credential the contract is as it is', async () => {
  const { headers } = await read(await open(), { cookie: 'csrftoken=1' });
  expect(headers).toMatchObject({ vary: 'Accept', 'cache-control': 'no-cache' });
});

test('the OpenAPI document names what is accepted', async () => {
  const app = await open({ AUTH_COOKIES: 'sessionid' });
  const { paths, components } = (await read(app, {}, { url: '/api/openapi.json' })).json();
  const schemes = [{ bearer: [] }, { authorization: [] }, { cookie_sessionid: [] }];
  expect(paths['/api/outfits/'].post.security).toEqual(schemes);
  const cookie = { in: 'cookie', name: 'sessionid' };
  expect(components.securitySchemes.cookie_sessionid).toMatchObject(cookie);
});

const count = 'subscription { outfits { count } }';
/** A stream of user 1, whom a webhook of its own knows. */
const follow = async (period: string) => {
  const asking = await startWebhook();
  onTestFinished(() => asking.close());
  asking.users.set('Token a', 1);
  const app = await open({
    AUTH_WEBHOOK_URL: asking.url,
    AUTH_WEBHOOK_TTL: period,
    AUTH_WEBHOOK_STALE: '0',
  });
  const stream = await openStream(await baseOfApp(app), count, { headers: token('a') });
  const begun = performance.now();
  await stream.next();
  const isOpen = async () => (await Promise.race([stream.ended, 'open'])) === 'open';
  const seconds = () => (performance.now() - begun) / 1000;
  return { asking, stream, isOpen, seconds };
};

test('a stream is renewed as often as its answer ends, until it is refused', async () => {
  const { asking, stream, isOpen, seconds } = await follow('1s');
  await expect.poll(() => asking.asked.length).toBeGreaterThanOrEqual(3);
  expect(seconds()).toBeGreaterThan(1.5);
  expect(await isOpen()).toBe(true);
  // Anyone can see when it was refused last.
  asking.users.clear();
  const before = asking.asked.length;
  await stream.ended;
  expect(asking.asked.length - before).toBeLessThanOrEqual(2);
  expect(stream.events().slice(-2)).toMatchObject([
    { data: { errors: [{ extensions: { code: 'UNAUTHENTICATED' } }] } },
    { name: 'complete' },
  ]);
});

test('a stream ends when its credential is another user by now', async () => {
  const { asking, stream } = await follow('1s');
  asking.users.set('Token a', 2);
  await stream.ended;
  expect(asking.asked.length).toBeLessThanOrEqual(3);
});

test('a stream outlives a webhook that fails, hangs or is gone by one more period, and goes on if it answers in that', async () => {
  const faults: TestWebhook['answer'][] = [
    (response) => sendJson(response, 500, {}),
    () => {},
    (response) => response.socket?.destroy(),
  ];
  const lost = faults.map(async (answer) => {
    const { asking, stream, seconds } = await follow('2s');
    asking.answer = answer;
    await stream.ended;
    expect(seconds()).toBeGreaterThan(3);
    expect(stream.text()).not.toContain('UNAUTHENTICATED');
  });
  const { asking, isOpen } = await follow('2s');
  asking.answer = (response) => sendJson(response, 503, {});
  await expect.poll(() => asking.asked.length).toBeGreaterThanOrEqual(2);
  asking.answer = undefined;
  await Promise.all(lost);
  await sleep(500);
  expect(await isOpen()).toBe(true);
});

test('streams are renewed as one sender, once for a credential, and hold up no request', async () => {
  for (let index = 0; index < 20; index += 1) webhook.users.set(`Token ${index}`, 2);
  const app = await open({ AUTH_WEBHOOK_TTL: '1s' });
  const base = await baseOfApp(app);
  const opening = Array.from({ length: 40 }, (_, index) =>
    openStream(base, count, { headers: token(String(index % 20)) }),
  );
  await Promise.all(opening);
  const held: ServerResponse[] = [];
  const accept = (response: ServerResponse) => sendJson(response, 200, { id: 2 });
  webhook.answer = (response) => void held.push(response);
  await expect.poll(() => held.length).toBe(8);
  webhook.answer = (response, { headers }) =>
    headers.authorization === 'Token a' ? accept(response) : void held.push(response);
  expect((await read(app, token('a'))).statusCode).toBe(200);
  expect(held).toHaveLength(8);
  const asked = held.map(({ req: { headers } }) => headers.authorization);
  expect(new Set(asked).size).toBe(8);
  webhook.answer = accept;
  held.forEach(accept);
});

test.each([
  [{ AUTH_WEBHOOK_URL: 'https://user:secret@old.test/' }, /^AUTH_WEBHOOK_URL is not valid, but/],
  [{ AUTH_WEBHOOK_URL: 'https://old.test/', AUTH_COOKIES: 'a b' }, /^AUTH_COOKIES is "a b"/],
  [{ AUTH_WEBHOOK_TTL: '0' }, /^AUTH_WEBHOOK_TTL is "0"/],
])('settings that cannot be meant are refused: %j', (environment, sentence) => {
  expect(() => readConfig(environment)).toThrow(sentence);
});

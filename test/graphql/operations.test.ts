// What an operator sees: request ids, the log, and metrics.
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import { describe, expect, test, vi } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { version } from '../../src/config/package.ts';
import { baseOf, environmentOf, runServer, stop } from '../support/cli/process.ts';
import { buildObserved, openForTest, useGateway } from '../support/gateway.ts';
import { baseOfApp } from '../support/http/event-stream.ts';
import { postGraphql } from '../support/http/graphql.ts';
import { openAcknowledged } from '../support/http/socket.ts';
import { secret, signIn } from '../support/http/tokens.ts';
import { stopClocks } from '../support/this-process.ts';

const rows = [...generateOutfits({ outfits: 45, users: 9 })];

describe('x-request-id', () => {
  const gateway = useGateway('PostgreSQL', rows);

  const idOf = async (method: 'GET' | 'POST', url: string, headers: Record<string, string> = {}) =>
    (await gateway.app.inject({ method, url, headers })).headers['x-request-id'];

  test.each([
    ['GET', '/api/outfits/'],
    ['GET', '/api/outfits'],
    ['GET', '/api/outfits/?page=0'],
    ['POST', '/api/outfits/'],
    ['GET', '/api/nothing/'],
    ['GET', '/nothing'],
    ['GET', '/%E0%A4%A'],
    ['GET', '/graphql'],
    ['GET', '/graphql?query={__typename}'],
    ['POST', '/graphql'],
  ] as const)(
    'x-request-id is in the answer of %s %s, and another in the next one',
    async (method, url) => {
      const id = await idOf(method, url);
      expect(id).toMatch(/^[\w-]{8,64}$/);
      expect(await idOf(method, url)).not.toBe(id);
      expect(await idOf(method, url, { 'x-request-id': 'from.the-client:1' })).toBe(
        'from.the-client:1',
      );
    },
  );

  test.each(['', 'a b', 'a\tb', '"a"', '<a>', 'é', 'a'.repeat(65)])(
    'x-request-id is made anew when the client sends %j',
    async (given) => {
      expect(await idOf('GET', '/api/outfits/', { 'x-request-id': given })).toMatch(
        /^[\w-]{8,64}$/,
      );
    },
  );
});

/** A gateway on real PostgreSQL whose log is kept, line by line. */
async function openLoggedGateway(level: 'debug' | 'info', identity = { AUTH_JWT_SECRET: secret }) {
  const gateway = await openForTest('PostgreSQL', rows, identity);
  const { app, log, metrics } = await buildObserved(gateway, level);
  return { app, metrics, pool: gateway.database.pool, ...log };
}

test('errors are counted by code and type, over HTTP and a WebSocket, and those of REST are not', async () => {
  const { app, metrics } = await openLoggedGateway('info');
  const headers = await signIn(7);
  const post = (query: string) =>
    app.inject({ method: 'POST', url: '/graphql', headers, payload: { query } });
  for (let time = 0; time < 2; time += 1) await post('{ outfits(page: 999) { count } }');
  await post('{ a: outfits(page: 999) { count } b: outfits(page: 999) { count } user { id } }');
  await post('{ nope }');
  await post('mutation { likeOutfit(databaseId: 999999) { outfit { id } } }');
  await post('{ outfits { count } }');
  await app.inject('/api/outfits/?page=999');
  const socket = await openAcknowledged(await baseOfApp(app));
  socket.subscribe('1', 'subscription { outfits(page: 999) { count } }');
  await socket.next();
  const text = await metrics();
  const found = [
    ...text.matchAll(/^gateway_graphql_errors_total\{code="(.*)",type="(.*)"\} (\d+)$/gm),
  ];
  expect(found.map(([, ...series]) => series.join(' ')).toSorted()).toEqual([
    'BAD_USER_INPUT query 1',
    'GRAPHQL_VALIDATION_FAILED none 1',
    'NOT_FOUND mutation 1',
    'PAGE_NOT_FOUND query 3',
    // It is read again when the database has changed, say by the likes that are counted.
    expect.stringMatching(/^PAGE_NOT_FOUND subscription \d+$/),
  ]);
});

describe('the log', () => {
  const byUsername = 'query Find($name: String) { user(username: $name) { id: databaseId } }';

  test('the log has a line for each answer at debug, with the id, the operation and no query string', async () => {
    const { app, lines, text } = await openLoggedGateway('debug');
    const ask = (url: string, id: string) => app.inject({ url, headers: { 'x-request-id': id } });
    await ask('/api/outfits/?page=2&token=hidden-1', 'one');
    const variables = '{"name":"hidden-2"}';
    await ask(`/graphql?${new URLSearchParams({ query: byUsername, variables })}`, 'two');
    expect(lines()).toMatchObject([
      { requestId: 'one', method: 'GET', path: '/api/outfits/', status: 200 },
      { requestId: 'two', method: 'GET', path: '/graphql', operation: 'Find', status: 200 },
    ]);
    expect(lines()[0]?.['milliseconds']).toBeGreaterThan(0);
    expect(text()).not.toContain('hidden');
  });

  test('logs at debug the client, and the bytes of the answer', async () => {
    const { app, lines } = await openLoggedGateway('debug');
    const headers = { ...(await signIn(7)), 'x-client-name': 'Shoes' };
    const page = await app.inject({ url: '/api/outfits/', headers });
    await app.inject({ url: '/api/outfits/' });
    await app.inject({ url: '/nothing', headers });
    await app.inject({ method: 'HEAD', url: '/health/live' });
    expect(lines()).toMatchObject([
      { client: { name: 'Shoes' }, viewer: 7, bytes: page.rawPayload.length },
      { client: { name: 'lightMyRequest' }, bytes: page.rawPayload.length },
      { client: { name: 'Shoes' }, status: 404, bytes: '{"detail":"Not found."}'.length },
      { status: 200, bytes: 0 },
    ]);
    for (const line of lines().slice(1)) expect(line).not.toHaveProperty('viewer');
  });

  test('the log has nothing about answers that are as they should be at info', async () => {
    const { app, text } = await openLoggedGateway('info');
    for (const url of ['/api/outfits/', '/api/outfits/?page=0', '/nothing', '/graphql']) {
      await app.inject(url);
    }
    expect(text()).toBe('');
  });

  test('logs an unexpected error with the id of its request, and no token or variable', async () => {
    const { app, pool, lines, text } = await openLoggedGateway('debug');
    const { authorization = '' } = await signIn(1);
    const ask = (query: string, variables: object, id: string) =>
      postGraphql(app, { query, variables }, { authorization, 'x-request-id': id });
    const list = (id: string) =>
      app.inject({
        url: `/api/outfits/?page=2&secret=hidden-${id}`,
        headers: { authorization, 'x-request-id': id },
      });
    // PostgreSQL quotes the value in its message: invalid input syntax for type integer.
    await pool.query('ALTER TABLE users ALTER username TYPE integer USING id');
    const failed = await ask(byUsername, { name: 'hidden-3' }, 'three');
    expect(failed.body).not.toMatch(/hidden|syntax|22P02/);
    expect(failed.json().errors[0].message).toBe('Internal server error.');
    expect(lines()[0]).toMatchObject({
      ...{ level: 'error', requestId: 'three', msg: 'unexpected error' },
      err: { type: 'GraphQLError', stack: expect.stringContaining('at ') },
    });
    expect(text()).toContain('22P02');

    await pool.query('ALTER TABLE outfits RENAME TO gone');
    expect((await list('four')).statusCode).toBe(503);
    expect(lines()).toContainEqual(
      expect.objectContaining({ level: 'error', requestId: 'four', suppressed: 0 }),
    );
    // What says which relation is missing is no secret, and what an operator needs.
    expect(text()).toContain('does not exist');

    const query = vi.spyOn(pool, 'query');
    query.mockImplementation((() => Promise.reject(new Error('On fire.'))) as () => never);
    const broken = await list('nine');
    query.mockRestore();
    expect(broken.statusCode).toBe(500);
    expect(broken.body).not.toContain('fire');
    for (const line of [{ msg: 'unexpected error' }, { msg: 'failed', status: 500 }]) {
      expect(lines()).toContainEqual(
        expect.objectContaining({ level: 'error', requestId: 'nine', ...line }),
      );
    }

    await ask('query Hidden { nothing }', { name: 'hidden-5' }, 'five');
    await ask(byUsername, { name: ['hidden-6'] }, 'six');
    await postGraphql(app, '{"query": "hidden-8', { authorization: 'Bearer hidden-7' });
    expect(text()).not.toContain('hidden');
    const [, payload = ''] = authorization.split('.');
    expect(text()).not.toContain(payload);
  });
});

describe('the log, when the keys of tokens cannot be fetched', () => {
  const withoutKeys = { AUTH_JWT_SECRET: '', AUTH_JWKS_URL: 'http://127.0.0.1:9/' };
  const header = Buffer.from('{"alg":"RS256","kid":"any"}').toString('base64url');
  const headers = { authorization: `Bearer ${header}.e30.AAAA` };
  const doors = [
    { url: '/api/outfits/', headers },
    { url: '/graphql?query={__typename}', headers },
  ];
  const askOften = async (app: FastifyInstance, times: number) => {
    for (let time = 0; time < times; time += 1) {
      for (const door of doors) expect((await app.inject(door)).statusCode).toBe(503);
    }
  };

  test('has a line a second for causes and one for answers, with the number left out', async () => {
    const { app, lines } = await openLoggedGateway('info', withoutKeys);
    const pass = stopClocks(performance);
    await askOften(app, 5);
    const isCause = expect.objectContaining({ type: 'Error', stack: expect.any(String) });
    const msg = 'Service temporarily unavailable, try again later.';
    const firstOnes = [
      { level: 'error', msg, err: isCause, suppressed: 0 },
      { level: 'warn', msg: 'refused', status: 503, suppressed: 0 },
    ];
    expect(lines()).toMatchObject(firstOnes);
    pass(1);
    await askOften(app, 1);
    expect(lines()).toMatchObject([
      ...firstOnes,
      { level: 'error', msg, err: isCause, suppressed: 9 },
      { level: 'warn', msg: 'refused', status: 503, suppressed: 9 },
    ]);
  });

  test('the log, when the keys of tokens cannot be fetched has all of them at debug', async () => {
    const { app, lines } = await openLoggedGateway('debug', withoutKeys);
    await askOften(app, 5);
    expect(lines().filter(({ level }) => level === 'error')).toHaveLength(10);
    expect(lines().filter(({ msg }) => msg === 'refused')).toHaveLength(10);
  });

  test('the log, when the keys of tokens cannot be fetched has slow answers beside refused ones', async () => {
    const { app, lines, pool } = await openLoggedGateway('info', withoutKeys);
    const client = await pool.connect();
    await client.query('BEGIN; LOCK TABLE outfits IN ACCESS EXCLUSIVE MODE');
    const slow = app.inject('/api/outfits/');
    // An answer is slow after a second.
    await sleep(1_100);
    await askOften(app, 1);
    await client.query('ROLLBACK');
    client.release();
    expect((await slow).statusCode).toBe(200);
    expect(lines()).toContainEqual(
      expect.objectContaining({ level: 'warn', msg: 'slow', status: 200, suppressed: 0 }),
    );
  });
});

describe('metrics', () => {
  test('metrics count and time answers by route and operation, and follow cache, pool and probes', async () => {
    const { app, metrics } = await openLoggedGateway('info');
    for (let time = 0; time < 3; time += 1) await app.inject('/api/outfits/?page=2');
    await app.inject('/api/outfits/?page=0');
    await app.inject('/nothing/at/all');
    const query = 'query Newest { outfits { results { id: databaseId } } }';
    await postGraphql(app, { query });
    const text = await metrics();
    const page = 'method="GET",route="/api/outfits/",operation=""';
    for (const line of [
      `gateway_build_info{version="${version}"} 1`,
      `gateway_http_request_duration_seconds_count{${page},status="200"} 3`,
      `gateway_http_request_duration_seconds_count{${page},status="404"} 1`,
      'gateway_http_request_duration_seconds_count{method="GET",route="none",operation="",status="404"} 1',
      'gateway_http_request_duration_seconds_count{method="POST",route="/graphql",operation="Newest",status="200"} 1',
      'gateway_requests_running 0',
      'gateway_requests_waiting 0',
      'gateway_database_connections_in_use 0',
      'gateway_database_statements_waiting{lane="all"} 0',
    ]) {
      expect(text).toContain(`\n${line}\n`);
    }
    const value = (name: string, printed = text) =>
      Number(new RegExp(`^${name} (.*)$`, 'm').exec(printed)?.[1]);
    // Other tests commit on the same server meanwhile, which makes a hit a miss.
    const misses = value('gateway_cache_misses_total');
    expect(misses).toBeGreaterThan(0);
    expect(value('gateway_cache_hits_total') + misses).toBe(4);
    expect(value('gateway_snapshot_probe_duration_seconds_count')).toBeGreaterThanOrEqual(3);
    expect(value('gateway_database_connections_idle')).toBeGreaterThan(0);
    expect(value('nodejs_eventloop_lag_p99_seconds')).toBeGreaterThan(0);
    const cached = async () => {
      await app.inject('/api/outfits/?page=2');
      return value('gateway_cache_bytes', await metrics());
    };
    await expect.poll(cached).toBeGreaterThan(1000);
  });

  test('metrics count answers that a commit has invalidated apart from those whose dependencies are unknown', async () => {
    const { app, metrics, pool } = await openLoggedGateway('info');
    const pages = ['/api/outfits/', '/api/outfits/?page=2'];
    const ended = async () => {
      const text = await metrics();
      const [invalidations, clears] = ['invalidations', 'clears'].map((how) =>
        Number(new RegExp(`^gateway_cache_${how}_total (\\d+)$`, 'm').exec(text)?.[1]),
      );
      return { invalidations, clears };
    };
    for (const page of pages) await app.inject(page);
    expect(await ended()).toEqual({ invalidations: 0, clears: 0 });
    // Of the first page alone.
    await pool.query(
      `UPDATE outfits SET title = 'Another' WHERE id = (SELECT id FROM outfits ORDER BY created DESC, id DESC LIMIT 1)`,
    );
    for (const page of pages) await app.inject(page);
    expect(await ended()).toEqual({ invalidations: 1, clears: 0 });
    await pool.query('TRUNCATE idempotency_keys, outfits CASCADE');
    await app.inject('/api/outfits/');
    expect(await ended()).toEqual({ invalidations: 1, clears: 1 });
  });

  test('metrics tell only so many operation names apart, since clients choose them', async () => {
    const { app, metrics } = await openLoggedGateway('info');
    for (let number = 0; number < 150; number += 1) {
      await postGraphql(app, { query: `query Name${number} { __typename }` });
    }
    const text = await metrics();
    const names = new Set([...text.matchAll(/operation="(\w+)"/g)].map(([, name]) => name));
    expect(names.size).toBe(101);
    expect(text).toContain('operation="other",status="200"} 50\n');
  });

  test('metrics have no name that is longer than 64 characters, and the log cuts it', async () => {
    const { app, lines, metrics } = await openLoggedGateway('debug');
    for (const length of [64, 65, 1_000_000]) {
      const response = await postGraphql(app, {
        query: `query ${'x'.repeat(length)} { __typename }`,
      });
      expect(response.statusCode).toBe(200);
    }
    const text = await metrics();
    const counts = [
      ...text.matchAll(
        /^gateway_http_request_duration_seconds_count.*operation="(\w*)".* (\d+)$/gm,
      ),
    ];
    expect(counts.map(([, name, count]) => [name, count])).toEqual([
      ['x'.repeat(64), '1'],
      ['other', '2'],
    ]);
    expect(lines().map((line) => line['operation'])).toEqual(Array(3).fill('x'.repeat(64)));
  });

  test('metrics are served on METRICS_PORT and not on the port of the service', async () => {
    const server = runServer({
      ...(await environmentOf('PostgreSQL')),
      ...{ HOST: '127.0.0.1', METRICS_PORT: '0', SEED: 'none' },
    });
    const [, address = ''] = await server.until(/Metrics: +(http:[^\s"]+)/);
    const base = await baseOf(server);
    await fetch(`${base}/api/outfits/`).then((response) => response.text());
    const metrics = await fetch(address);
    expect(metrics.status).toBe(200);
    expect(metrics.headers.get('content-type')).toContain('text/plain');
    // An answer is counted when it has been sent, which its client may know before.
    const text = async () => (await fetch(address)).text();
    await expect.poll(text).toContain('route="/api/outfits/"');
    expect((await fetch(new URL('/api/outfits/', address))).status).toBe(404);
    expect((await fetch(`${base}/metrics`)).status).toBe(404);
    expect(await stop(server)).toBe(0);
  });
});

// How many requests a viewer or address may send, over several gateways too. What is one address: forwarded.test.ts.
import fc from 'fast-check';
import type { InjectOptions } from 'fastify';
import { expect, onTestFinished, test, vi } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { readConfig } from '../../src/config/config.ts';
import { type Database, openDatabase } from '../../src/database/database.ts';
import { databaseUrlOf } from '../support/databases/connections.ts';
import { buildForTest, openForTest, type TestGateway, useGateway } from '../support/gateway.ts';
import { secret, signIn } from '../support/http/tokens.ts';
import { stopClocks } from '../support/this-process.ts';

const rows = [...generateOutfits({ outfits: 45, users: 9 })];

type Gateway = Pick<TestGateway, 'app' | 'database'>;

const forget = (database: Database) => database.pool.query('TRUNCATE rate_limits');

/** A gateway with a limit, that goes on with what has been counted. */
async function openReplica(database: Database, limit: string, environment = {}): Promise<Gateway> {
  const config = readConfig({
    AUTH_JWT_SECRET: secret,
    RATE_LIMIT: limit,
    MAX_CONCURRENT_REQUESTS: '1000',
    ...environment,
  });
  return { app: await buildForTest(config, database), database };
}

const ask = ({ app }: Pick<Gateway, 'app'>, request: InjectOptions = {}) =>
  app.inject({ url: '/api/outfits/', ...request });

const graphql = (query = '{ __typename }'): InjectOptions => ({
  method: 'POST',
  url: '/graphql',
  payload: { query },
});

const times = <Item>(count: number, item: Item) => Array<Item>(count).fill(item);

/** The status of each of these requests, sent one after the other. */
async function statusesOf(gateway: Gateway, requests: readonly InjectOptions[]) {
  const statuses: number[] = [];
  for (const request of requests) statuses.push((await ask(gateway, request)).statusCode);
  return statuses;
}

async function admittedAtOnce(count: number, send: (index: number) => ReturnType<typeof ask>) {
  const answers = await Promise.all(Array.from({ length: count }, (_, index) => send(index)));
  const admitted = answers.filter(({ statusCode }) => statusCode === 200);
  const refused = answers.filter(({ statusCode }) => statusCode === 429);
  expect(admitted.length + refused.length).toBe(count);
  return admitted.length;
}

/** Stops the clock of gateways, and lets time pass for them and their database without waiting. */
function holdClock({ database }: Gateway): (seconds: number) => Promise<void> {
  const pass = stopClocks(performance);
  return async (seconds) => {
    pass(seconds);
    await database.pool.query('UPDATE rate_limits SET ends = ends - $1', [seconds * 1_000_000]);
  };
}

const owner = useGateway('PostgreSQL', rows);
/** With a limit of which nothing has been used. */
const open = async (limit: string, environment = {}) => {
  await forget(owner.database);
  return openReplica(owner.database, limit, environment);
};

test('a rate limit takes exactly its number of requests, and says when the next one is taken', async () => {
  const gateway = await open('25/minute');
  const pass = holdClock(gateway);
  expect(await admittedAtOnce(25, () => ask(gateway))).toBe(25);

  const refused = await ask(gateway);
  expect(refused.statusCode).toBe(429);
  const expected = { 'retry-after': '60', 'content-type': 'application/json' };
  expect(refused.headers).toMatchObject(expected);
  const message = 'Request was throttled. Expected available in 60 seconds.';
  expect(refused.body).toBe(`{"detail":"${message}"}`);
  for (const query of ['{ __typename }', 'mutation { nothing }', '{']) {
    const { statusCode, headers, json } = await ask(gateway, graphql(query));
    expect([statusCode, headers['retry-after']]).toEqual([429, '60']);
    const extensions = { code: 'TOO_MANY_REQUESTS' };
    expect(json()).toEqual({ errors: [{ message, extensions }] });
  }

  await pass(40);
  expect((await ask(gateway)).headers['retry-after']).toBe('20');
  // Not a moment longer than it takes, and not a moment less.
  await pass(19);
  const last = await ask(gateway);
  expect(last.headers['retry-after']).toBe('1');
  expect(last.json().detail).toBe('Request was throttled. Expected available in 1 second.');
  await pass(1);
  expect(await statusesOf(gateway, times(26, {}))).toEqual([...times(25, 200), 429]);
});

test('a rate limit takes exactly its number of requests on the embedded database', async () => {
  const { database } = await openForTest('embedded', rows);
  const gateway = await openReplica(database, '25/minute');
  expect(await admittedAtOnce(26, () => ask(gateway))).toBe(25);
  await holdClock(gateway)(60);
  expect(await statusesOf(gateway, times(26, {}))).toEqual([...times(25, 200), 429]);
});

test('a rate limit is told by RateLimit and RateLimit-Policy on each answer that it counts', async () => {
  const gateway = await open('9/minute');
  const pass = holdClock(gateway);
  const unchanged = { headers: { 'if-none-match': '*' } };
  const wrong = { headers: { authorization: 'Bearer nonsense' } };
  /** @param left requests, with about so many seconds: the clock of the database goes on */
  const expectQuota = async (status: number, left: number, request: InjectOptions = {}) => {
    const { statusCode, headers } = await ask(gateway, request);
    const [, r, seconds] = /^"default";r=(\d+);t=(\d+)$/.exec(String(headers['ratelimit'])) ?? [];
    expect([statusCode, Number(r)]).toEqual([status, left]);
    expect(Math.abs(Number(seconds) - (left > 7 ? 60 : 40))).toBeLessThan(10);
    expect(headers['ratelimit-policy']).toBe('"default";q=9;w=60');
    expect(headers['retry-after']).toBe(status === 429 ? seconds : undefined);
  };
  await expectQuota(200, 8, graphql());
  await pass(20);
  await expectQuota(304, 7, unchanged);
  await expectQuota(401, 6, wrong);
  await expectQuota(200, 5, { method: 'HEAD' });
  await expectQuota(200, 4, { method: 'OPTIONS' });
  await expectQuota(204, 3, { method: 'OPTIONS', url: '/graphql' });
  await expectQuota(405, 2, { method: 'PUT' });
  await expectQuota(404, 1, { url: '/api/outfits/?page=0' });
  await expectQuota(200, 0, graphql('{'));
  await expectQuota(429, 0, unchanged);
  await expectQuota(429, 0, graphql());
  expect((await ask(gateway, { url: '/health/live' })).headers).not.toHaveProperty('ratelimit');
});

test('a rate limit comes after host, path and Accept, which it does not count', async () => {
  const gateway = await open('2/hour');
  const earlier = [
    { headers: { host: 'b@d' } },
    { url: '/api/nothing/' },
    { url: '/nothing' },
    { headers: { accept: 'image/png' } },
  ];
  expect(await statusesOf(gateway, earlier)).toEqual([400, 404, 404, 406]);
  expect(await statusesOf(gateway, times(3, {}))).toEqual([200, 200, 429]);
  expect(await statusesOf(gateway, earlier)).toEqual([400, 404, 404, 406]);
});

test('a rate limit counts a token that does not hold for its address: 401, then 429', async () => {
  const gateway = await open('6/hour');
  const remoteAddress = '192.0.2.1';
  const guess = { headers: { authorization: 'Bearer nonsense' }, remoteAddress };
  const expired = { ...graphql(), headers: await signIn(1, -60), remoteAddress };
  // Together with what the address asks without a token.
  const requests = [guess, guess, expired, expired, { remoteAddress }, guess, guess, expired];
  expect(await statusesOf(gateway, requests)).toEqual([401, 401, 401, 401, 200, 401, 429, 429]);
  expect((await ask(gateway, guess)).headers).not.toHaveProperty('www-authenticate');
  // It uses up nothing of a viewer at the same address, nor of other addresses.
  const viewer = { headers: await signIn(1), remoteAddress };
  expect(await statusesOf(gateway, times(7, viewer))).toEqual([...times(6, 200), 429]);
  expect(await statusesOf(gateway, [{ remoteAddress: '192.0.2.2' }])).toEqual([200]);
});

test('a rate limit comes before the method, the body and the page', async () => {
  const gateway = await open('1/hour');
  const json = { 'content-type': 'application/json' };
  const headers = { ...(await signIn(1)), ...json };
  const wrong: InjectOptions[] = [
    { headers },
    { method: 'PUT', headers },
    { url: '/api/outfits/?page=0', headers },
    { method: 'OPTIONS', headers },
    { method: 'POST', payload: '{', headers },
  ];
  expect(await statusesOf(gateway, wrong)).toEqual([200, 429, 429, 429, 429]);
  // Without a token, which is needed, it is that which is missing first.
  const posted: InjectOptions = { method: 'POST', payload: '{', headers: json };
  expect(await statusesOf(gateway, [{}, posted])).toEqual([200, 401]);
});

test('a rate limit counts every viewer and every address by itself', async () => {
  const gateway = await open('2/hour');
  for (const sender of [
    { remoteAddress: '192.0.2.1' },
    { remoteAddress: '192.0.2.2' },
    { headers: await signIn(1) },
    { headers: await signIn(2) },
  ]) {
    expect(await statusesOf(gateway, times(3, sender))).toEqual([200, 200, 429]);
  }
  // A viewer is the same from everywhere, with any token, over REST and GraphQL.
  const headers = await signIn(1);
  const elsewhere = [
    { headers, remoteAddress: '192.0.2.3' },
    { ...graphql(), headers },
  ];
  expect(await statusesOf(gateway, elsewhere)).toEqual([429, 429]);
});

test('a rate limit leaves the cached answers their use', async () => {
  const gateway = await open('1000/hour');
  const query = vi.spyOn(gateway.database.pool, 'query');
  onTestFinished(() => query.mockRestore());
  expect(await statusesOf(gateway, times(100, {}))).toEqual(times(100, 200));
  const sent = query.mock.calls
    .map(([statement]) => JSON.stringify(statement))
    .filter((statement) => !statement.includes('pg_current_snapshot'));
  expect(sent.filter((statement) => statement.includes('rate_limits'))).toHaveLength(1);
});

test('a rate limit asks the database for nothing more once it is used up', async () => {
  const gateway = await open('5/hour');
  await statusesOf(gateway, times(5, {}));
  const query = vi.spyOn(gateway.database.pool, 'query');
  onTestFinished(() => query.mockRestore());
  expect(await statusesOf(gateway, times(50, {}))).toEqual(times(50, 429));
  expect(query).not.toHaveBeenCalled();
});

test('clears away windows that have ended', async () => {
  const gateway = await open('5/minute');
  const pass = holdClock(gateway);
  const senders = async () => {
    const { rows } = await gateway.database.pool.query('SELECT sender FROM rate_limits');
    return rows.length;
  };
  for (let host = 1; host <= 20; host++) await ask(gateway, { remoteAddress: `192.0.2.${host}` });
  expect(await senders()).toBe(20);
  await pass(61);
  await ask(gateway, { remoteAddress: '192.0.2.100' });
  await expect.poll(senders).toBe(1);
});

test('a rate limit that cannot be counted, or not in time, lets nothing in, and goes on as soon as it can', async () => {
  const gateway = await open('3/hour', { REQUEST_TIMEOUT: '1s' });
  const { pool } = gateway.database;
  const expectAway = async () => {
    const answers = await Promise.all([ask(gateway), ask(gateway), ask(gateway, graphql())]);
    for (const { statusCode, headers } of answers) {
      expect([statusCode, headers['retry-after']]).toEqual([503, '1']);
    }
  };
  await pool.query('ALTER TABLE rate_limits RENAME TO away');
  await expectAway();
  await pool.query('ALTER TABLE away RENAME TO rate_limits');
  const hang = (() => new Promise(() => {})) as () => never;
  const query = vi.spyOn(pool, 'query').mockImplementation(hang);
  await expectAway();
  query.mockRestore();
  expect(await statusesOf(gateway, times(4, {}))).toEqual([200, 200, 200, 429]);
});

test('a rate limit is a fixed window for each sender, whatever comes when', async () => {
  const limit = 40;
  const gateway = await open(`${limit}/hour`);
  const pass = holdClock(gateway);
  // A burst of requests of one sender, or some minutes that pass.
  const step = fc.oneof(
    fc.record({ host: fc.integer({ min: 1, max: 3 }), burst: fc.integer({ min: 1, max: 25 }) }),
    fc.record({ minutes: fc.integer({ min: 1, max: 40 }) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 25 }), async (steps) => {
      await pass(3600);
      let minute = 0;
      const windows = new Map<number, { ends: number; used: number }>();
      for (const next of steps) {
        if ('minutes' in next) {
          minute += next.minutes;
          await pass(next.minutes * 60);
          continue;
        }
        const known = windows.get(next.host);
        const window = known && known.ends > minute ? known : { ends: minute + 60, used: 0 };
        windows.set(next.host, window);
        const expected = Math.min(next.burst, limit - window.used);
        window.used += expected;
        const remoteAddress = `192.0.2.${next.host}`;
        const admitted = await admittedAtOnce(next.burst, () => ask(gateway, { remoteAddress }));
        expect(admitted).toBe(expected);
      }
    }),
    { numRuns: 40 },
  );
});

test('a rate limit is one limit for many requests at once, and starts again for all of them together', async () => {
  await forget(owner.database);
  const config = readConfig({ DATABASE_URL: databaseUrlOf(owner.database.pool) });
  const gateways: Gateway[] = [];
  for (let count = 0; count < 3; count++) {
    const database = await openDatabase(config);
    onTestFinished(() => database.close());
    gateways.push(await openReplica(database, '100/minute'));
  }
  const pass = holdClock(owner);
  for (let window = 0; window < 3; window++) {
    const admitted = await admittedAtOnce(400, (index) => ask(gateways[index % 3] as Gateway));
    const later = await Promise.all(gateways.map((one) => statusesOf(one, times(40, {}))));
    expect(admitted + later.flat().filter((status) => status === 200).length).toBe(100);
    const refused = await Promise.all(gateways.map((one) => ask(one)));
    for (const { headers } of refused) expect(Number(headers['retry-after'])).toBeGreaterThan(50);
    await pass(60);
  }
});

test('without a rate limit nothing is counted', async () => {
  const gateway = await openForTest('PostgreSQL', rows, { MAX_CONCURRENT_REQUESTS: '1000' });
  expect(await admittedAtOnce(300, () => ask(gateway))).toBe(300);
  const { rows: counted } = await gateway.database.pool.query('SELECT * FROM rate_limits');
  expect(counted).toEqual([]);
});

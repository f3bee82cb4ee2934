// How many requests a viewer or address may send, on both databases and over several gateways.
import fc from 'fast-check';
import type { InjectOptions, LightMyRequestResponse } from 'fastify';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { buildApp } from '../../src/app.ts';
import { readConfig } from '../../src/config.ts';
import { type Database, openDatabase } from '../../src/database/database.ts';
import { openGateway, type TestGateway } from '../support/gateway.ts';
import { secret, signIn } from '../support/http/tokens.ts';
import { describeOnce, laneKinds } from '../support/lane.ts';

const rows = [...generateOutfits({ outfits: 45, users: 9 })];

type Requester = Pick<TestGateway, 'app'>;

interface Gateway extends Requester {
  readonly database: Database;
}

/** A gateway with a limit, on a database that others may use too. Nothing has been counted yet. */
async function open(
  database: Database,
  limit: string,
  environment: Record<string, string> = {},
): Promise<Gateway> {
  await database.pool.query('TRUNCATE rate_limits');
  return openReplica(database, limit, environment);
}

/** A gateway that goes on with what has been counted. */
async function openReplica(
  database: Database,
  limit: string,
  environment: Record<string, string> = {},
): Promise<Gateway> {
  const config = readConfig({
    AUTH_JWT_SECRET: secret,
    RATE_LIMIT: limit,
    MAX_CONCURRENT_REQUESTS: '1000',
    ...environment,
  });
  const app = await buildApp(config, database);
  onTestFinished(() => app.close());
  return { app, database };
}

const ask = ({ app }: Requester, more: InjectOptions = {}): Promise<LightMyRequestResponse> =>
  app.inject({ method: 'GET', url: '/api/outfits/', ...more });

const askGraphQL = (gateway: Requester, query = '{ __typename }') =>
  ask(gateway, { method: 'POST', url: '/graphql', payload: { query } });

/** The status of each of so many requests, sent one after the other. */
async function statusesOf(count: number, send: () => Promise<LightMyRequestResponse>) {
  const statuses: number[] = [];
  while (statuses.length < count) statuses.push((await send()).statusCode);
  return statuses;
}

async function admittedAtOnce(count: number, send: (index: number) => ReturnType<typeof ask>) {
  const answers = await Promise.all(Array.from({ length: count }, (_, index) => send(index)));
  for (const { statusCode } of answers) expect([200, 429]).toContain(statusCode);
  return answers.filter(({ statusCode }) => statusCode === 200).length;
}

const times = (count: number, status: number) => Array<number>(count).fill(status);

/** Stops the clock of gateways, and lets time pass for them and their database without waiting. */
function holdClock({ database }: Gateway): (seconds: number) => Promise<void> {
  let moment = performance.now();
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => moment);
  onTestFinished(() => clock.mockRestore());
  return async (seconds) => {
    moment += seconds * 1000;
    await database.pool.query('UPDATE rate_limits SET ends = ends - $1', [seconds * 1_000_000]);
  };
}

describe.each(laneKinds)('on %s, a rate limit', (kind) => {
  let owner: TestGateway;
  let database: Database;
  beforeAll(async () => {
    owner = await openGateway(kind, rows);
    database = owner.database;
  });
  afterAll(() => owner.close());

  test('takes exactly its number of requests, and says when the next one is taken', async () => {
    const gateway = await open(database, '25/minute');
    const pass = holdClock(gateway);
    expect(await admittedAtOnce(25, () => ask(gateway))).toBe(25);

    const refused = await ask(gateway);
    expect(refused.statusCode).toBe(429);
    expect(refused.headers).toMatchObject({
      'retry-after': '60',
      'content-type': 'application/json',
    });
    expect(refused.body).toBe(
      '{"detail":"Request was throttled. Expected available in 60 seconds."}',
    );

    await pass(40);
    expect((await ask(gateway)).headers['retry-after']).toBe('20');
    // Not a moment longer than it takes, and not a moment less.
    await pass(19);
    const last = await ask(gateway);
    expect(last.headers['retry-after']).toBe('1');
    expect(last.json().detail).toBe('Request was throttled. Expected available in 1 second.');
    await pass(1);
    expect(await statusesOf(26, () => ask(gateway))).toEqual([...times(25, 200), 429]);
  });

  test('takes the next request after the time it gave has really passed', async () => {
    const gateway = await open(database, '3/second');
    for (let round = 0; round < 3; round++) {
      let refused = await ask(gateway);
      while (refused.statusCode === 200) refused = await ask(gateway);
      expect(refused.headers['retry-after']).toBe('1');
      await new Promise((resolve) => setTimeout(resolve, 1000));
      expect((await ask(gateway)).statusCode).toBe(200);
    }
  });

  test('is said in the form of GraphQL too, and counted together with REST', async () => {
    const gateway = await open(database, '4/hour');
    expect(await statusesOf(2, () => askGraphQL(gateway))).toEqual(times(2, 200));
    expect(await statusesOf(2, () => ask(gateway))).toEqual(times(2, 200));
    expect((await ask(gateway)).statusCode).toBe(429);
    for (const query of ['{ __typename }', 'mutation { nothing }', '{']) {
      const refused = await askGraphQL(gateway, query);
      expect(refused.statusCode).toBe(429);
      const seconds = Number(refused.headers['retry-after']);
      expect(seconds).toBeGreaterThan(3500);
      expect(seconds).toBeLessThanOrEqual(3600);
      expect(refused.json()).toEqual({
        errors: [
          {
            message: `Request was throttled. Expected available in ${seconds} seconds.`,
            extensions: { code: 'TOO_MANY_REQUESTS' },
          },
        ],
      });
    }
  });

  test('is told by RateLimit and RateLimit-Policy on each answer that it counts', async () => {
    const gateway = await open(database, '5/minute');
    const pass = holdClock(gateway);
    const quota = ({ statusCode, headers }: LightMyRequestResponse) => {
      const { ratelimit, 'ratelimit-policy': policy, 'retry-after': wait } = headers;
      return [statusCode, ratelimit, policy, wait];
    };
    const policy = '"default";q=5;w=60';
    expect(quota(await askGraphQL(gateway))).toEqual([
      200,
      '"default";r=4;t=60',
      policy,
      undefined,
    ]);
    await pass(20);
    expect(quota(await askGraphQL(gateway, '{'))).toEqual([
      200,
      '"default";r=3;t=40',
      policy,
      undefined,
    ]);
    const { headers } = await ask(gateway);
    expect(headers['ratelimit']).toBe('"default";r=2;t=40');
    const unchanged = await ask(gateway, { headers: { 'if-none-match': String(headers.etag) } });
    expect(quota(unchanged)).toEqual([304, '"default";r=1;t=40', policy, undefined]);
    const wrong = await ask(gateway, { headers: { authorization: 'Bearer nonsense' } });
    expect(quota(wrong)).toEqual([401, '"default";r=0;t=40', policy, undefined]);
    for (const send of [ask, askGraphQL]) {
      expect(quota(await send(gateway))).toEqual([429, '"default";r=0;t=40', policy, '40']);
    }
    const probe = await ask(gateway, { url: '/health/live' });
    expect(quota(probe)).toEqual([200, undefined, undefined, undefined]);
  });

  test('counts HEAD, OPTIONS, refused methods and unchanged answers', async () => {
    const gateway = await open(database, '7/hour');
    const etag = (await ask(gateway)).headers['etag'] ?? '';
    const unchanged = { headers: { 'if-none-match': String(etag) } };
    expect((await ask(gateway, unchanged)).statusCode).toBe(304);
    expect((await ask(gateway, { method: 'HEAD' })).statusCode).toBe(200);
    expect((await ask(gateway, { method: 'OPTIONS' })).statusCode).toBe(200);
    expect((await ask(gateway, { method: 'OPTIONS', url: '/graphql' })).statusCode).toBe(204);
    expect((await ask(gateway, { method: 'PUT' })).statusCode).toBe(405);
    expect((await ask(gateway, { url: '/api/outfits/?page=0' })).statusCode).toBe(404);
    expect((await ask(gateway, unchanged)).statusCode).toBe(429);
  });

  test('comes after host, path and Accept, which it does not count', async () => {
    const gateway = await open(database, '2/hour');
    const earlier = async () => [
      (await ask(gateway, { headers: { host: 'b@d' } })).statusCode,
      (await ask(gateway, { url: '/api/nothing/' })).statusCode,
      (await ask(gateway, { url: '/nothing' })).statusCode,
      (await ask(gateway, { headers: { accept: 'image/png' } })).statusCode,
    ];
    expect(await earlier()).toEqual([400, 404, 404, 406]);
    expect(await statusesOf(3, () => ask(gateway))).toEqual([200, 200, 429]);
    expect(await earlier()).toEqual([400, 404, 404, 406]);
  });

  test('counts a token that does not hold for its address: 401, then 429', async () => {
    const gateway = await open(database, '6/hour');
    const remoteAddress = '192.0.2.1';
    const expired = await signIn(1, -60);
    const sendBad = (url: string, headers: Record<string, string>) => () =>
      ask(gateway, { url, headers, remoteAddress });
    const guess = sendBad('/api/outfits/', { authorization: 'Bearer nonsense' });
    expect(await statusesOf(2, guess)).toEqual(times(2, 401));
    expect(await statusesOf(2, sendBad('/graphql?query={a}', expired))).toEqual(times(2, 401));
    // Together with what the address asks without a token.
    expect(await statusesOf(1, () => ask(gateway, { remoteAddress }))).toEqual([200]);
    expect(await statusesOf(3, guess)).toEqual([401, 429, 429]);
    expect(await statusesOf(1, sendBad('/graphql?query={a}', expired))).toEqual([429]);
    expect((await guess()).headers).not.toHaveProperty('www-authenticate');
    // It uses up nothing of a viewer at the same address, nor of other addresses.
    const headers = await signIn(1);
    expect(await statusesOf(7, () => ask(gateway, { headers, remoteAddress }))).toEqual([
      ...times(6, 200),
      429,
    ]);
    expect((await ask(gateway, { remoteAddress: '192.0.2.2' })).statusCode).toBe(200);
  });

  test('comes before the method, the body and the page', async () => {
    const gateway = await open(database, '1/hour');
    const headers = { ...(await signIn(1)), 'content-type': 'application/json' };
    await ask(gateway, { headers });
    for (const wrong of [
      { method: 'PUT', headers },
      { url: '/api/outfits/?page=0', headers },
      { method: 'OPTIONS', headers },
      { method: 'POST', payload: '{', headers },
    ] satisfies InjectOptions[]) {
      expect((await ask(gateway, wrong)).statusCode).toBe(429);
    }
    // Without a token, which is needed, it is that which is missing first.
    const anonymous = { 'content-type': 'application/json' };
    await ask(gateway);
    const posted = await ask(gateway, { method: 'POST', payload: '{', headers: anonymous });
    expect(posted.statusCode).toBe(401);
  });

  test('counts every viewer and every address by itself', async () => {
    const gateway = await open(database, '2/hour');
    for (const sender of [
      { remoteAddress: '192.0.2.1' },
      { remoteAddress: '192.0.2.2' },
      { headers: await signIn(1) },
      { headers: await signIn(2) },
    ]) {
      expect(await statusesOf(3, () => ask(gateway, sender))).toEqual([200, 200, 429]);
    }
    // A viewer is the same from everywhere, with any token, over REST and GraphQL.
    const headers = await signIn(1);
    const elsewhere = await ask(gateway, { headers, remoteAddress: '192.0.2.3' });
    expect(elsewhere.statusCode).toBe(429);
    const overGraphQL = await ask(gateway, {
      headers,
      url: '/graphql?query={__typename}',
    });
    expect(overGraphQL.statusCode).toBe(429);
  });

  test.each([
    ['192.0.2.1', '::ffff:192.0.2.1', true],
    ['192.0.2.1', '0:0:0:0:0:FFFF:c000:201', true],
    ['192.0.2.1', '::ffff:192.0.2.2', false],
    ['192.0.2.1', '::192.0.2.1', false],
    ['2001:db8:1:2::1', '2001:db8:1:2:ffff::', true],
    ['2001:db8:1:2::1', '2001:0DB8:0001:0002:1:2:3:4', true],
    ['2001:db8:1:2::1', '2001:db8:1:3::1', false],
    ['2001:db8::1', '2001:db8:0:0:5::', true],
    ['2001:db8::1', '2001:db8:0:1::', false],
    ['::1', '::2', true],
    ['fe80::1%eth0', 'fe80::2', true],
  ])('counts %s and %s as one address: %s', async (first, second, isOne) => {
    const gateway = await open(database, '1/hour');
    expect((await ask(gateway, { remoteAddress: first })).statusCode).toBe(200);
    expect((await ask(gateway, { remoteAddress: second })).statusCode).toBe(isOne ? 429 : 200);
  });

  test('believes X-Forwarded-For only from a proxy that is trusted', async () => {
    const gateway = await open(database, '2/hour', { TRUST_PROXY: '10.0.0.0/8' });
    const from = (remoteAddress: string, forwarded: string) => () =>
      ask(gateway, { remoteAddress, headers: { 'x-forwarded-for': forwarded } });
    expect(await statusesOf(3, from('10.0.0.1', '192.0.2.1'))).toEqual([200, 200, 429]);
    expect(await statusesOf(3, from('10.0.0.1', '192.0.2.2'))).toEqual([200, 200, 429]);
    // What the client put there itself stands before what the proxy saw.
    expect(await statusesOf(1, from('10.0.0.2', '198.51.100.1, 192.0.2.1'))).toEqual([429]);
    expect(await statusesOf(1, from('192.0.2.3', '198.51.100.1'))).toEqual([200]);
    expect(await statusesOf(2, from('192.0.2.3', '198.51.100.2'))).toEqual([200, 429]);
    // Text that is no address is one sender, however it varies.
    expect(await statusesOf(1, from('10.0.0.1', 'a'.repeat(5000)))).toEqual([200]);
    expect(await statusesOf(2, from('10.0.0.1', 'unknown'))).toEqual([200, 429]);
  });

  test('leaves the cached answers their use', async () => {
    const gateway = await open(database, '1000/hour');
    const query = vi.spyOn(gateway.database.pool, 'query');
    onTestFinished(() => query.mockRestore());
    expect(await statusesOf(100, () => ask(gateway))).toEqual(times(100, 200));
    const sent = query.mock.calls
      .map(([statement]) => JSON.stringify(statement))
      .filter((statement) => !statement.includes('pg_current_snapshot'));
    expect(sent.filter((statement) => statement.includes('rate_limits'))).toHaveLength(1);
    // One page; others who use the same PostgreSQL meanwhile make it read the page again.
    if (kind === 'embedded') expect(sent).toHaveLength(2);
  });

  test('asks the database for nothing more once it is used up', async () => {
    const gateway = await open(database, '5/hour');
    await statusesOf(5, () => ask(gateway));
    const query = vi.spyOn(gateway.database.pool, 'query');
    onTestFinished(() => query.mockRestore());
    expect(await statusesOf(50, () => ask(gateway))).toEqual(times(50, 429));
    expect(query).not.toHaveBeenCalled();
  });

  test('clears away windows that have ended', async () => {
    const gateway = await open(database, '5/minute');
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

  const expectAway = async (gateway: Gateway) => {
    const answers = await Promise.all([ask(gateway), ask(gateway), askGraphQL(gateway)]);
    for (const { statusCode, headers } of answers) {
      expect([statusCode, headers['retry-after']]).toEqual([503, '1']);
    }
  };

  test('that cannot be counted lets nothing in, and goes on as soon as it can', async () => {
    const gateway = await open(database, '3/hour');
    await gateway.database.pool.query('ALTER TABLE rate_limits RENAME TO away');
    await expectAway(gateway);
    await gateway.database.pool.query('ALTER TABLE away RENAME TO rate_limits');
    expect(await statusesOf(4, () => ask(gateway))).toEqual([200, 200, 200, 429]);
  });

  test('whose lease takes too long is a 503 too', async () => {
    const gateway = await open(database, '3/hour', { REQUEST_TIMEOUT: '1s' });
    const query = vi
      .spyOn(database.pool, 'query')
      .mockImplementation((() => new Promise(() => {})) as never);
    await expectAway(gateway);
    query.mockRestore();
    expect(await statusesOf(4, () => ask(gateway))).toEqual([200, 200, 200, 429]);
  });

  test('is a fixed window for each sender, whatever comes when', async () => {
    const limit = 40;
    const gateway = await open(database, `${limit}/hour`);
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
});

describeOnce('a rate limit of several gateways on one PostgreSQL', () => {
  let owner: TestGateway;
  const databases: Database[] = [];
  beforeAll(async () => {
    owner = await openGateway('PostgreSQL', rows);
    const DATABASE_URL = owner.database.pool.options.connectionString ?? '';
    for (let count = 0; count < 3; count++) {
      databases.push(await openDatabase(readConfig({ DATABASE_URL })));
    }
  });
  afterAll(async () => {
    for (const database of databases) await database.close();
    await owner.close();
  });

  const openAll = async (limit: string): Promise<Gateway[]> => {
    await owner.database.pool.query('TRUNCATE rate_limits');
    return Promise.all(databases.map((database) => openReplica(database, limit)));
  };

  test('is one limit for a client that asks them in turn', async () => {
    const gateways = await openAll('200/hour');
    let admitted = 0;
    for (let index = 0; index < 300; index++) {
      const answer = await ask(gateways[index % 3] as Gateway);
      if (answer.statusCode === 200) admitted++;
    }
    expect(admitted).toBeLessThanOrEqual(200);
    expect(admitted).toBeGreaterThanOrEqual(195);
    for (const gateway of gateways) {
      const refused = await ask(gateway);
      expect(refused.statusCode).toBe(429);
      expect(Number(refused.headers['retry-after'])).toBeGreaterThan(3500);
    }
  });

  test('is one limit for many requests at once', async () => {
    const gateways = await openAll('100/hour');
    const admitted = await admittedAtOnce(400, (index) => ask(gateways[index % 3] as Gateway));
    const later = await Promise.all(gateways.map((gateway) => statusesOf(40, () => ask(gateway))));
    const total = admitted + later.flat().filter((status) => status === 200).length;
    expect(total).toBe(100);
  });

  test('begins anew for all of them together', async () => {
    const gateways = await openAll('10/minute');
    const pass = holdClock(gateways[0] as Gateway);
    for (let window = 0; window < 5; window++) {
      const admitted = await admittedAtOnce(40, (index) => ask(gateways[index % 3] as Gateway));
      expect(admitted).toBe(10);
      await pass(60);
    }
  });
});

test('without a rate limit nothing is counted', async () => {
  const gateway = await openGateway('PostgreSQL', rows, { MAX_CONCURRENT_REQUESTS: '1000' });
  onTestFinished(() => gateway.close());
  expect(await admittedAtOnce(300, () => ask(gateway))).toBe(300);
  const { rows: counted } = await gateway.database.pool.query('SELECT * FROM rate_limits');
  expect(counted).toEqual([]);
});

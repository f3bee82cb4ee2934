// A statement is cancelled when it takes too long, or when all its clients have left.
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { baseOf, demoEnvironment, runServer } from '../support/cli/process.ts';
import { send } from '../support/faults/load.ts';
import { openGateway } from '../support/gateway.ts';
import { secret, signIn } from '../support/http/tokens.ts';

const requests: [string, string][] = [
  ['the REST listing', '/api/outfits/'],
  ['a list in GraphQL', '{ outfits { count results { id: databaseId } } }'],
  [
    'a connection in GraphQL',
    '{ outfitConnection(first: 3) { totalCount edges { node { id: databaseId } } } }',
  ],
  ['a single outfit', '{ outfit(databaseId: 1) { title } }'],
];

let environment: Record<string, string>;
/** A session that makes statements of the gateway wait. */
let blocker: pg.Client;

beforeEach(async () => {
  environment = await demoEnvironment();
  blocker = new pg.Client(environment['DATABASE_URL']);
  await blocker.connect();
});

afterEach(async () => {
  await blocker.end();
});

async function block(): Promise<void> {
  // What is kept in memory would be answered without the table. The gateway must not apply changes meanwhile.
  await blocker.query('INSERT INTO outfit_changes (xid) VALUES (pg_current_xact_id())');
  await blocker.query('SELECT apply_pending_outfit_changes()');
  await blocker.query('BEGIN; LOCK TABLE outfits IN ACCESS EXCLUSIVE MODE');
}

/** Statements of the gateway that wait for the lock. */
async function countWaiting(): Promise<number> {
  // Within a transaction the view would stay as it was when first read.
  const { rows } = await blocker.query(
    `SELECT pg_stat_clear_snapshot(), (
       SELECT count(*)::int FROM pg_stat_activity
       WHERE datname = current_database() AND application_name = 'outfit-gateway' AND state = 'active' AND wait_event_type = 'Lock'
     ) AS count`,
  );
  return rows[0].count;
}

async function untilWaiting(count: number): Promise<void> {
  await expect.poll(countWaiting).toBe(count);
}

describe.each(requests)('%s', (_name, what) => {
  test('is stopped by the time limit, also when it was fast before', async () => {
    const base = await baseOf(runServer({ ...environment, REQUEST_TIMEOUT: '1s' }));
    // Once unknown, and once as a query that is known and compiled.
    for (const times of [0, 6]) {
      for (let time = 0; time < times; time++) expect((await send(base, what)).status).toBe(200);
      await block();
      const answer = await send(base, what);
      expect(answer).toMatchObject({ status: 503, retryAfter: '1' });
      expect(answer.body).toContain('The request took too long and was stopped.');
      if (what.startsWith('{')) expect(answer.body).toContain('"code":"TIMEOUT"');
      expect(answer.milliseconds).toBeGreaterThan(900);
      // Room for a busy machine, but less than the default.
      expect(answer.milliseconds).toBeLessThan(8_000);
      await untilWaiting(0);
      await blocker.query('ROLLBACK');
      expect((await send(base, what)).status).toBe(200);
    }
  });

  test('is stopped when its client leaves', async () => {
    const base = await baseOf(runServer({ ...environment, REQUEST_TIMEOUT: '60s' }));
    for (const times of [0, 6]) {
      for (let time = 0; time < times; time++) await send(base, what);
      await block();
      const client = new AbortController();
      const answer = send(base, what, client.signal);
      await untilWaiting(1);
      client.abort();
      expect((await answer).status).toBe(0);
      await untilWaiting(0);
      await blocker.query('ROLLBACK');
      expect((await send(base, what)).status).toBe(200);
    }
  });
});

test('a read that several wait for goes on until the last of them has left', async () => {
  const base = await baseOf(runServer({ ...environment, REQUEST_TIMEOUT: '60s' }));
  expect((await send(base, '/api/outfits/')).status).toBe(200);
  await block();
  const clients = Array.from({ length: 4 }, () => new AbortController());
  const [first, second, third, fourth] = clients as [
    AbortController,
    AbortController,
    AbortController,
    AbortController,
  ];
  const answers = [];
  for (const client of clients) {
    answers.push(send(base, '/api/outfits/', client.signal));
    await untilWaiting(1);
    await new Promise((settle) => setTimeout(settle, 200));
  }
  // The first one reads alone, as it came before the others; the others share the next read.
  first.abort();
  second.abort();
  await new Promise((settle) => setTimeout(settle, 1_500));
  expect(await countWaiting()).toBe(1);
  await blocker.query('ROLLBACK');
  expect((await answers[2])?.status).toBe(200);
  expect((await answers[3])?.status).toBe(200);

  await block();
  const again = [third, fourth].map(() => new AbortController());
  const waiting = again.map(({ signal }) => send(base, '/api/outfits/?page=2', signal));
  await untilWaiting(1);
  await new Promise((settle) => setTimeout(settle, 300));
  for (const client of again) client.abort();
  await Promise.all(waiting);
  await untilWaiting(0);
  await blocker.query('ROLLBACK');
  expect((await send(base, '/api/outfits/?page=2')).status).toBe(200);
});

test('requests to the embedded database are answered in time while a statement blocks it', async () => {
  const gateway = await openGateway('embedded', [], { REQUEST_TIMEOUT: '1s' });
  onTestFinished(() => gateway.close());
  const { pool } = gateway.database;
  await gateway.get('/api/outfits/');
  const long = pool.query('SELECT count(*) FROM generate_series(1, 30000000)');
  let isOver = false;
  const over = long.finally(() => {
    isOver = true;
  });
  for (const ask of [
    () => gateway.get('/api/outfits/'),
    () => gateway.app.inject('/graphql?query={outfit(databaseId:1){id: databaseId}}'),
  ]) {
    const { statusCode, headers } = await ask();
    expect(isOver).toBe(false);
    expect(statusCode).toBe(503);
    expect(headers['retry-after']).toBe('1');
  }
  await over;
  expect((await gateway.get('/api/outfits/')).statusCode).toBe(200);
});

test('a client that leaves while the database is asked what it shows has nothing read for it', async () => {
  const rows = [...generateOutfits({ outfits: 5, users: 2 })];
  const gateway = await openGateway('PostgreSQL', rows);
  onTestFinished(() => gateway.close());
  const { pool, snapshots } = gateway.database;
  const base = await gateway.app.listen({ host: '127.0.0.1', port: 0 });
  for (const [, what] of requests) expect((await send(base, what)).status).toBe(200);
  const query = vi.spyOn(pool, 'query');
  const take = snapshots.next.bind(snapshots);
  for (const [, what] of requests) {
    await pool.query('UPDATE outfit_like_counts SET likes = likes + 1');
    let ask = () => {};
    const asked = new Promise<void>((settle) => {
      ask = settle;
    });
    let answer = () => {};
    const held = new Promise<void>((settle) => {
      answer = settle;
    });
    const probe = vi.spyOn(snapshots, 'next').mockImplementationOnce(async () => {
      ask();
      await held;
      return take();
    });
    const client = new AbortController();
    const leaving = send(base, what, client.signal);
    await asked;
    const others = gateway.app.server;
    const connections = () =>
      new Promise<number>((settle) => others.getConnections((_error, count) => settle(count)));
    client.abort();
    expect((await leaving).status).toBe(0);
    await expect.poll(connections).toBe(0);
    query.mockClear();
    answer();
    probe.mockRestore();
    // All statements for it would have been sent before.
    expect((await send(base, '/api/outfits/?page=last')).status).toBe(200);
    expect(query.mock.calls).toHaveLength(1);
  }
});

test('writes that are stopped are told as 503, and are no unexpected errors in the log', async () => {
  const settings = { REQUEST_TIMEOUT: '1s', AUTH_JWT_SECRET: secret };
  const server = runServer({ ...environment, ...settings });
  const base = await baseOf(server);
  await block();
  const write = async (user: number, body: string, more: Record<string, string> = {}) => {
    const headers = { 'content-type': 'application/json', ...(await signIn(user)), ...more };
    return fetch(`${base}/graphql`, { method: 'POST', headers, body });
  };
  const documents = [
    'mutation { likeOutfit(id: "T3V0Zml0OjE=") { outfit { likes } } }',
    'mutation { deleteOutfit(id: "T3V0Zml0OjE=") { deletedOutfitId } }',
    'mutation { createOutfit(input: { imageKey: "outfits/2b1d3c4e-0000-4000-8000-000000000001.png" }) { outfit { title } } }',
  ];
  const answers = await Promise.all(
    Array.from({ length: 24 }, async (_, index) => {
      const query = documents[index % documents.length];
      const key = index % 2 ? { 'idempotency-key': `key-${index}` } : {};
      return write(1 + index, JSON.stringify({ query }), key);
    }),
  );
  for (const answer of answers) {
    expect([answer.status, await answer.text()]).toEqual([503, expect.stringContaining('code')]);
    expect(answer.headers.get('retry-after')).toBe('1');
  }
  await blocker.query('ROLLBACK');
  expect(server.output()).not.toContain('unexpected error');
  expect((await write(1, JSON.stringify({ query: documents[0] }))).status).toBe(200);
});

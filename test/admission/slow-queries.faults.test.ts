// A statement is cancelled when it takes too long, or when all its clients have left.
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import type pg from 'pg';
import { expect, onTestFinished, test, vi } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { connectTo, databaseUrlOf } from '../support/databases/connections.ts';
import { countBlocked } from '../support/faults/clients.ts';
import { send } from '../support/faults/load.ts';
import { keepLog, openForTest } from '../support/gateway.ts';
import { baseOfApp } from '../support/http/event-stream.ts';
import { secret, signIn } from '../support/http/tokens.ts';

const { logger, text } = keepLog();

const requests = [
  '/api/outfits/',
  '{ outfits { count results { id: databaseId } } }',
  '{ outfitConnection(first: 3) { totalCount edges { node { id: databaseId } } } }',
  '{ outfit(databaseId: 1) { title } }',
];

const rows = [...generateOutfits({ outfits: 45, users: 9 })];
/** A session that makes statements of the gateway wait. */
let blocker: pg.Client;

/** A gateway that listens, and the session that blocks it. */
async function open(settings: Record<string, string>): Promise<string> {
  const { app, database } = await openForTest('PostgreSQL', rows, settings, { logger });
  blocker = await connectTo(databaseUrlOf(database.pool));
  onTestFinished(() => blocker.end());
  return baseOfApp(app);
}

async function block(): Promise<void> {
  // What is kept in memory would be answered without the table. The gateway must not apply changes meanwhile.
  await blocker.query('INSERT INTO outfit_changes (xid) VALUES (pg_current_xact_id())');
  await blocker.query('SELECT apply_pending_outfit_changes()');
  await blocker.query('BEGIN; LOCK TABLE outfits IN ACCESS EXCLUSIVE MODE');
}

const untilWaiting = (count: number) => expect.poll(() => countBlocked(blocker)).toBe(count);

const ask = (base: string, signal?: AbortSignal) =>
  Promise.all(requests.map((what) => send(base, what, signal)));
const expectAnswers = async (base: string) => {
  for (const answer of await ask(base)) expect(answer.status).toBe(200);
};

test('lists and single outfits, over REST and GraphQL, are stopped by the time limit, also when they were fast before', async () => {
  const base = await open({ REQUEST_TIMEOUT: '1s' });
  // Once unknown, and once as queries that are known and compiled.
  for (const times of [0, 6]) {
    for (let time = 0; time < times; time++) await expectAnswers(base);
    await block();
    for (const answer of await ask(base)) {
      expect(answer).toMatchObject({ status: 503, retryAfter: '1' });
      expect(answer.body).toContain('The request took too long and was stopped.');
      if (answer.what.startsWith('{')) expect(answer.body).toContain('"code":"TIMEOUT"');
    }
    await untilWaiting(0);
    await blocker.query('ROLLBACK');
    await expectAnswers(base);
  }
});

test('lists and single outfits, over REST and GraphQL, are stopped when their clients leave', async () => {
  const base = await open({ REQUEST_TIMEOUT: '60s' });
  for (const times of [0, 6]) {
    for (let time = 0; time < times; time++) await expectAnswers(base);
    await block();
    const clients = new AbortController();
    const answers = ask(base, clients.signal);
    await untilWaiting(requests.length);
    clients.abort();
    for (const answer of await answers) expect(answer.status).toBe(0);
    await untilWaiting(0);
    await blocker.query('ROLLBACK');
    await expectAnswers(base);
  }
});

test('a read that several wait for goes on until the last of them has left', async () => {
  const base = await open({ REQUEST_TIMEOUT: '60s' });
  expect((await send(base, '/api/outfits/')).status).toBe(200);
  await block();
  const leaving = new AbortController();
  const answers: ReturnType<typeof send>[] = [];
  for (const signal of [leaving.signal, leaving.signal, undefined, undefined]) {
    answers.push(send(base, '/api/outfits/', signal));
    await untilWaiting(1);
    await sleep(200);
  }
  // The first one reads alone, as it came before the others; the others share the next read.
  leaving.abort();
  await sleep(1_500);
  expect(await countBlocked(blocker)).toBe(1);
  await blocker.query('ROLLBACK');
  expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([0, 0, 200, 200]);

  await block();
  const all = new AbortController();
  const waiting = [1, 2].map(() => send(base, '/api/outfits/?page=2', all.signal));
  await untilWaiting(1);
  await sleep(300);
  all.abort();
  await Promise.all(waiting);
  await untilWaiting(0);
  await blocker.query('ROLLBACK');
  expect((await send(base, '/api/outfits/?page=2')).status).toBe(200);
});

test('requests to the embedded database are answered in time while a statement blocks it', async () => {
  const gateway = await openForTest('embedded', [], { REQUEST_TIMEOUT: '1s' });
  const { pool } = gateway.database;
  await gateway.get('/api/outfits/');
  const long = pool.query(
    "DO $$ BEGIN WHILE clock_timestamp() < now() + interval '6 seconds' LOOP END LOOP; END $$",
  );
  let isOver = false;
  const over = long.finally(() => {
    isOver = true;
  });
  const urls = ['/api/outfits/', '/graphql?query={outfit(databaseId:1){id: databaseId}}'];
  for (const { statusCode, headers } of await Promise.all(urls.map((url) => gateway.get(url)))) {
    expect([isOver, statusCode, headers['retry-after']]).toEqual([false, 503, '1']);
  }
  await over;
  expect((await gateway.get('/api/outfits/')).statusCode).toBe(200);
});

test('a client that leaves while the database is asked what it shows has nothing read for it', async () => {
  const gateway = await openForTest('PostgreSQL', rows);
  const { pool, snapshots } = gateway.database;
  const base = await baseOfApp(gateway.app);
  for (const what of requests) expect((await send(base, what)).status).toBe(200);
  const query = vi.spyOn(pool, 'query');
  const take = snapshots.next.bind(snapshots);
  const countConnections = promisify(gateway.app.server.getConnections.bind(gateway.app.server));
  for (const what of requests) {
    await pool.query('UPDATE outfit_like_counts SET likes = likes + 1');
    let answer = () => {};
    const held = new Promise<void>((settle) => {
      answer = settle;
    });
    const probe = vi.spyOn(snapshots, 'next').mockImplementationOnce(() => held.then(take));
    const client = new AbortController();
    const leaving = send(base, what, client.signal);
    await expect.poll(() => probe.mock.calls.length).toBe(1);
    client.abort();
    expect((await leaving).status).toBe(0);
    await expect.poll(() => countConnections()).toBe(0);
    query.mockClear();
    answer();
    probe.mockRestore();
    // All statements for it would have been sent before.
    expect((await send(base, '/api/outfits/?page=last')).status).toBe(200);
    expect(query.mock.calls).toHaveLength(1);
  }
});

test('a write that is stopped gets 503, and is not logged as an unexpected error', async () => {
  const settings = { REQUEST_TIMEOUT: '1s', AUTH_JWT_SECRET: secret };
  const base = await open(settings);
  await block();
  const write = async (user: number, query = '', more: Record<string, string> = {}) =>
    send(base, query, undefined, undefined, { ...(await signIn(user)), ...more });
  const documents = [
    'mutation { likeOutfit(id: "T3V0Zml0OjE=") { outfit { likes } } }',
    'mutation { deleteOutfit(id: "T3V0Zml0OjE=") { deletedOutfitId } }',
    'mutation { createOutfit(input: { imageKey: "outfits/2b1d3c4e-0000-4000-8000-000000000001.png" }) { outfit { title } } }',
  ];
  const answers = await Promise.all(
    Array.from({ length: 24 }, (_, index) => {
      const key = index % 2 ? { 'idempotency-key': `key-${index}` } : {};
      return write(1 + (index % 9), documents[index % documents.length], key);
    }),
  );
  for (const answer of answers) {
    const body = expect.stringContaining('code');
    expect(answer).toMatchObject({ status: 503, retryAfter: '1', body });
  }
  await blocker.query('ROLLBACK');
  expect(text()).not.toContain('unexpected error');
  expect((await write(1, documents[0])).status).toBe(200);
});

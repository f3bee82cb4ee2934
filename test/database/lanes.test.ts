// Expensive lists: limited by weight, served in a lane of their own, so that they delay only each other.

import { expect, onTestFinished, test, vi } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { ConcurrencyLimit } from '../../src/admission/concurrency-limit.ts';
import { Lane } from '../../src/database/connection/lane.ts';
import { SharedTask, type TaskScope } from '../../src/database/task.ts';
import { LiveFeed } from '../../src/graphql/live/live.ts';
import type { LiveStream } from '../../src/graphql/live/live-stream.ts';
import { Metrics } from '../../src/observability/metrics.ts';
import { connectForTest, databaseUrlOf } from '../support/databases/connections.ts';
import { openForTest, outfitId, type TestGateway, useGateway } from '../support/gateway.ts';
import { baseOfApp, openStream } from '../support/http/event-stream.ts';
import { postGraphql } from '../support/http/graphql.ts';
import { secret, signIn } from '../support/http/tokens.ts';
import { keepWarnings, takeUncaught } from '../support/this-process.ts';

const rows = [...generateOutfits({ outfits: 60, users: 9 })];

/** A gateway on PostgreSQL, where a list by the hashtag `slow` waits until it is released, or stopped. */
async function openWithSlowTag(environment: Record<string, string> = {}) {
  const settings = {
    ...{ AUTH_JWT_SECRET: secret, CACHE_MAX_SIZE: '0', TRUST_PROXY: '127.0.0.1' },
    ...{ DATABASE_POOL_MAX: '4', EXPENSIVE_QUERY_TIMEOUT: '60s' },
    ...environment,
  };
  const gateway = await openForTest('PostgreSQL', rows, settings);
  await gateway.database.pool.query(`
    ALTER FUNCTION outfit_hashtags(text) RENAME TO quick_hashtags;
    CREATE FUNCTION outfit_hashtags(given text) RETURNS text[] LANGUAGE plpgsql STABLE AS $$
    BEGIN
      IF given = '#slow' THEN PERFORM pg_advisory_lock_shared(1), pg_advisory_unlock_shared(1); END IF;
      RETURN quick_hashtags(given);
    END $$`);
  const holder = await connectForTest(databaseUrlOf(gateway.database.pool));
  await holder.query('SELECT pg_advisory_lock(1)');
  /** The lane of expensive lists. */
  const lane = () => gateway.database.pool.lanes['expensive'];
  /** Lets all lists by this tag end. */
  const release = () => holder.query('SELECT pg_advisory_unlock(1)');
  return Object.assign(gateway, { lane, release });
}

const ask = (
  { app }: TestGateway,
  query: string,
  headers: Record<string, string> = {},
  variables: object = {},
) => postGraphql(app, { query, variables }, headers);

/** Follows a list by hashtag. */
async function followTagged({ app }: TestGateway) {
  const stream = await openStream(
    await baseOfApp(app),
    'subscription { outfits(filter: { hashtags: ["ootd"] }) { results { databaseId likes } } }',
  );
  /** The first outfit in the next answer. */
  return async (): Promise<{ databaseId: number; likes: number }> =>
    (await stream.next()).data.data.outfits.results[0];
}

const like = (id: number) => `mutation { likeOutfit(id: "${outfitId(id)}") { outfit { id } } }`;

const from = (address: string) => ({ 'x-forwarded-for': address });
const slow = '{ outfits(filter: { hashtags: ["slow"] }) { count } }';
const times = (count: number, text: (index: number) => string) =>
  `{ ${Array.from({ length: count }, (_, index) => text(index)).join(' ')} }`;

const gateway = useGateway('PostgreSQL', rows, { AUTH_JWT_SECRET: secret });

const listOf = (filter: string) => `outfits(filter: { ${filter} }) { count }`;
const created = 'createdFrom: "2001-01-01T00:00:00Z"';

test.each<[most: number, what: string, list: string]>([
  [3, 'lists that no index serves', listOf('hasVideo: false')],
  [3, 'grades', listOf('quality: [77]')],
  [3, 'devices of private outfits', listOf('creationDevices: [IOS], private: true')],
  [3, 'scrolled lists', 'outfitConnection(filter: { hasVideo: true }) { totalCount }'],
  [6, 'searches', listOf('search: "and"')],
  [6, 'users by name', 'users(search: "and") { totalCount }'],
  [6, 'several hashtags', listOf('hashtags: ["a", "b"]')],
  [6, 'ranges of no sort field', 'outfits(ordering: ID_ASC, filter: { likesFrom: 1 }) { count }'],
  [6, 'two ranges', listOf(`likesFrom: 1, ${created}`)],
  [12, 'one hashtag', listOf('hashtags: ["a"]')],
  [6, 'the lists of a user', `user(databaseId: 1) { ${listOf('hasVideo: true')} }`],
  [6, 'a search with a video', listOf('hasVideo: true, search: "and"')],
])('the filters of a document are %i at most of %s', async (most, _what, list) => {
  const lists = (count: number) => times(count, (index) => `a${index}: ${list}`);
  expect((await ask(gateway, lists(most))).json()).not.toHaveProperty('errors');
  const refused = await ask(gateway, lists(most + 1));
  expect(refused.statusCode).toBe(400);
  const message =
    /^The filters of the document \(.+\) weigh 1[3-6] for the database, but at most 12 is allowed/;
  const extensions = { code: 'QUERY_TOO_COSTLY' };
  expect(refused.json()).toEqual({
    errors: [{ message: expect.stringMatching(message), extensions }],
  });
});

test.each([
  ['no filter', 'outfits { count }'],
  ['what is public', listOf('private: false')],
  ['single ids', listOf(`ids: ["${outfitId(1)}"], hasVideo: true`)],
  ['a range of the sort field', listOf(created)],
])('the filters of a document weigh nothing: %s', async (_what, list) => {
  const answer = await ask(
    gateway,
    times(30, (index) => `a${index}: ${list}`),
  );
  expect(answer.json()).not.toHaveProperty('errors');
});

test('the filters of a document are counted in variables and fragments too', async () => {
  const query = `query ($f: OutfitFilter) { ...A ...B }
    fragment A on Query { a: outfits(filter: $f) { count } b: outfits(filter: $f) { count } }
    fragment B on Query { c: outfits(filter: $f) { count } d: outfits(filter: $f) { count } }`;
  expect((await ask(gateway, query, {}, { f: { likesFrom: 1 } })).statusCode).toBe(200);
  const refused = await ask(gateway, query, {}, { f: { hasVideo: true } });
  expect(refused.body).toContain('The filters of the document (hasVideo) weigh 16');
});

test('an expensive list is stopped by EXPENSIVE_QUERY_TIMEOUT, and the connection is used again', async () => {
  const gateway = await openWithSlowTag({
    EXPENSIVE_QUERY_TIMEOUT: '1s',
    DATABASE_POOL_MAX: '1',
  });
  const stopped = await ask(gateway, slow);
  expect(stopped.statusCode).toBe(503);
  expect(stopped.headers['retry-after']).toBe('1');
  const message = expect.stringContaining('stopped after 1 s');
  expect(stopped.json()).toEqual({ errors: [{ message, extensions: { code: 'TIMEOUT' } }] });
  const { totalCount } = gateway.database.pool;
  expect((await ask(gateway, '{ outfits { count } }')).json()).toEqual({
    data: { outfits: { count: 60 } },
  });
  expect(gateway.database.pool.totalCount).toBe(totalCount);
  const { text } = await new Metrics(gateway.database).print();
  expect(text).toMatch(/^gateway_database_statement_timeouts_total 1$/m);
});

test('an expensive list holds up nothing but others of its kind, and takes a quarter of MAX_CONCURRENT_REQUESTS at most', async () => {
  const gateway = await openWithSlowTag({ MAX_CONCURRENT_REQUESTS: '4' });
  let stopped = 0;
  const attack = Array.from({ length: 30 }, async () => {
    const answer = await ask(gateway, slow, from('10.0.0.1'));
    if (answer.json().errors[0].extensions.code === 'TIMEOUT') stopped += 1;
  });
  const viewer = await signIn(1);
  await expect.poll(gateway.lane).toMatchObject({ running: 1, waiting: 1 });
  for (const query of [
    '{ outfits(page: 2) { count } }',
    '{ outfit(databaseId: 1) { title } }',
    '{ outfits(filter: { hashtags: ["ootd"] }) { count } }',
  ]) {
    expect((await ask(gateway, query, from('10.0.0.2'))).json()).not.toHaveProperty('errors');
  }
  expect((await ask(gateway, like(1), viewer)).json()).not.toHaveProperty('errors');
  expect((await gateway.get('/api/outfits/')).statusCode).toBe(200);
  expect(stopped).toBe(0);
  expect(gateway.lane()).toMatchObject({ running: 1, waiting: 1 });
  await gateway.release();
  await Promise.allSettled(attack);
});

test('an expensive list is refused when its lane is full, and the sender with the most is refused first', async () => {
  const gateway = await openWithSlowTag();
  const refused: string[] = [];
  const send = async (address: string) => {
    const answer = await ask(gateway, slow, from(address));
    if (answer.json().errors[0].extensions.code === 'SERVICE_UNAVAILABLE') {
      expect(answer.headers['retry-after']).toBe('1');
      refused.push(address);
    }
  };
  const flood = Array.from({ length: 40 }, () => send('10.0.0.1'));
  // One is read, and a quarter of MAX_CONCURRENT_REQUESTS waits.
  await expect.poll(() => refused.length).toBe(40 - 1 - 32);
  const others = ['10.0.0.2', '10.0.0.3'].map(send);
  await expect.poll(() => refused.length).toBe(40 - 1 - 32 + 2);
  expect(new Set(refused)).toEqual(new Set(['10.0.0.1']));
  const { text } = await new Metrics(gateway.database).print();
  const counts = [...text.matchAll(/statements_refused_total\{.+\} (\d+)/g)];
  expect(counts.reduce((sum, [, count]) => sum + Number(count), 0)).toBe(refused.length);
  await gateway.release();
  await Promise.allSettled([...flood, ...others]);
});

test('an expensive list is read for one sender at a time, and for senders in turn', async () => {
  const gateway = await openWithSlowTag({ DATABASE_POOL_MAX: '8' });
  const asked = Array.from({ length: 5 }, () => ask(gateway, slow, from('10.0.0.1')));
  await expect.poll(() => gateway.lane()?.running).toBe(1);
  await expect.poll(() => gateway.lane()?.waiting).toBe(4);
  asked.push(ask(gateway, slow, from('10.0.0.2')));
  await expect.poll(() => gateway.lane()?.running).toBe(2);
  const { text } = await new Metrics(gateway.database).print();
  expect(text).toContain('statements_running{lane="expensive"} 2\n');
  expect(text).toContain('statements_waiting{lane="expensive"} 4\n');
  await gateway.release();
  await Promise.allSettled(asked);
});

test('an expensive list that is followed is read again at most once in that time, for hundreds of changes', async () => {
  const gateway = await openWithSlowTag({
    EXPENSIVE_QUERY_TIMEOUT: '1s',
    CACHE_MAX_SIZE: '1000000B',
  });
  const { pool } = gateway.database;
  // Long enough to be expensive, short enough to be answered.
  await pool.query(`
    CREATE OR REPLACE FUNCTION outfit_hashtags(given text) RETURNS text[] LANGUAGE plpgsql STABLE AS $$
    BEGIN PERFORM pg_sleep(0.2); RETURN quick_hashtags(given); END $$`);
  const read = vi.spyOn(pool, 'queryInLane');
  const began = performance.now();
  const next = await followTagged(gateway);
  const { databaseId: id } = await next();
  for (let change = 0; change < 300; change += 1) {
    await pool.query('UPDATE outfit_like_counts SET likes = likes + 1 WHERE id = $1', [id]);
  }
  const seconds = (performance.now() - began) / 1000;
  expect(read.mock.calls.length).toBeLessThanOrEqual(seconds + 2);
  const { rows: found } = await pool.query(`SELECT likes FROM outfit_like_counts WHERE id = ${id}`);
  let likes = 0;
  while (likes < found[0].likes) ({ likes } = await next());
  expect(likes).toBe(found[0].likes);
});

test('a live answer that waits for an expensive list holds up none of another sender', async () => {
  const gateway = await openWithSlowTag();
  const base = await baseOfApp(gateway.app);
  const answered: unknown[] = [];
  for (let index = 0; index < 20; index += 1) {
    // A subscription that no other one is.
    const query = `subscription { a${index}: ${slow.slice(1, -1)} }`;
    openStream(base, query, { headers: from('10.0.0.1') }).then(
      (stream) => answered.push(stream),
      () => {},
    );
  }
  await expect.poll(() => gateway.lane()?.running).toBe(1);
  for (const query of ['subscription { outfits { count } }', 'subscription { outfits { page } }']) {
    const stream = await openStream(base, query, { headers: from('10.0.0.2') });
    expect((await stream.next()).data).not.toHaveProperty('errors');
  }
  expect(answered).toEqual([]);
});

test('a live answer that waits for an expensive list is not paid by a sender that is busy, where another follows the same', () => {
  const log = { isInvalidated: () => true, current: 0 };
  const feed = new LiveFeed('', {} as never, true, undefined, log, 0);
  for (const sender of ['busy', 'idle', 'other']) feed.add({ options: { sender } } as LiveStream);
  expect(feed.findPayer((sender) => (sender === 'busy' ? 60 : 0))).toBe('idle');
  expect(feed.findPayer((sender) => (sender === 'other' ? 1 : 2))).toBe('other');
});

test('a live answer that failed once is read again soon, whatever EXPENSIVE_QUERY_TIMEOUT is', async () => {
  const gateway = await openWithSlowTag({ EXPENSIVE_QUERY_TIMEOUT: '600s' });
  const { pool } = gateway.database;
  const next = await followTagged(gateway);
  const { databaseId: id, likes } = await next();
  await pool.query(`
    CREATE TABLE failing AS SELECT true AS is_full;
    CREATE OR REPLACE FUNCTION outfit_hashtags(given text) RETURNS text[] LANGUAGE plpgsql STABLE AS $$
    BEGIN
      IF (SELECT is_full FROM failing) THEN RAISE EXCEPTION 'full' USING ERRCODE = '53200'; END IF;
      RETURN quick_hashtags(given);
    END $$`);
  const read = vi.spyOn(pool, 'queryInLane');
  await pool.query('UPDATE outfit_like_counts SET likes = likes + 1 WHERE id = $1', [id]);
  await expect.poll(() => read.mock.settledResults.map(({ type }) => type)).toContain('rejected');
  await pool.query('UPDATE failing SET is_full = false');
  expect((await next()).likes).toBe(likes + 1);
}, 30_000);

test('a refused request has no place while its refusal is delayed', async () => {
  const limit = new ConcurrencyLimit(1, 1000);
  const { signal } = new AbortController();
  const task = { sender: 'a', signal, isRefused: false };
  const order: string[] = [];
  const refuse = async () => {
    task.isRefused = true;
  };
  const refused = limit.run(refuse, task).then(() => order.push('refused'));
  const other = { sender: 'b', signal, isRefused: false };
  await limit.run(async () => order.push('other'), other);
  await refused;
  expect(order).toEqual(['other', 'refused']);
});

test('a task that has ended leaves no statement behind', async () => {
  const gateway = await openWithSlowTag({
    EXPENSIVE_QUERY_TIMEOUT: '600s',
    REQUEST_TIMEOUT: '1s',
  });
  const { lanes } = gateway.database.pool;
  const lists = [0, 1, 2, 3, 4].map((index) => `a${index}: ${slow.slice(1, -1)}`).join(' ');
  const answer = await ask(gateway, `{ ${lists} }`);
  expect(answer.json().errors[0].extensions.code).toBe('TIMEOUT');
  const left = () => Object.values(lanes).map(({ running, waiting }) => running + waiting);
  await expect.poll(left).toEqual([0, 0, 0]);
});

test('a task that has ended begins none', () => {
  const lane = new Lane({ slots: 1 });
  lane.enter({ sender: 'a' });
  expect(() => lane.enter({ sender: 'b' }, AbortSignal.abort(new Error('over')))).toThrow('over');
  expect(lane.waiting).toBe(0);
});

test('a task that has ended keeps the connection of a statement that ends by itself', async () => {
  const gateway = await openWithSlowTag({ DATABASE_POOL_MAX: '1' });
  const { pool } = gateway.database;
  const read = async () => (await pool.query('SELECT pg_backend_pid() AS pid')).rows[0].pid;
  const pid = await read();
  const leaving = new AbortController();
  // On a busy machine, it may take longer than a connection that is to be cut has.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const task = new SharedTask(10, () => pool.query('SELECT pg_sleep(0.01)'), 'a');
  pool.once('acquire', () => setImmediate(() => leaving.abort()));
  await expect(task.wait(leaving)).rejects.toThrow('stopped');
  expect(await read()).toBe(pid);
  vi.advanceTimersByTime(1_000);
  expect(await read()).toBe(pid);
});

test('a listener that fails at the end of a task changes no result, and the others hear', async () => {
  const uncaught = takeUncaught();
  const heard: string[] = [];
  const listen = async ({ signal }: TaskScope) => {
    signal.addEventListener('abort', () => {
      throw new Error('deaf');
    });
    signal.addEventListener('abort', () => heard.push('other'));
    return 'result';
  };
  const task = new SharedTask(1000, listen, 'a');
  expect(await task.wait(new AbortController())).toBe('result');
  expect(heard).toEqual(['other']);
  expect(uncaught).toEqual([new Error('deaf')]);
});

/** Where each count of a list takes a while. */
async function openSlow(max: string): Promise<TestGateway> {
  const gateway = await openForTest('PostgreSQL', rows, {
    DATABASE_POOL_MAX: max,
    CACHE_MAX_SIZE: '0',
  });
  await gateway.database.pool.query(`
    ALTER FUNCTION count_outfits(boolean) RENAME TO quick_count_outfits;
    CREATE FUNCTION count_outfits(with_private boolean) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
    BEGIN PERFORM pg_sleep(0.03); RETURN quick_count_outfits(with_private); END $$`);
  return gateway;
}
const lists = times(45, (index) => `a${index}: outfits(page: ${1 + (index % 3)}) { count }`);

test('a document with many lists waits for a connection in turn with others, and writes no warning', async () => {
  const gateway = await openSlow('1');
  const warnings = keepWarnings();
  const order: string[] = [];
  const long = ask(gateway, lists).then(() => order.push('45 lists'));
  await expect.poll(() => gateway.database.pool.lanes['all']?.waiting).toBeGreaterThan(40);
  const short = ask(gateway, '{ outfits { count } }').then(() => order.push('one list'));
  await Promise.all([long, short]);
  expect(order).toEqual(['one list', '45 lists']);
  expect(warnings).toEqual([]);
});

test('a document with many lists has at most three statements under way', async () => {
  const gateway = await openSlow('10');
  const answer = ask(gateway, lists);
  let most = 0;
  const watching = setInterval(() => {
    most = Math.max(most, gateway.database.pool.lanes['all']?.running ?? 0);
  }, 2);
  expect((await answer).statusCode).toBe(200);
  clearInterval(watching);
  expect(most).toBe(3);
});

test.each([
  ['a deadlock', '40P01'],
  ['a transaction that cannot be serialized', '40001'],
])('a write that %s has ended is sent again, up to three times', async (_what, code) => {
  const gateway = await openForTest('PostgreSQL', rows, { AUTH_JWT_SECRET: secret });
  await gateway.database.pool.query(`
    CREATE SEQUENCE attempts;
    CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF nextval('attempts') IN (1, 3, 4, 5, 6) THEN RAISE EXCEPTION 'lost' USING ERRCODE = '${code}'; END IF;
      RETURN NEW;
    END $$;
    CREATE TRIGGER lose BEFORE INSERT ON outfit_likes FOR EACH ROW EXECUTE FUNCTION lose()`);
  const viewer = await signIn(1);
  const statuses: number[] = [];
  for (const id of [1, 2, 2]) {
    statuses.push((await ask(gateway, like(id), viewer)).statusCode);
  }
  expect(statuses).toEqual([200, 503, 200]);
});

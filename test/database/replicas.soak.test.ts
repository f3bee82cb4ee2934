// Two gateways read from two standbys while others write, and servers stop, freeze, lag and change places.
import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { baseOf, metricsOf, runServer } from '../support/cli/process.ts';
import { connectTo } from '../support/databases/connections.ts';
import { startDemoPostgres, throughPort } from '../support/databases/demo-postgres.ts';
import { send } from '../support/faults/load.ts';
import { openNetwork } from '../support/faults/network.ts';
import { amount } from '../support/lane.ts';

const leastReads = amount(0, 1_200);
const ids = [101, 102, 103];
/** Milliseconds in which a standby that can be read from is, on a busy machine, too. */
const timeout = 60_000;

/** Likes of an outfit: the highest number that a writer has begun to write, and that it was told of. */
interface Likes {
  begun: number;
  acknowledged: number;
}

const tracked = new Map<number, Likes>(ids.map((id) => [id, { begun: 1e6, acknowledged: 1e6 }]));
const wrong: unknown[] = [];
/** Those that were answered: a gateway refuses many in a moment while it finds the new primary. */
let reads = 0;
/** So many reads, and longer if need be: until both standbys have been read from as they should. */
let isOver = false;
/** While the primary changes, and until the gateways have found the new one. */
let isFailingOver = false;
/** Reads until the last one that was refused in that time. */
let readsUntilRefused = 0;

/** Every outfit in an answer, wherever it is. */
function* findOutfits(value: unknown): Generator<{ id: number; likes: number }> {
  if (typeof value !== 'object' || value === null) return;
  if ('id' in value && 'likes' in value) yield value as { id: number; likes: number };
  for (const part of Object.values(value)) yield* findOutfits(part);
}

const questions: ((turn: number) => string)[] = [
  () => '{ outfits(ordering: LIKE_COUNT_DESC) { count results { id: databaseId likes } } }',
  (turn) => `{ outfit(databaseId: ${ids[turn % 3]}) { id: databaseId likes } }`,
  (turn) => `{ outfit(databaseId: ${ids[turn % 3]}) { a${turn}: title id: databaseId likes } }`,
  (turn) =>
    `{ outfitConnection(first: ${3 + (turn % 20)}, ordering: LIKE_COUNT_DESC) { edges { node { id: databaseId likes } } } }`,
  (turn) =>
    `{ outfits(ordering: LIKE_COUNT_DESC) { results { id: databaseId likes user { username outfits(page: 1) { count b${turn}: nextPage } } } } }`,
];

const agent = new Agent({ keepAlive: true });

/** Reads, and notes what is older than an acknowledged write, or was never written. */
async function readOnce(base: string, turn: number): Promise<void> {
  const floors = new Map([...tracked].map(([id, { acknowledged }]) => [id, acknowledged]));
  const wasFailingOver = isFailingOver;
  const question = questions[turn % questions.length]?.(turn) ?? '';
  const { status, body, milliseconds } = await send(base, question, undefined, agent);
  if (status === 503 && (wasFailingOver || isFailingOver)) {
    readsUntilRefused = reads;
    return;
  }
  reads++;
  const found = status === 200 ? [...findOutfits(JSON.parse(body))] : [];
  const known = found.filter(({ id }) => tracked.has(id));
  for (const { id, likes } of known) {
    const floor = floors.get(id) ?? 0;
    const begun = tracked.get(id)?.begun ?? 0;
    if (likes < floor || likes > begun) wrong.push({ id, likes, floor, begun });
  }
  if (status !== 200 || known.length === 0 || milliseconds > 5_000) {
    wrong.push({ question, status, milliseconds, body: body.slice(0, 300) });
  }
}

/** Runs statements one after the other, on another connection when one is lost. Says whether each has succeeded. */
function openWriter(url: string) {
  let client: pg.Client | undefined;
  onTestFinished(() => client?.end());
  return async (statement: string): Promise<boolean> => {
    try {
      client ??= await connectTo(url);
      await client.query(statement);
      return true;
    } catch {
      client?.end().catch(() => {});
      client = undefined;
      await sleep(50);
      return false;
    }
  };
}

/** Writes more and more likes, as fast as others read: of no write that failed it is known whether it did. */
async function writeLikes(url: string, id: number): Promise<void> {
  const write = openWriter(url);
  const likes = tracked.get(id);
  while (likes && !isOver) {
    const value = ++likes.begun;
    if (await write(`UPDATE outfit_like_counts SET likes = ${value} WHERE id = ${id}`)) {
      likes.acknowledged = value;
    }
    const next = reads + 20 + Math.random() * 80;
    while (reads < next && !isOver) await sleep(1);
  }
}

/** Until so much of all that is at least read. */
const untilRead = async (share: number) => {
  while (reads < leastReads * share) await sleep(5);
};

/** A standby may cancel this, too. */
async function execute(url: string, statement: string): Promise<void> {
  const write = openWriter(url);
  while (!(await write(statement)));
}

test(`none of ${leastReads} reads is stale, lost or refused but at the failover`, async () => {
  // A standby does not wait with what it replays: it cancels reads that are in its way.
  const primary = await startDemoPostgres(['-c', 'max_standby_streaming_delay=0']);
  const network = await openNetwork(primary.port);
  const DATABASE_URL = throughPort(primary.url, network.port);
  await execute(DATABASE_URL, `UPDATE outfit_like_counts SET likes = 1000000 WHERE id IN (${ids})`);
  const first = await primary.addStandby(network.port);
  const second = await primary.addStandby(network.port);
  onTestFinished(async () => {
    agent.destroy();
    network.close();
    await Promise.all([primary, first, second].map((server) => server.close()));
  });
  const gateways = await Promise.all(
    [1, 2].map(async () => {
      const DATABASE_READ_URLS = `${first.url},${second.url}`;
      const settings = { RATE_LIMIT: '100000000/hour', METRICS_PORT: '0' };
      const server = runServer({ DATABASE_URL, DATABASE_READ_URLS, ...settings });
      const base = await baseOf(server);
      const metrics = await metricsOf(server);
      /** How often the first and the second standby were read from. */
      const standbyReads = async () => {
        const series = (await metrics()).matchAll(/^gateway_standby_reads_total\{.*\} (\d+)$/gm);
        return [...series].map(([, count]) => Number(count));
      };
      return { base, standbyReads };
    }),
  );
  const bases = gateways.map(({ base }) => base);
  /** Until each gateway has read so much more from those standbys. */
  const untilReadFrom = async (standbys: readonly number[]) => {
    for (const { standbyReads } of gateways) {
      const before = await standbyReads();
      const least = async () => {
        const now = await standbyReads();
        return Math.min(...standbys.map((index) => (now[index] ?? 0) - (before[index] ?? 0)));
      };
      await expect.poll(least, { timeout }).toBeGreaterThan(leastReads / 200);
    }
  };

  const readers = Array.from({ length: 16 }, async (_, reader) => {
    for (let turn = reader; !isOver; turn += 7) await readOnce(bases[reader % 2] ?? '', turn);
  });
  const writers = ids.map((id) => writeLikes(DATABASE_URL, id));
  const cleaner = (async () => {
    const write = openWriter(DATABASE_URL);
    for (; !isOver; await sleep(100)) await write('VACUUM outfits');
  })();

  for (const [share, change] of [
    [0.08, () => first.stop()],
    [0.14, () => first.start()],
    [0.2, () => second.freeze()],
    [0.26, () => second.thaw()],
    [0.32, () => second.crash()],
    [0.36, () => second.start()],
    [0.42, () => execute(first.url, 'SELECT pg_wal_replay_pause()')],
    [0.48, () => execute(first.url, 'SELECT pg_wal_replay_resume()')],
  ] as const) {
    await untilRead(share);
    await change();
  }
  // Both are back: each gateway reads from each.
  await untilReadFrom([0, 1]);
  // Nothing that was acknowledged is lost: both have all of it when it has stopped.
  isFailingOver = true;
  await primary.stop();
  await execute(first.url, 'SELECT pg_promote()');
  network.redirect(first.port);
  for (const base of bases) {
    const statusOf = async () => (await send(base, questions[0]?.(0) ?? '')).status;
    await expect.poll(statusOf, { timeout: 20_000 }).toBe(200);
  }
  await expect.poll(() => reads - readsUntilRefused, { timeout }).toBeGreaterThan(100);
  isFailingOver = false;
  const before = await Promise.all(gateways.map(({ standbyReads }) => standbyReads()));
  await untilRead(0.75);
  second.freeze();
  await untilRead(0.8);
  second.thaw();
  await untilRead(1);
  // The one that is left follows the new primary, and is read from again.
  await untilReadFrom([1]);
  isOver = true;
  await Promise.all([...readers, ...writers, cleaner]);

  expect(wrong.slice(0, 10)).toEqual([]);
  // Lost would be what was acknowledged and is not there.
  for (const base of bases) await Promise.all([0, 1, 2].map((turn) => readOnce(base, turn + 5)));
  expect(wrong).toEqual([]);
  // A primary is no standby.
  const after = await Promise.all(gateways.map(({ standbyReads }) => standbyReads()));
  expect(after.map(([ofPrimary]) => ofPrimary)).toEqual(before.map(([ofPrimary]) => ofPrimary));
});

// Two gateways read from two standbys while others write, and servers stop, freeze, lag and change places.
import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { baseOf, dist, run, runServer } from '../support/cli/process.ts';
import { startEmbeddedPostgres } from '../support/databases/embedded-postgres.js';
import { send } from '../support/faults/load.ts';
import { openNetwork } from '../support/faults/network.ts';
import { outfitId } from '../support/gateway.ts';
import { secret, signIn } from '../support/http/tokens.ts';
import { amount } from '../support/lane.ts';

const leastReads = amount(0, 2_500);
const ids = [101, 102, 103];
const liked = 104;
/** Milliseconds in which a standby that can be read from is, on a busy machine, too. */
const pollTimeout = 60_000;

/** Likes of an outfit: the highest number that a writer has begun to write, and that it was told of. */
interface Likes {
  begun: number;
  acknowledged: number;
}

const tracked = new Map<number, Likes>(ids.map((id) => [id, { begun: 1e6, acknowledged: 1e6 }]));
const wrong: unknown[] = [];
let reads = 0;
let refused = 0;
let ownReads = 0;
/** So many reads, and longer if need be: until both standbys have been read from as they should. */
let isOver = false;
/** While the primary changes, and until a gateway has found the new one. */
let isFailingOver = false;

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
  reads++;
  if (status === 503 && (wasFailingOver || isFailingOver)) {
    refused++;
    return;
  }
  let seen = 0;
  for (const { id, likes } of status === 200 ? findOutfits(JSON.parse(body)) : []) {
    const known = tracked.get(id);
    if (!known) continue;
    seen++;
    const floor = floors.get(id) ?? 0;
    if (likes < floor || likes > known.begun) wrong.push({ id, likes, floor, ...known });
  }
  if (status !== 200 || seen === 0 || milliseconds > 5_000) {
    wrong.push({ question, status, milliseconds, body: body.slice(0, 300) });
  }
}

/** Runs statements one after the other, on another connection when one is lost. */
function openWriter(url: string) {
  let client: pg.Client | undefined;
  return {
    async write(statement: string): Promise<boolean> {
      try {
        if (!client) {
          client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 });
          client.on('error', () => {});
          await client.connect();
        }
        await client.query(statement);
        return true;
      } catch {
        client?.end().catch(() => {});
        client = undefined;
        await sleep(50);
        return false;
      }
    },
    close: () => client?.end(),
  };
}

/** Writes more and more likes, as fast as others read: of no write that failed it is known whether it did. */
async function writeLikes(url: string, id: number): Promise<void> {
  const writer = openWriter(url);
  const likes = tracked.get(id);
  while (likes && !isOver) {
    const value = ++likes.begun;
    if (await writer.write(`UPDATE outfit_like_counts SET likes = ${value} WHERE id = ${id}`)) {
      likes.acknowledged = value;
    }
    const next = reads + 20 + Math.random() * 80;
    while (reads < next && !isOver) await sleep(1);
  }
  await writer.close();
}

/** Likes through one gateway, and reads that through the other. */
async function likeAndRead(bases: readonly string[]): Promise<void> {
  const headers = await signIn(1);
  const [near = '', far = ''] = bases;
  for (let turn = 0; !isOver; turn++) {
    const viewerHasLiked = turn % 2 === 0;
    const mutation = `mutation { ${viewerHasLiked ? 'likeOutfit' : 'unlikeOutfit'}(id: "${outfitId(liked)}") { outfit { likes } } }`;
    const written = await send(near, mutation, undefined, agent, headers);
    const own = `{ outfit(databaseId: ${liked}) { viewerHasLiked } }`;
    const read = await send(far, own, undefined, agent, headers);
    if (written.status === 200 && written.body.includes('"likes"') && read.status === 200) {
      ownReads++;
      if (JSON.parse(read.body).data?.outfit?.viewerHasLiked !== viewerHasLiked) wrong.push(read);
    } else if (!isFailingOver) {
      await sleep(500);
      wrong.push({ written, read });
    }
    await sleep(20);
  }
}

/** Until so much of all that is at least read. */
const untilRead = async (share: number) => {
  while (reads < leastReads * share) await sleep(5);
};

async function readMetrics(server: ReturnType<typeof runServer>): Promise<string[]> {
  const [, address = ''] = await server.until(/Metrics: +(http:[^\s"]+)/);
  const text = await (await fetch(address)).text();
  return text.split('\n').filter((line) => /^gateway_(standby|primary)_/.test(line));
}

const standbyReads = (metrics: readonly string[]) =>
  metrics
    .filter((line) => line.startsWith('gateway_standby_reads_total'))
    .map((line) => Number(line.split(' ')[1]));

/** A standby may cancel this, too. */
async function execute(url: string, statement: string): Promise<void> {
  const writer = openWriter(url);
  while (!(await writer.write(statement)));
  await writer.close();
}

test(`none of ${leastReads} reads is stale, lost or refused but at the failover`, async () => {
  // A standby does not wait with what it replays: it cancels reads that are in its way.
  const primary = await startEmbeddedPostgres(['-c', 'max_standby_streaming_delay=0']);
  const network = await openNetwork(primary.port);
  const route = new URL(primary.url);
  route.port = String(network.port);
  expect(await run([`${dist}commands/cli.js`, 'migrate'], { DATABASE_URL: route.href }).ended).toBe(
    0,
  );
  const seeding = runServer({ DATABASE_URL: route.href, SEED: 'demo' });
  await baseOf(seeding);
  seeding.child.kill('SIGKILL');
  await seeding.ended;
  await execute(route.href, `UPDATE outfit_like_counts SET likes = 1000000 WHERE id IN (${ids})`);
  const first = await primary.addStandby(network.port);
  const second = await primary.addStandby(network.port);
  onTestFinished(async () => {
    agent.destroy();
    network.close();
    await Promise.all([primary, first, second].map((server) => server.close()));
  });
  const servers = [1, 2].map(() =>
    runServer({
      DATABASE_URL: route.href,
      DATABASE_READ_URLS: `${first.url},${second.url}`,
      AUTH_JWT_SECRET: secret,
      METRICS_PORT: '0',
      RATE_LIMIT: '100000000/hour',
    }),
  );
  const bases = await Promise.all(servers.map(baseOf));

  const readers = Array.from({ length: 16 }, async (_, reader) => {
    for (let turn = reader; !isOver; turn += 7) {
      await readOnce(bases[reader % 2] ?? '', turn);
    }
  });
  const writers = ids.map((id) => writeLikes(route.href, id));
  const cleaner = (async () => {
    const writer = openWriter(route.href);
    while (!isOver) {
      await writer.write('VACUUM outfits');
      await sleep(100);
    }
    await writer.close();
  })();
  const viewer = likeAndRead(bases);

  await untilRead(0.08);
  await first.stop();
  await untilRead(0.14);
  await first.start();
  await untilRead(0.2);
  second.freeze();
  await untilRead(0.26);
  second.thaw();
  await untilRead(0.32);
  await second.crash();
  await untilRead(0.36);
  await second.start();
  await untilRead(0.42);
  await execute(first.url, 'SELECT pg_wal_replay_pause()');
  await untilRead(0.48);
  await execute(first.url, 'SELECT pg_wal_replay_resume()');
  await untilRead(0.55);
  // Or else it proves nothing: each gateway reads from both.
  for (const server of servers) {
    const least = async () => Math.min(...standbyReads(await readMetrics(server)));
    await expect.poll(least, { timeout: pollTimeout }).toBeGreaterThan(leastReads / 200);
  }
  // Nothing that was acknowledged is lost: both have all of it when it has stopped.
  isFailingOver = true;
  await primary.stop();
  await execute(first.url, 'SELECT pg_promote()');
  network.redirect(first.port);
  for (const base of bases) {
    const statusOf = async () => (await send(base, questions[0]?.(0) ?? '')).status;
    await expect.poll(statusOf, { timeout: 20_000 }).toBe(200);
  }
  await sleep(500);
  isFailingOver = false;
  const before = await Promise.all(servers.map(readMetrics));
  await untilRead(0.75);
  second.freeze();
  await untilRead(0.8);
  second.thaw();
  await untilRead(1);
  // The one that is left follows the new primary, and is read from again.
  for (const [index, server] of servers.entries()) {
    const [, remainingBefore = 0] = standbyReads(before[index] ?? []);
    const remaining = async () => standbyReads(await readMetrics(server))[1];
    const enough = remainingBefore + leastReads / 200;
    await expect.poll(remaining, { timeout: pollTimeout }).toBeGreaterThan(enough);
  }
  isOver = true;
  await Promise.all([...readers, ...writers, cleaner, viewer]);

  const after = await Promise.all(servers.map(readMetrics));
  const writes = [...tracked.values()].map(({ acknowledged }) => acknowledged - 1e6);
  if (process.env['SHOW_FIGURES']) {
    console.info({ reads, refused, ownReads, writes, wrong: wrong.length, before, after });
  }
  expect(wrong.slice(0, 10)).toEqual([]);
  // Lost would be what was acknowledged and is not there.
  for (const base of bases) await Promise.all([0, 1, 2].map((turn) => readOnce(base, turn + 5)));
  expect(wrong).toEqual([]);
  // A primary is no standby.
  for (const [index, metrics] of after.entries()) {
    expect(standbyReads(metrics)[0]).toBe(standbyReads(before[index] ?? [])[0]);
  }
  expect(refused).toBeLessThan(leastReads / 5);
  expect(ownReads).toBeGreaterThan(10);
});

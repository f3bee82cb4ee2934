// Answers from memory while all kinds of writes go past the gateway: none is older than its moment allows, and
// none is another than one made anew.
import { setTimeout } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { buildApp } from '../../src/app.ts';
import { startEmbeddedPostgres } from '../support/databases/embedded-postgres.js';
import { type DatabaseKind, openGateway } from '../support/gateway.ts';
import { createRandom } from '../support/graphql/random-documents.ts';
import { amount } from '../support/lane.ts';
import { randomWrite, send, type Write } from '../support/models/random-writes.ts';

const rows = [...generateOutfits({ outfits: 45, users: 6 })].map((row, index) => ({
  ...row,
  id: index + 1,
  likes: index,
  userId: 1 + (index % 6),
  user: { ...row.user, id: 1 + (index % 6), username: `name${index % 6}` },
  private: index % 4 === 0,
}));

const list = '{ results { id: databaseId likes title private user { username } } }';
const page = `{ count page pageCount results { id: databaseId likes title user { id: databaseId username } } }`;
const edges = `{ edges { cursor node { id: databaseId likes title user { username } } } pageInfo { hasNextPage hasPreviousPage } }`;
/** Each is read by one statement, so from one snapshot. */
const questions = [
  ...['', '?page=2', '?page=last', '?ordering=like_count', '?ordering=-like_count&page=2'],
  ...['?ordering=id', '?ordering=-modified', '?ordering=-id&page=3', '?ordering=-created&page=5'],
].map((parameters) => `/api/outfits/${parameters}`);
const documents = [
  ...[1, 7, 30, 77, 90].map(
    (id) => `{ outfit(databaseId: ${id}) { likes title user { username } } }`,
  ),
  '{ user(databaseId: 1) { username } }',
  '{ user(username: "name1") { id: databaseId } }',
  '{ user(username: "name3") { id: databaseId } }',
  '{ outfitConnection(first: 0) { totalCount } }'.replace('first: 0', 'first: 1'),
  `{ outfitConnection(first: 4) ${edges} }`,
  `{ outfitConnection(last: 3, ordering: LIKE_COUNT_DESC) ${edges} }`,
  `{ outfitConnection(first: 3, ordering: LIKE_COUNT_ASC) ${edges} }`,
  `{ outfits(filter: { likesFrom: 20 }, ordering: LIKE_COUNT_DESC, page: 2) ${page} }`,
  `{ outfits(filter: { likesFrom: 10, likesBelow: 30 }) ${page} }`,
  `{ outfits(filter: { userIds: ["VXNlcjoy"] }) ${page} }`,
  `{ outfits(filter: { private: true }, last: true) ${page} }`,
  `{ outfits(filter: { search: "linen" }) ${list} }`,
  `{ outfits(filter: { quality: [2, 3] }, ordering: ID_ASC, page: 2) ${page} }`,
  `{ outfitConnection(last: 2, filter: { likesBelow: 25 }, ordering: LIKE_COUNT_ASC) ${edges} }`,
];
/** Read by several statements. */
const several = [
  `{ outfitConnection(first: 3, after: "aWQ6MjA6MjA", ordering: ID_ASC) ${edges} }`,
  `{ outfitConnection(last: 3, before: "bGlrZXM6MjU6MjU", ordering: LIKE_COUNT_ASC) { totalCount edges { node { id } } pageInfo { hasNextPage hasPreviousPage } } }`,
  `{ outfitConnection(first: 3, filter: { userIds: ["VXNlcjoy", "VXNlcjox"] }) { totalCount edges { node { id } } } }`,
  `{ outfits { results { user { outfits(ordering: LIKE_COUNT_DESC) { count results { id likes } } } } } }`,
  `{ outfits(ordering: LIKE_COUNT_ASC) { results { user { username outfitConnection(first: 2, filter: { quality: [2, 3, 4] }) { totalCount edges { node { title } } } } } } }`,
  '{ nodes(ids: ["VXNlcjoy", "T3V0Zml0Ojc=", "T3V0Zml0Ojg4"]) { ... on Outfit { title } ... on User { username } } }',
];
const urls = [
  ...questions,
  ...documents.map((query) => `/graphql?${new URLSearchParams({ query })}`),
];
const allUrls = [...urls, ...several.map((query) => `/graphql?${new URLSearchParams({ query })}`)];

/** Where two answers begin to differ. */
function differenceOf(body: string, other: string) {
  let start = 0;
  while (body[start] === other[start] && start < body.length) start++;
  return [body, other].map((text) => text.slice(Math.max(0, start - 60), start + 60));
}

let postgres: Awaited<ReturnType<typeof startEmbeddedPostgres>>;
beforeAll(async () => {
  postgres = await startEmbeddedPostgres(['-c', 'max_prepared_transactions=5']);
});
afterAll(() => postgres.close());

/** A gateway, another one on the same database that keeps nothing, and a way to write past both. */
async function open(kind: DatabaseKind, mode: string) {
  const environment = { PAGE_SIZE: '5', PRIVATE_OUTFITS: mode };
  const gateway = await openGateway(kind, rows, environment, { server: postgres.url });
  onTestFinished(() => gateway.close());
  const { database, config } = gateway;
  const fresh = await buildApp({ ...config, cacheMaxSize: 0 }, database);
  onTestFinished(() => fresh.close());
  const seed = Math.floor(Math.random() * 2 ** 31);
  const { pool } = database;
  const makeWriter = async () => {
    const client = new pg.Client(pool.options.connectionString);
    if (kind === 'PostgreSQL') {
      await client.connect();
      onTestFinished(() => client.end());
    }
    return async (write: Write) => {
      // The embedded database has one session: nothing else may come between.
      const used = kind === 'embedded' ? await pool.connect() : client;
      try {
        await send(used, write, () => setTimeout(pick(3)));
      } catch (error) {
        await used.query('ROLLBACK');
        throw error;
      } finally {
        if (used !== client) (used as pg.PoolClient).release();
      }
    };
  };
  const random = createRandom(seed);
  const pick = (end: number) => Math.floor(random() * end);
  const nextWrite = (): Write => {
    const write = randomWrite(pick);
    return write.needsServer && kind === 'embedded' ? nextWrite() : write;
  };
  const ask = async (url: string) => (await gateway.get(url)).body;
  const askAnew = async (url: string) =>
    (await fresh.inject({ method: 'GET', url, headers: { host: 'shop.test' } })).body;
  return { gateway, ask, askAnew, nextWrite, pick, seed, makeWriter, pool };
}

const meetings = new Set(['40001', '40P01', '23505', '42P07', '42P01', '42710', '55P02']);

/** Of all answers, each is kept for as long as it may be. */
const amounts = [
  ['PostgreSQL', 'listed', amount(0, 1_500), amount(0, 1_250)],
  ['PostgreSQL', 'owner', amount(0, 1_000), amount(0, 1_000)],
  ['embedded', 'listed', amount(0, 500), amount(0, 500)],
] as const;

describe.each(amounts)('on %s, private outfits %s', (kind, mode, leastReads, leastCompared) => {
  test(`none of ${leastReads} reads is stale or newer than its snapshot`, async () => {
    const { ask, askAnew, nextWrite, pick, seed, makeWriter } = await open(kind, mode);
    const writer = await makeWriter();
    /** What each question is answered with at each moment at which nothing is being written. */
    const states: string[][] = [];
    const note = async () => {
      states.push(await Promise.all(urls.map(askAnew)));
    };
    await note();
    let begun = 0;
    let reads = 0;
    const wrong: unknown[] = [];
    const readings: { url: number; from: number; to: number; body: string }[] = [];
    const judge = () => {
      for (const { url, from, to, body } of readings.splice(0)) {
        const allowed = states.slice(from, to + 1).map((state) => state[url]);
        if (!allowed.includes(body))
          wrong.push({
            url: urls[url],
            from,
            to,
            body: body.length,
            allowed: allowed.map((one) => differenceOf(body, one ?? '')),
          });
      }
    };
    const names = new Map<string, number>();
    // Few writes prove nothing, nor do few reads.
    const isEnough = () => reads >= leastReads && begun > leastReads / 200;
    const reader = async () => {
      while (!isEnough()) {
        reads++;
        const url = pick(urls.length);
        const from = states.length - 1;
        const body = await ask(urls[url] as string);
        readings.push({ url, from, to: begun, body });
        if (reads % 20 === 0) await setTimeout(1);
      }
    };
    const write = async () => {
      while (!isEnough()) {
        begun++;
        const next = nextWrite();
        names.set(next.name, (names.get(next.name) ?? 0) + 1);
        await writer(next);
        await note();
        judge();
        const until = reads + pick(100);
        while (reads < until && !isEnough()) await setTimeout(1);
      }
    };
    await Promise.all([...Array.from({ length: 16 }, reader), write()]);
    judge();
    if (process.env['SHOW_FIGURES']) console.info({ kind, mode, reads, begun, seed });
    expect({ seed, wrong: wrong.slice(0, 3) }).toEqual({ seed, wrong: [] });
  });

  test(`none of ${leastCompared} answers differs from one that is made anew`, async () => {
    const { gateway, ask, askAnew, nextWrite, pick, seed, makeWriter, pool } = await open(
      kind,
      mode,
    );
    const writers = [await makeWriter(), await makeWriter()];
    let compared = 0;
    let fromMemory = 0;
    const wrong: unknown[] = [];
    const query = pool.query.bind(pool) as (...args: unknown[]) => Promise<unknown>;
    let statements = 0;
    pool.query = ((...args: unknown[]) => {
      const [{ text }] = args as [{ text?: string }];
      if (!text?.includes('pg_current_snapshot')) statements++;
      return query(...args);
    }) as typeof pool.query;
    while (compared < leastCompared && wrong.length < 10) {
      const written: string[] = [];
      // Some are read while something is written: of what they saw, too much must not be kept.
      await Promise.all([
        ...writers.slice(0, kind === 'embedded' ? 1 : 2).map(async (writer) => {
          const write = nextWrite();
          written.push(write.name);
          await writer(write).catch((error: pg.DatabaseError) => {
            // Two writers may meet.
            if (!meetings.has(error.code ?? '')) throw error;
          });
        }),
        ...Array.from({ length: 12 }, async () => {
          await setTimeout(pick(6));
          await ask(allUrls[pick(allUrls.length)] as string);
        }),
      ]);
      for (const url of allUrls) {
        statements = 0;
        const body = await ask(url);
        if (statements === 0) fromMemory++;
        const anew = await askAnew(url);
        compared++;
        if (body !== anew) wrong.push({ url, written, difference: differenceOf(body, anew) });
      }
    }
    pool.query = query as unknown as typeof pool.query;
    if (process.env['SHOW_FIGURES']) console.info({ kind, mode, compared, fromMemory, seed });
    expect({ seed, wrong: wrong.slice(0, 3) }).toEqual({ seed, wrong: [] });
    expect(gateway).toBeDefined();
    // Or else it proves nothing.
    expect(fromMemory).toBeGreaterThan(leastCompared / 5);
  });
});

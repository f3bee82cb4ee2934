// Answers from memory while all kinds of writes go past the gateway: none is another than one made anew.
// That none is stale while others write, at any moment, is in answer-cache.test.ts.
import { setTimeout } from 'node:timers/promises';
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { buildApp } from '../../src/app.ts';
import { connectForTest, databaseUrlOf } from '../support/databases/connections.ts';
import { startEmbeddedPostgres } from '../support/databases/embedded-postgres.js';
import { statementsOf } from '../support/databases/statements.ts';
import { type DatabaseKind, openGateway } from '../support/gateway.ts';
import { amount } from '../support/lane.ts';
import { Dice } from '../support/models/dice.ts';
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
  '{ outfitConnection(first: 1) { totalCount } }',
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
const urlOf = (query: string) => `/graphql?${new URLSearchParams({ query })}`;
const urls = [...questions, ...[...documents, ...several].map(urlOf)];

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
    const client = kind === 'PostgreSQL' ? await connectForTest(databaseUrlOf(pool)) : undefined;
    return async (write: Write) => {
      // The embedded database has one session: nothing else may come between.
      const used = client ?? (await pool.connect());
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
  const dice = new Dice(seed);
  const pick = (end: number) => dice.below(end);
  const nextWrite = (): Write => {
    const write = randomWrite(pick);
    return write.needsServer && kind === 'embedded' ? nextWrite() : write;
  };
  const ask = async (url: string) => (await gateway.get(url)).body;
  const askAnew = async (url: string) =>
    (await fresh.inject({ method: 'GET', url, headers: { host: 'shop.test' } })).body;
  return { gateway, ask, askAnew, nextWrite, pick, seed, makeWriter };
}

const meetings = new Set(['40001', '40P01', '23505', '42P07', '42P01', '42710', '55P02']);

const amounts = [
  ['PostgreSQL', 'owner', amount(0, 600)],
  ['embedded', 'listed', amount(0, 250)],
] as const;

describe.each(amounts)('on %s, private outfits %s', (kind, mode, leastCompared) => {
  test(`none of ${leastCompared} answers differs from one that is made again`, async () => {
    const { gateway, ask, askAnew, nextWrite, pick, seed, makeWriter } = await open(kind, mode);
    const writers = [await makeWriter(), await makeWriter()];
    let compared = 0;
    let fromMemory = 0;
    const wrong: unknown[] = [];
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
          await ask(urls[pick(urls.length)] as string);
        }),
      ]);
      for (const url of urls) {
        let body = '';
        const read = await statementsOf(gateway, async () => {
          body = await ask(url);
        });
        if (read.length === 0) fromMemory++;
        const anew = await askAnew(url);
        compared++;
        if (body !== anew) wrong.push({ url, written, difference: differenceOf(body, anew) });
      }
    }
    if (process.env['SHOW_FIGURES']) console.info({ kind, mode, compared, fromMemory, seed });
    expect({ seed, wrong: wrong.slice(0, 3) }).toEqual({ seed, wrong: [] });
    // Or else it proves nothing.
    expect(fromMemory).toBeGreaterThan(leastCompared / 5);
  });
});

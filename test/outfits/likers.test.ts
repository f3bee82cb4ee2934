// Who sees who likes what: Outfit.likers and User.likedOutfits for every viewer and setting, against a plain model.
import fc from 'fast-check';
import type { FastifyInstance } from 'fastify';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { buildApp } from '../../src/app.ts';
import { readConfig } from '../../src/config/config.ts';
import { formatCursor } from '../../src/outfits/ordering.ts';
import { useGateway } from '../support/gateway.ts';
import { baseOfApp, openStream } from '../support/http/event-stream.ts';
import { postGraphql } from '../support/http/graphql.ts';
import { secret, signIn } from '../support/http/tokens.ts';

const users = [1, 2, 3, 4, 5];
// Of three users; every other one is private.
const rows = [...generateOutfits({ outfits: 12, users: 3 })].map((row, index) => ({
  ...row,
  id: 10 + 3 * index,
  private: index % 2 === 0,
}));

const settings = ['private', 'public'].flatMap((likers) =>
  ['listed', 'owner'].map((outfits) => ({ likers, outfits })),
);
type Setting = (typeof settings)[number];

/** 1 owns outfits, 2 and the staff 3 own others, 5 owns none, 77 is no user. */
const viewers = [undefined, 1, 2, 3, 5, 77];
type Viewer = (typeof viewers)[number];

interface Like {
  readonly outfit: number;
  readonly user: number;
}

/** The rules, as a person would say them. */
function seesOutfit({ outfits }: Setting, viewer: Viewer, id: number): boolean {
  const row = rows.find((one) => one.id === id) ?? expect.fail('no outfit');
  return outfits === 'listed' || !row.private || row.userId === viewer;
}
function seesLike(setting: Setting, viewer: Viewer, { outfit, user }: Like): boolean {
  const owner = rows.find(({ id }) => id === outfit)?.userId;
  const isMine = viewer !== undefined && (user === viewer || owner === viewer);
  return seesOutfit(setting, viewer, outfit) && (setting.likers === 'public' || isMine);
}

interface Range {
  readonly first?: number | null;
  readonly last?: number | null;
  /** Ids whose places the cursors mark, of items that are there or not. */
  readonly after?: number | null;
  readonly before?: number | null;
}

const cursorOf = (id: number) => formatCursor('id', { value: BigInt(id), id });

/** What a connection of these ids is. */
function connectionOf(ids: readonly number[], { first, last, after, before }: Range) {
  const sorted = ids.toSorted((a, b) => a - b);
  const all = sorted.filter((id) => id > (after ?? -1) && id < (before ?? 1000));
  const size = first ?? last ?? 3;
  const isForward = typeof first === 'number' || typeof last !== 'number';
  const slice = isForward ? all.slice(0, size) : all.slice(Math.max(all.length - size, 0));
  const kept = isForward && typeof last === 'number' ? slice.slice(-last || slice.length) : slice;
  const isBefore = sorted.some((id) => id <= (after ?? -1));
  const isAfter = sorted.some((id) => id >= (before ?? 1000));
  return {
    totalCount: ids.length,
    nodes: kept.map((databaseId) => ({ databaseId })),
    edges: kept.map((databaseId) => ({ cursor: cursorOf(databaseId), node: { databaseId } })),
    pageInfo: {
      hasNextPage: (isForward && all.length > size) || (typeof first !== 'number' && isAfter),
      hasPreviousPage: isForward ? isBefore || kept.length < slice.length : all.length > size,
      startCursor: kept[0] === undefined ? null : cursorOf(kept[0]),
      endCursor: kept.length === 0 ? null : cursorOf(kept.at(-1) ?? 0),
    },
  };
}

const range = 'first: $first, last: $last, after: $after, before: $before';
const connection = `totalCount nodes { databaseId } edges { cursor node { databaseId } }
  pageInfo { hasNextPage hasPreviousPage startCursor endCursor }`;
const everything = `query ($users: [ID!]!, $first: Int, $last: Int, $after: String, $before: String) {
  outfits(ordering: ID_ASC, pageSize: 20) { results { databaseId likers(${range}) { ${connection} } } }
  nodes(ids: $users) { ... on User { likedOutfits(ordering: ID_ASC, ${range}) { ${connection} } } }
}`;

const gateway = useGateway('PostgreSQL', rows);
const apps = new Map<Setting, FastifyInstance>();
const headers = new Map<Viewer, Record<string, string>>();
beforeAll(async () => {
  await gateway.database.pool.query(
    "INSERT INTO users (id, username) VALUES (4, 'four'), (5, 'five') ON CONFLICT DO NOTHING",
  );
  for (const setting of settings) {
    const config = readConfig({
      LIKERS: setting.likers,
      PRIVATE_OUTFITS: setting.outfits,
      AUTH_JWT_SECRET: secret,
      AUTH_STAFF_CLAIM: 'is_staff',
      PAGE_SIZE: '3',
    });
    apps.set(setting, await buildApp(config, gateway.database));
  }
  for (const viewer of viewers) {
    headers.set(viewer, await signIn(viewer, 3600, { is_staff: viewer === 3 }));
  }
});
afterAll(async () => {
  for (const app of apps.values()) await app.close();
});

const appFor = (setting: Setting) => apps.get(setting) ?? expect.fail('no app');

async function ask(setting: Setting, viewer: Viewer, query: string, variables: object) {
  const { body } = await postGraphql(appFor(setting), { query, variables }, headers.get(viewer));
  return body;
}

/** Behind the back of the gateways, and without a change of any other table. */
const store = (likes: readonly Like[]) =>
  gateway.database.pool.query(
    `WITH gone AS (DELETE FROM outfit_likes WHERE (outfit_id, user_id) NOT IN (SELECT * FROM unnest($1::int[], $2::int[])))
     INSERT INTO outfit_likes SELECT * FROM unnest($1::int[], $2::int[]) ON CONFLICT DO NOTHING`,
    [likes.map(({ outfit }) => outfit), likes.map(({ user }) => user)],
  );

const everyLike = rows.flatMap(({ id }) => users.map((user) => ({ outfit: id, user })));
const size = fc.option(fc.constantFrom(0, 1, 2, 5));
const place = fc.option(fc.constantFrom(...users, ...rows.map(({ id }) => id), 16 + 1));
const ranges = fc.record({ first: size, last: size, after: place, before: place });

test('likes are seen as the rules say, and what is hidden leaves no trace in any answer', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.subarray(everyLike),
      fc.constantFrom(...settings),
      fc.constantFrom(...viewers),
      ranges,
      async (likes, setting, viewer, range) => {
        const seen = likes.filter((like) => seesLike(setting, viewer, like));
        const variables = {
          ...range,
          after: range.after === null ? null : cursorOf(range.after),
          before: range.before === null ? null : cursorOf(range.before),
          users: users.map((id) => Buffer.from(`User:${id}`).toString('base64')),
        };
        await store(likes);
        const answer = await ask(setting, viewer, everything, variables);
        expect(JSON.parse(answer)).toEqual({
          data: {
            outfits: {
              results: rows
                .filter(({ id }) => seesOutfit(setting, viewer, id))
                .map(({ id }) => ({
                  databaseId: id,
                  likers: connectionOf(
                    seen.filter(({ outfit }) => outfit === id).map(({ user }) => user),
                    range,
                  ),
                })),
            },
            nodes: users.map((id) => ({
              likedOutfits: connectionOf(
                seen.filter(({ user }) => user === id).map(({ outfit }) => outfit),
                range,
              ),
            })),
          },
        });
        await store(seen);
        expect(await ask(setting, viewer, everything, variables)).toBe(answer);
      },
    ),
    { numRuns: 80 },
  );
});

test('likes have the moment in which each was given, but for imported ones', async () => {
  const setting = settings.find(({ likers }) => likers === 'public') ?? expect.fail();
  const outfit = rows[1]?.id ?? 0;
  await store([2, 3].map((user) => ({ outfit, user })));
  await gateway.database.pool.query(
    'UPDATE outfit_likes SET created = 1700000000000001 WHERE user_id = 2',
  );
  const query = `query ($id: Int!) {
    outfit(databaseId: $id) { likers { edges { likedAt node { databaseId } } } }
    nodes(ids: ["VXNlcjoy", "VXNlcjoz"]) { ... on User { likedOutfits { edges { likedAt } } } } }`;
  const likedAt = '2023-11-14T22:13:20.000001Z';
  const edges = [
    { likedAt, node: { databaseId: 2 } },
    { likedAt: null, node: { databaseId: 3 } },
  ];
  expect(JSON.parse(await ask(setting, undefined, query, { id: outfit }))).toEqual({
    data: {
      outfit: { likers: { edges } },
      nodes: [
        { likedOutfits: { edges: [{ likedAt }] } },
        { likedOutfits: { edges: [{ likedAt: null }] } },
      ],
    },
  });
});

test('likes wake the live answers of those who see them, and of nobody else', async () => {
  const [setting = expect.fail()] = settings;
  const outfit = rows.find(({ userId }) => userId === 1)?.id ?? 0;
  const base = await baseOfApp(appFor(setting));
  // One number: with the nodes, an answer may be of two moments, and another follows.
  const query = `subscription { outfit(databaseId: ${outfit}) { likers { totalCount } } }`;
  await store([]);
  const follow = async (viewer: Viewer) => {
    const stream = await openStream(base, query, { headers: headers.get(viewer) ?? {} });
    onTestFinished(() => stream.close());
    const next = async () => (await stream.next()).data.data.outfit.likers.totalCount;
    expect(await next()).toBe(0);
    return { next, events: () => stream.events().length };
  };
  const [owner, other, anonymous] = [await follow(1), await follow(2), await follow(undefined)];
  await store([{ outfit, user: 4 }]);
  expect(await owner.next()).toBe(1);
  await store([4, 5].map((user) => ({ outfit, user })));
  expect(await owner.next()).toBe(2);
  await store([2, 4, 5].map((user) => ({ outfit, user })));
  expect(await owner.next()).toBe(3);
  expect(await other.next()).toBe(1);
  await store([]);
  expect(await owner.next()).toBe(0);
  expect(await other.next()).toBe(0);
  expect([owner, other, anonymous].map(({ events }) => events())).toEqual([5, 3, 1]);
});

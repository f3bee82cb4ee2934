// What ends an answer that is kept: commits that touch what it was made of, and no others; and everything
// when it is unknown what was committed.
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import type { OutfitRow } from '../../src/outfits/row.ts';
import { connectTo, databaseUrlOf } from '../support/databases/connections.ts';
import { statementsOf } from '../support/databases/statements.ts';
import { openGateway, type TestGateway } from '../support/gateway.ts';
import { extend } from '../support/graphql/schema-extension.ts';
import { getGraphql } from '../support/http/graphql.ts';

const rows = [...generateOutfits({ outfits: 60, users: 5 })].map((row, index) => ({
  ...row,
  id: 1000 + index,
  likes: 100 + 10 * index,
  created: BigInt(1_700_000_000_000_000 + index * 1_000_000),
  modified: BigInt(1_700_000_000_000_000 + index * 1_000_000),
  private: false,
}));
const schema = extend('extend type Query { idempotencyKeys: Int }', {
  'Query.idempotencyKeys': async (_root, _args, { read }) =>
    (await read<{ count: number }>('SELECT count(*)::int AS count FROM idempotency_keys', []))[0]
      ?.count,
});

/** The oldest and the newest, which are also those with the fewest and the most likes. */
const oldest = rows[0] as OutfitRow;
const newest = rows.at(-1) as OutfitRow;
const user = newest.userId;
const other = rows.find((row) => row.userId !== user)?.userId ?? 0;
const ids = '{ id: databaseId }';
const named = `{ id: databaseId user { username } }`;

/** Questions by a name; pages have 20 outfits. */
const questions = {
  newest: '/api/outfits/',
  oldest: '/api/outfits/?page=last',
  leastLiked: '/api/outfits/?ordering=like_count',
  mostLiked: '/api/outfits/?ordering=-like_count',
  one: `{ outfit(databaseId: ${newest.id}) { title likes } }`,
  another: `{ outfit(databaseId: ${oldest.id}) { title likes } }`,
  none: '{ outfit(databaseId: 77) { title } }',
  user: `{ user(databaseId: ${user}) { username } }`,
  username: '{ user(username: "nobody") { id } }',
  firstThree: `{ outfitConnection(first: 3) { edges { node ${named} } } }`,
  lastThree: `{ outfitConnection(last: 3) { edges { node ${ids} } pageInfo { hasNextPage } } }`,
  total: '{ outfitConnection(first: 1, ordering: CREATED_ASC) { totalCount } }',
  popular: `{ outfits(filter: { likesFrom: 500 }, ordering: LIKE_COUNT_DESC) { count } }`,
  ofUser: `{ user(databaseId: ${user}) { outfits { count results ${ids} } } }`,
  ofOther: `{ user(databaseId: ${other}) { outfitConnection(first: 2) { totalCount } } }`,
  likesOfUser: `{ user(databaseId: ${user}) { likesReceived } }`,
  likesOfOther: `{ user(databaseId: ${other}) { likesReceived } }`,
  search: `{ outfits(filter: { search: "linen" }) { count } }`,
  searchByLikes: `{ outfits(filter: { search: "linen" }, ordering: LIKE_COUNT_DESC) { results ${ids} } }`,
  unrecorded: '{ idempotencyKeys }',
} as const;
type Name = keyof typeof questions;
const names = Object.keys(questions) as Name[];

describe('an answer from memory', () => {
  let gateway: TestGateway;
  let writer: pg.Client;
  beforeAll(async () => {
    gateway = await openGateway('PostgreSQL', rows, {}, { schema });
    writer = await connectTo(databaseUrlOf(gateway.database.pool));
  });
  afterAll(async () => {
    await writer.end();
    await gateway.close();
  });

  const ask = (name: Name) => {
    const query = questions[name];
    return query.startsWith('/') ? gateway.get(query) : getGraphql(gateway.app, { query });
  };
  /** Which answers were read anew after `write`, each asked for once before. */
  const endedBy = async (...statements: string[]): Promise<Name[]> => {
    const before = new Map<Name, string>();
    for (const name of names) before.set(name, (await ask(name)).body);
    for (const statement of statements) await writer.query(statement);
    const ended: Name[] = [];
    for (const name of names) {
      let body = '';
      const read = await statementsOf(gateway, async () => {
        ({ body } = await ask(name));
      });
      if (read.length > 0) ended.push(name);
      else expect([name, body]).toEqual([name, before.get(name)]);
    }
    return ended;
  };
  const only = (...listed: Name[]) => names.filter((name) => listed.includes(name));

  test('a commit without outfits and users invalidates only answers without dependencies', async () => {
    expect(await endedBy('CREATE TABLE of_others (id int)', 'DROP TABLE of_others')).toEqual([
      'unrecorded',
    ]);
    for (const same of [
      `UPDATE outfits SET title = title WHERE id = ${newest.id}`,
      `UPDATE outfit_like_counts SET likes = likes WHERE id = ${newest.id}`,
    ]) {
      expect(await endedBy(same)).toEqual(['unrecorded']);
    }
    // On a server that other tests use, what they commit in databases of their own is not explained either.
    const ended = await endedBy();
    expect(ended.filter((name) => name !== 'unrecorded')).toEqual([]);
  });

  test('a like ends the answers that show the outfit, and the lists in which it moves', async () => {
    expect(await endedBy(likes(691, newest.id))).toEqual(
      only(
        ...(['newest', 'mostLiked', 'one', 'firstThree', 'ofUser', 'popular'] as const),
        ...(['searchByLikes', 'unrecorded', 'likesOfUser'] as const),
      ),
    );
    // From the last place to the first of those with likes, without which no page of them is as before.
    expect(await endedBy(likes(5_000, oldest.id))).toEqual(
      only(
        ...(['oldest', 'leastLiked', 'mostLiked', 'another', 'lastThree', 'total'] as const),
        ...(['popular', 'searchByLikes', 'unrecorded'] as const),
        ...(oldest.userId === user ? (['likesOfUser'] as const) : []),
        ...(oldest.userId === other ? (['likesOfOther'] as const) : []),
      ),
    );
  });

  test('a new outfit ends the counts, and what is behind it', async () => {
    const insert = `INSERT INTO outfits SELECT (jsonb_populate_record(o,
      '{"id": 77, "created": 1600000000000000, "modified": 1}')).* FROM outfits o WHERE id = ${oldest.id}`;
    expect(await endedBy(insert)).toEqual(
      only(
        ...(['newest', 'oldest', 'leastLiked', 'mostLiked', 'none', 'lastThree'] as const),
        ...(['total', 'search', 'searchByLikes', 'unrecorded'] as const),
        ...(oldest.userId === user ? (['ofUser', 'likesOfUser'] as const) : []),
        ...(oldest.userId === other ? (['ofOther', 'likesOfOther'] as const) : []),
      ),
    );
    await writer.query('DELETE FROM outfits WHERE id = 77');
  });

  test('a user ends what shows that user, and what was looked for by a name', async () => {
    const rename = `UPDATE users SET username = username || 'x' WHERE id = ${user}`;
    const ended = await endedBy(rename);
    const shown = ['newest', 'user', 'username', 'firstThree', 'one', 'ofUser'];
    expect(ended).toEqual(expect.arrayContaining(shown));
    for (const name of ['none', 'total', 'ofOther'] as const) expect(ended).not.toContain(name);
  });

  test.each<[string, string[]]>([
    [
      'more changes than are looked at',
      [
        `INSERT INTO outfits SELECT (jsonb_populate_record(o, jsonb_build_object('id', 9000 + n))).*
       FROM outfits o, generate_series(1, 1001) n WHERE id = ${oldest.id}`,
        'DELETE FROM outfits WHERE id > 9000',
      ],
    ],
    [
      'triggers that were off for a while',
      [
        'ALTER TABLE outfits DISABLE TRIGGER USER',
        `UPDATE outfits SET title = 'unnoted' WHERE id = ${oldest.id}`,
        'ALTER TABLE outfits ENABLE TRIGGER USER',
        'SELECT enable_outfit_triggers()',
      ],
    ],
    [
      'triggers of likes that were off for a while',
      [
        'ALTER TABLE outfit_like_counts DISABLE TRIGGER USER',
        likes(7, oldest.id),
        'ALTER TABLE outfit_like_counts ENABLE TRIGGER USER',
        'SELECT enable_outfit_triggers()',
      ],
    ],
    [
      'a trigger that does not fire where it should',
      ['ALTER TABLE users DISABLE TRIGGER record_changed'],
    ],
    ['a commit while it does not', ['CREATE TABLE of_others (id int)', 'DROP TABLE of_others']],
    ['its return', ['SELECT enable_outfit_triggers()']],
    [
      'a table that was rewritten',
      ['ALTER TABLE users ALTER COLUMN first_name TYPE text USING upper(first_name)'],
    ],
    ...(['users', 'outfits', 'outfit_like_counts'] as const).map((table): [string, string[]] => [
      `a column of ${table} that is renamed and named back`,
      [`ALTER TABLE ${table} RENAME id TO x`, `ALTER TABLE ${table} RENAME x TO id`],
    ]),
    ['an empty table', ['TRUNCATE outfits CASCADE']],
  ])('everything is ended by %s', async (_what, statements) => {
    expect(await endedBy(...statements)).toEqual(names);
  });
});

test('on PostgreSQL, what a session with the role of a replica writes ends what it touches', async () => {
  const gateway = await openGateway('PostgreSQL', rows);
  onTestFinished(() => gateway.close());
  const page = async () => (await gateway.get('/api/outfits/?ordering=id')).json().results[0];
  await page();
  const client = await gateway.database.pool.connect();
  try {
    await client.query('SET session_replication_role = replica');
    await client.query(likes(12_345, oldest.id));
    expect((await page()).likes).toBe(12_345);
    await client.query(`UPDATE outfits SET title = 'As replicated' WHERE id = ${oldest.id}`);
    expect((await page()).title).toBe('As replicated');
  } finally {
    client.release(true);
  }
});

const parts = {
  user: `INSERT INTO users (id, username) VALUES (7777, 'copied')`,
  outfit: `INSERT INTO outfits (id, title, image_key, image_original_key, user_id, created, modified)
    VALUES (7777, '#copied', 'a', 'a', 7777, 1, 1)`,
  likes:
    'INSERT INTO outfit_like_counts (id, private, user_id, likes) VALUES (7777, false, 7777, 1)',
};

test.each([
  ['likes', 'outfit', 'user'],
  ['outfit', 'user', 'likes'],
  ['likes', 'user', 'outfit'],
] as const)(
  'lists have what the first copy of a subscription brings as %s, %s, %s',
  async (...order) => {
    const gateway = await openGateway('PostgreSQL', rows, { PAGE_SIZE: '3' });
    onTestFinished(() => gateway.close());
    const fields = [
      'outfits(ordering: CREATED_ASC)',
      'outfits(ordering: LIKE_COUNT_ASC)',
      'outfits(filter: { hashtags: ["copied"] })',
    ];
    const ranges = ['ordering: ID_ASC, last: 1', 'ordering: LIKE_COUNT_ASC, first: 1'];
    const queries = [
      ...fields.map((field) => `{ ${field} { count results { databaseId } } }`),
      ...ranges.map((range) => `{ outfitConnection(${range}) { edges { node { databaseId } } } }`),
      '{ outfit(databaseId: 7777) { databaseId } }',
    ];
    const askAll = () =>
      Promise.all(queries.map(async (query) => (await getGraphql(gateway.app, { query })).body));
    const client = await gateway.database.pool.connect();
    try {
      await client.query('SET session_replication_role = replica');
      for (const part of order) {
        await askAll();
        await client.query(parts[part]);
      }
    } finally {
      client.release(true);
    }
    for (const body of await askAll()) expect(body).toContain('{"databaseId":7777}');
  },
);

test('a commit of a transaction that was open at the last look is seen after its change was pruned', async () => {
  const gateway = await openGateway('PostgreSQL', rows);
  onTestFinished(() => gateway.close());
  const { pool } = gateway.database;
  const title = async () => (await gateway.get(`/api/outfits/${newest.id}/`)).json().title;
  const change = (text: string) => `UPDATE outfits SET title = '${text}' WHERE id = ${newest.id}`;
  const prune = `UPDATE outfit_counts_state SET prune_snapshot_at = now() - interval '2 minutes'`;
  const apply = 'SELECT apply_pending_outfit_changes';
  await pool.query(`${apply}()`);
  const client = await connectTo(databaseUrlOf(pool));
  onTestFinished(() => client.end());
  await client.query(`BEGIN; ${change('late')}`);
  // Later transactions, which end before it.
  for (const id of [oldest.id, 1010, 1020]) await pool.query(likes(9, id));
  expect(await title()).not.toBe('late');
  await client.query('COMMIT');
  for (const batch of [2, 1, 1, 100]) await pool.query(`${prune}; ${apply}(${batch})`);
  expect(await title()).toBe('late');
});

function likes(likes: number, id: number): string {
  return `UPDATE outfit_like_counts SET likes = ${likes} WHERE id = ${id}`;
}

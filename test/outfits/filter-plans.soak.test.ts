// What filters cost at very many outfits, as pages of the database that are read: docs in filters.md.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { formatCursor } from '../../src/outfits/ordering.ts';
import { connectTo, databaseUrlOf } from '../support/databases/connections.ts';
import { blocksOf, nodesOf, type PlanNode, plansOf } from '../support/databases/plans.ts';
import { applyAll } from '../support/databases/small-buckets.ts';
import { openGateway, type TestGateway } from '../support/gateway.ts';
import { secret, signIn } from '../support/http/tokens.ts';
import { amount } from '../support/lane.ts';
import { orderings } from '../support/models/orderings.ts';

const outfits = amount(0, 120_000);
/** A user with a fifth of them. */
const owner = 9_000;
let gateway: TestGateway;

beforeAll(async () => {
  gateway = await openGateway('PostgreSQL', [], {
    ...{ CACHE_MAX_SIZE: '0', REQUEST_TIMEOUT: '60s', AUTH_JWT_SECRET: secret },
  });
  const client = await connectTo(databaseUrlOf(gateway.database.pool));
  // Likes as they are: most have few. A rare word, a rare hashtag, and a common word. A fifth is of one user.
  await client.query(`
    INSERT INTO users (username) SELECT 'user' || n FROM generate_series(1, 10000) n;
    WITH o AS (
      INSERT INTO outfits
        (id, title, description, image_key, image_original_key, user_id, private, created, modified, quality)
      SELECT n, 'Coat ' || n, CASE WHEN n % 50000 = 0 THEN 'xylophone #rarest' ELSE 'warm' END, n, n,
        CASE WHEN n % 5 = 0 THEN ${owner} ELSE 1 + n % 10000 END, n % 10 = 0,
        1500000000000000 + n * 200000000::bigint, 1500000000000000 + n * 200000000::bigint, 2 + n % 4
      FROM generate_series(1, ${outfits}) n
      RETURNING *
    )
    INSERT INTO outfit_like_counts
    SELECT id, private, user_id, ((id::bigint * 104729 % 1000003 / 1000003.0) ^ 6 * 200000)::int FROM o;
    INSERT INTO outfit_likes SELECT 1 + n % 10, 1 + n / 10 FROM generate_series(0, 99999) n;
  `);
  await applyAll(client);
  await client.query('VACUUM ANALYZE');
  await client.end();
}, 900_000);
afterAll(() => gateway.close());

async function plansFor(query: string, viewer?: number): Promise<PlanNode[]> {
  const headers = await signIn(viewer);
  const ask: TestGateway['post'] = (text, variables) => gateway.post(text, variables, headers);
  return (await plansOf(gateway, query, ask)).flat();
}

/** What is looked for in an index. */
function expectSeeks(plans: readonly PlanNode[], blocks: number) {
  expect(plans.length).toBeGreaterThan(0);
  for (const plan of plans) {
    expect(blocksOf(plan)).toBeLessThan(blocks);
    expect(nodesOf(plan).map((node) => node['Node Type'])).not.toContain('Seq Scan');
  }
}

const year = 'createdFrom: "2018-01-01T00:00:00Z", createdBefore: "2021-01-01T00:00:00Z"';
const user = Buffer.from('User:77').toString('base64');
const place = formatCursor('id', { value: 9000n, id: 9000 });
const ids = [5, 500_000, 999_999].map(
  (id) => `"${Buffer.from(`Outfit:${id}`).toString('base64')}"`,
);

describe(`at ${outfits} outfits`, () => {
  test.each([
    ['no filter', 'CREATED_DESC', '', 400],
    ['a range of moments', 'CREATED_DESC', year, 800],
    ['a range of moments, backwards', 'CREATED_ASC', year, 800],
    ['a range of likes', 'LIKE_COUNT_DESC', 'likesFrom: 3, likesBelow: 5000', 1500],
    ['public ones', 'MODIFIED_DESC', 'private: false', 400],
    ['ids', 'LIKE_COUNT_DESC', `ids: [${ids.join()}]`, 100],
    ['the outfits of a user', 'LIKE_COUNT_DESC', `userIds: ["${user}"]`, 1000],
    ['a rare hashtag', 'CREATED_DESC', 'hashtags: ["RAREST"]', 1000],
    ['a rare word', 'LIKE_COUNT_ASC', 'search: "xylophone"', 1000],
    ['a rare word among common ones', 'CREATED_DESC', 'search: "coat xylophone"', 3000],
  ])(
    '%s reads few pages, and no table from end to end',
    async (_name, ordering, filter, blocks) => {
      const list = `ordering: ${ordering}, filter: { ${filter} }`;
      const pages = `a: outfits(${list}) { count results { databaseId } }
      b: outfits(${list}, last: true) { count results { databaseId } }`;
      const range = `outfitConnection(first: 20, ${list}) { totalCount edges { cursor } }`;
      for (const plan of await plansFor(`{ ${pages} ${range} }`)) {
        expect(blocksOf(plan)).toBeLessThan(blocks);
        for (const node of nodesOf(plan)) {
          const isWhole = node['Node Type'].includes('Seq Scan');
          expect(isWhole ? node['Relation Name'] : '').not.toMatch(
            /^outfit(s|_texts|_like_counts)$/,
          );
        }
      }
    },
  );

  test.each(orderings)('the middle page by $enum reads few pages', async (list) => {
    const query = `{ outfits(ordering: ${list.enum}, page: 3000) { count results { databaseId } } }`;
    for (const plan of await plansFor(query)) expect(blocksOf(plan)).toBeLessThan(400);
  });

  test.each(orderings)('the middle page of one user by $enum reads few pages', async (list) => {
    const page = `outfits(ordering: ${list.enum}, page: 600) { count results { databaseId } }`;
    const plans = await plansFor(`{ user(databaseId: ${owner}) { ${page} } }`);
    expect(plans.length).toBeGreaterThan(0);
    // Half of the entries of an index; the outfits of a user are in nearly all pages of the table.
    for (const plan of plans) expect(blocksOf(plan)).toBeLessThan(600);
  });

  test('the counts have few buckets', async () => {
    const { rows } = await gateway.database.pool.query<{ buckets: number }>(
      'SELECT count(*)::int AS buckets FROM outfit_buckets',
    );
    expect(rows[0]?.buckets).toBeLessThan(outfits / 50);
  });

  test.each(['user777', 'nobody'])(
    'users by the name %s are found by the index',
    async (search) => {
      const query = `{ users(search: "${search}", first: 2) { totalCount nodes { id } pageInfo { hasNextPage } } }`;
      expectSeeks(await plansFor(query), 200);
    },
  );

  test.each([
    [
      'the first ones, for the owner',
      2,
      'outfit(databaseId: 1) { likers(first: 20) { edges { cursor } } }',
    ],
    [
      'ones far behind, for the owner',
      2,
      `outfit(databaseId: 1) { likers(first: 20, after: "${place}") { nodes { id } pageInfo { hasPreviousPage } } }`,
    ],
    [
      'those of ten outfits, for another viewer',
      77,
      'outfits(ordering: ID_ASC, pageSize: 10) { results { likers { totalCount nodes { id } } } }',
    ],
    [
      'what one user likes',
      77,
      'user(databaseId: 77) { likedOutfits(first: 3) { totalCount nodes { id } } }',
    ],
    [
      'what others like, for the owner',
      2,
      'a: user(databaseId: 77) { likedOutfits { totalCount nodes { id } } } b: user(databaseId: 78) { likedOutfits { totalCount nodes { id } } }',
    ],
  ])('of 100,000 likes, %s are found by the index', async (_name, viewer, query) => {
    expectSeeks(await plansFor(`{ ${query} }`, viewer), 400);
  });

  test('a range of a condition without an index walks no further than it must', async () => {
    // Of the public ones: no private one has this quality, so those would be walked to their end.
    const filter = 'filter: { quality: [3], private: false }';
    const range = `outfitConnection(first: 20, ${filter}) { edges { cursor } }`;
    for (const plan of await plansFor(`{ ${range} }`)) {
      expect(blocksOf(plan)).toBeLessThan(1000);
    }
  });
});

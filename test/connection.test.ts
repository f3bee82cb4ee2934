// The cursor connection: the rules of Relay, and what it costs at 120,000 outfits.
import { SignJWT } from 'jose';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { buildApp } from '../src/app.ts';
import { generateOutfits } from '../src/demo/generate.ts';
import {
  type OutfitOrdering,
  ScrollOutfitsDocument,
  type ScrollOutfitsQueryVariables,
} from '../src/generated/test-client.ts';
import { formatCursor } from '../src/outfits/cursor.ts';
import { openGateway, type TestGateway } from './gateway.ts';

describe('the connection', () => {
  const rows = [...generateOutfits({ outfits: 45, users: 9 })];
  const sorted = rows.map(({ id }) => id).toSorted((a, b) => a - b);
  let gateway: TestGateway;
  let cursors: string[];

  const scroll = async (variables: ScrollOutfitsQueryVariables) => {
    const data = await gateway.query(ScrollOutfitsDocument, { ordering: 'ID_ASC', ...variables });
    const { edges, pageInfo, totalCount } = data.outfitConnection;
    return { ids: edges.map(({ node }) => node.id), edges, pageInfo, totalCount };
  };
  const failure = async (range: string) => {
    const { data, errors = [] } = await gateway.post(
      `{ outfitConnection(${range}) { edges { cursor } } }`,
    );
    expect(data).toBeNull();
    expect(errors).toHaveLength(1);
    return { code: errors[0]?.extensions?.code, message: errors[0]?.message };
  };

  beforeAll(async () => {
    gateway = await openGateway('PostgreSQL', rows);
    cursors = (await scroll({ first: 100 })).edges.map(({ cursor }) => cursor);
  });
  afterAll(() => gateway.close());

  test('has the whole list when it fits, and nothing beyond', async () => {
    const { ids, pageInfo, totalCount } = await scroll({ first: 100 });
    expect(ids).toEqual(sorted);
    expect(totalCount).toBe(45);
    expect(pageInfo).toEqual({
      startCursor: cursors[0],
      endCursor: cursors[44],
      hasNextPage: false,
      hasPreviousPage: false,
    });
  });

  test('without first and last gives a page from the start', async () => {
    expect((await scroll({})).ids).toEqual(sorted.slice(0, 20));
    expect((await scroll({ after: cursors[9] ?? '' })).ids).toEqual(sorted.slice(10, 30));
  });

  test('newest first is the default ordering', async () => {
    const { outfitConnection } = await gateway.query(ScrollOutfitsDocument, { first: 100 });
    const expected = rows.toSorted((a, b) => Number(b.created - a.created) || b.id - a.id);
    expect(outfitConnection.edges.map(({ node }) => node.id)).toEqual(expected.map(({ id }) => id));
  });

  test.each([
    { range: { first: 45 }, from: 0, to: 45, next: false, previous: false },
    { range: { first: 44 }, from: 0, to: 44, next: true, previous: false },
    { range: { last: 45 }, from: 0, to: 45, next: false, previous: false },
    { range: { last: 44 }, from: 1, to: 45, next: false, previous: true },
    { range: { first: 3, after: 9 }, from: 10, to: 13, next: true, previous: true },
    { range: { first: 3, after: 41 }, from: 42, to: 45, next: false, previous: true },
    { range: { first: 3, after: 44 }, from: 45, to: 45, next: false, previous: true },
    { range: { last: 3, before: 9 }, from: 6, to: 9, next: true, previous: true },
    { range: { last: 3, before: 3 }, from: 0, to: 3, next: true, previous: false },
    { range: { last: 3, before: 0 }, from: 0, to: 0, next: true, previous: false },
    { range: { first: 5, after: 9, before: 40 }, from: 10, to: 15, next: true, previous: true },
    { range: { last: 5, after: 9, before: 40 }, from: 35, to: 40, next: true, previous: true },
    { range: { first: 9, after: 9, before: 9 }, from: 0, to: 0, next: false, previous: true },
    { range: { first: 9, after: 30, before: 9 }, from: 0, to: 0, next: false, previous: true },
    { range: { first: 5, last: 3 }, from: 2, to: 5, next: true, previous: true },
    { range: { first: 3, last: 3 }, from: 0, to: 3, next: true, previous: true },
    { range: { first: 5, last: 0 }, from: 0, to: 0, next: true, previous: true },
  ])('$range gives what Relay says', async ({ range, from, to, next, previous }) => {
    const { after, before, ...limits } = range as Record<string, number | undefined>;
    const { ids, pageInfo, edges } = await scroll({
      ...limits,
      ...(after === undefined ? {} : { after: cursors[after] ?? '' }),
      ...(before === undefined ? {} : { before: cursors[before] ?? '' }),
    });
    expect(ids).toEqual(sorted.slice(from, to));
    // Where `last` cuts the start off, Relay calls what was cut a previous page.
    expect(pageInfo.hasNextPage).toBe(next);
    if (range.first !== range.last) expect(pageInfo.hasPreviousPage).toBe(previous);
    expect(pageInfo.startCursor).toBe(edges[0]?.cursor ?? null);
    expect(pageInfo.endCursor).toBe(edges.at(-1)?.cursor ?? null);
  });

  test.each([
    { range: { first: 0 }, next: true, previous: false },
    { range: { last: 0 }, next: false, previous: true },
  ])('$range is an empty range that knows there is more', async ({ range, next, previous }) => {
    const { ids, pageInfo, totalCount } = await scroll(range);
    expect(ids).toEqual([]);
    expect(totalCount).toBe(45);
    expect(pageInfo).toEqual({
      startCursor: null,
      endCursor: null,
      hasNextPage: next,
      hasPreviousPage: previous,
    });
  });

  test('the cursor of a deleted outfit still marks its place', async () => {
    const gone = sorted.findIndex(
      (value, index) => index > 0 && value !== (sorted[index - 1] ?? 0) + 1,
    );
    const missing = (sorted[gone] ?? 0) - 1;
    expect(sorted).not.toContain(missing);
    const cursor = formatCursor('id', { value: BigInt(missing), id: missing });
    expect((await scroll({ first: 5, after: cursor })).ids).toEqual(sorted.slice(gone, gone + 5));
    expect((await scroll({ last: 5, before: cursor })).ids).toEqual(
      sorted.slice(Math.max(0, gone - 5), gone),
    );
  });

  test.each(['first', 'last'])('%s below 0 or above 100 is bad input', async (name) => {
    for (const size of [-1, 101, 2_147_483_647]) {
      expect(await failure(`${name}: ${size}`)).toEqual({
        code: 'BAD_USER_INPUT',
        message: `${name} must be from 0 to 100, but it is ${size}.`,
      });
    }
  });

  test.each(['after', 'before'])('%s must be a cursor', async (name) => {
    for (const cursor of ['', 'garbage', '12', `${cursors[3]}=`, `${cursors[3]}x`, '\\u0000']) {
      expect(await failure(`first: 3, ${name}: "${cursor}"`)).toEqual({
        code: 'BAD_USER_INPUT',
        message: `${name} is not a cursor of this list.`,
      });
    }
  });

  test.each(['after', 'before'])('%s must be a cursor of the same ordering', async (name) => {
    expect(await failure(`ordering: LIKE_COUNT_ASC, ${name}: "${cursors[3]}"`)).toEqual({
      code: 'BAD_USER_INPUT',
      message: `${name} is a cursor of a list with another ordering: start again without it.`,
    });
  });

  test('a cursor also holds in the opposite direction of the same ordering', async () => {
    const { ids } = await scroll({ ordering: 'ID_DESC', first: 5, after: cursors[9] ?? '' });
    expect(ids).toEqual(sorted.slice(4, 9).toReversed());
  });

  test('of an empty list is empty', async () => {
    const empty = await openGateway('PostgreSQL');
    try {
      for (const range of [{ first: 3 }, { last: 3 }, { first: 3, after: cursors[0] ?? '' }]) {
        const variables = { ordering: 'ID_ASC' as const, ...range };
        expect(await empty.query(ScrollOutfitsDocument, variables)).toEqual({
          outfitConnection: {
            totalCount: 0,
            edges: [],
            pageInfo: {
              startCursor: null,
              endCursor: null,
              hasNextPage: false,
              hasPreviousPage: false,
            },
          },
        });
      }
    } finally {
      await empty.close();
    }
  });
});

interface PlanNode {
  readonly 'Shared Hit Blocks': number;
  readonly 'Shared Read Blocks': number;
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly Plans?: readonly PlanNode[];
}

const nodesOf = (node: PlanNode): PlanNode[] => [node, ...(node.Plans ?? []).flatMap(nodesOf)];

/** Where a plan reads outfits. */
const readsOf = (plan: PlanNode) =>
  nodesOf(plan).filter((node) => node['Relation Name'] === 'outfits');

describe.each([100, 101, 200, 1000])('with PAGE_SIZE=%i', (pageSize) => {
  const rows = [...generateOutfits({ outfits: 450, users: 20 })].map((row) => ({
    ...row,
    private: row.id % 3 === 0,
  }));
  const newestFirst = rows
    .toSorted((a, b) => Number(b.created - a.created) || b.id - a.id)
    .map(({ id }) => id);
  let gateway: TestGateway;

  beforeAll(async () => {
    gateway = await openGateway('PostgreSQL', rows, { PAGE_SIZE: String(pageSize) });
  });
  afterAll(() => gateway.close());

  test('a walk without first meets every outfit once', async () => {
    const met: number[] = [];
    let variables: ScrollOutfitsQueryVariables = {};
    for (const length of [100, 100, 100, 100, 50]) {
      const { outfitConnection } = await gateway.query(ScrollOutfitsDocument, variables);
      const { edges, pageInfo } = outfitConnection;
      expect(edges).toHaveLength(length);
      expect(pageInfo.hasNextPage).toBe(length === 100);
      met.push(...edges.map(({ node }) => node.id));
      variables = { after: pageInfo.endCursor ?? '' };
    }
    expect(met).toEqual(newestFirst);
  });
});

/** Outfits that a plan reads, also those that it then leaves out. */
function countReads(plan: PlanNode): number {
  const counts = readsOf(plan).map(
    (node) => (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'],
  );
  return counts.reduce((a, b) => a + b, 0);
}

describe('at 120,000 outfits', () => {
  const size = 20;
  let gateway: TestGateway;

  // Old outfits come first in the table, and only old ones are private, as in a list that has grown:
  // a plan that counts on an even mix reads half the table.
  beforeAll(async () => {
    gateway = await openGateway('PostgreSQL');
    await gateway.database.pool.query(`
      SET LOCAL statement_timeout = 0;
      INSERT INTO users (id, username) SELECT n, 'user' || n FROM generate_series(1, 500) n;
      INSERT INTO outfits (id, image_key, image_original_key, likes, user_id, private, created, modified)
      SELECT n, 'outfits/' || n, 'outfits/' || n, (n * 7919) % 997 / 10, 1 + n % 500,
             n <= 30000 AND n % 10 = 0, n / 3 * 1000000::bigint,
             (n * 104729::bigint) % 120011 / 7 * 1000000
      FROM generate_series(1, 120000) n;
      ANALYZE users, outfits;
    `);
  });
  afterAll(() => gateway.close());

  /** The statements that the service sends for a query, as they are. */
  async function capture(query: string, ask = gateway.post): Promise<pg.QueryConfig[]> {
    const sent = vi.spyOn(gateway.database.pool, 'query');
    try {
      expect(await ask(query)).not.toHaveProperty('errors');
      return sent.mock.calls.map(([statement]) => statement as unknown as pg.QueryConfig);
    } finally {
      sent.mockRestore();
    }
  }

  /** How PostgreSQL runs a prepared statement: with a plan for these values, or one for any. */
  async function explain({ text, values = [] }: pg.QueryConfig, mode: string): Promise<PlanNode> {
    const client = new pg.Client(gateway.database.pool.options);
    await client.connect();
    try {
      await client.query(`SET plan_cache_mode = ${mode}`);
      await client.query(`PREPARE explained AS ${text}`);
      const literals = values.map((value) => client.escapeLiteral(String(value)));
      const { rows } = await client.query(
        `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE explained(${literals.join(', ')})`,
      );
      return rows[0]['QUERY PLAN'][0].Plan;
    } finally {
      await client.end();
    }
  }

  const orderings: [OutfitOrdering, 'created' | 'id' | 'likes' | 'modified'][] = [
    ['CREATED_ASC', 'created'],
    ['CREATED_DESC', 'created'],
    ['ID_ASC', 'id'],
    ['ID_DESC', 'id'],
    ['LIKE_COUNT_ASC', 'likes'],
    ['LIKE_COUNT_DESC', 'likes'],
    ['MODIFIED_ASC', 'modified'],
    ['MODIFIED_DESC', 'modified'],
  ];

  describe.each(orderings)('a range by %s from the middle of the list', (ordering, field) => {
    test.each([
      ['forward', (cursor: string) => `first: ${size}, after: "${cursor}"`],
      ['backward', (cursor: string) => `last: ${size}, before: "${cursor}"`],
    ])('%s is read by index seeks alone', async (_direction, range) => {
      const { rows } = await gateway.database.pool.query(
        `SELECT ${field} AS value, id FROM outfits ORDER BY ${field}, id OFFSET 60000 LIMIT 1`,
      );
      const cursor = formatCursor(field, { value: BigInt(rows[0].value), id: rows[0].id });

      const statements = await capture(
        `{ outfitConnection(ordering: ${ordering}, ${range(cursor)}) {
             edges { cursor node { id: databaseId title user { username } } }
             pageInfo { hasNextPage hasPreviousPage } } }`,
      );
      expect(statements).toHaveLength(2);

      for (const statement of statements) {
        for (const mode of ['force_custom_plan', 'force_generic_plan']) {
          const plan = await explain(statement, mode);
          // A seek that begins at the end of its range reads few rows, but many pages of the index.
          expect(plan['Shared Hit Blocks'] + plan['Shared Read Blocks']).toBeLessThan(300);
          const reads = readsOf(plan);
          expect(reads.length).toBeGreaterThan(0);
          for (const read of reads) expect(read['Node Type']).toMatch(/^Index (Only )?Scan$/);
          // Both segments of the list, public and private, can give all rows of a range.
          expect(countReads(plan)).toBeLessThanOrEqual(2 * (size + 1));
          for (const sort of nodesOf(plan).filter((node) => node['Node Type'].includes('Sort'))) {
            // What the two segments gave is put in order, and nothing else.
            const [input] = sort.Plans ?? [];
            expect(input?.['Actual Rows']).toBeLessThanOrEqual(2 * (size + 1));
          }
        }
      }
    });
  });

  describe('where private outfits are for their owners', () => {
    const viewer = 11;
    let owned: number;
    const secret = 'a secret of this test alone';
    let app: Awaited<ReturnType<typeof buildApp>>;
    let ask: TestGateway['post'];
    // The viewer's outfits are the newest, behind the private ones of everyone else: a plan that
    // looks for them in the order of the list reads all of those.
    beforeAll(async () => {
      await gateway.database.pool.query(`
        UPDATE outfits SET private = true, user_id = ${viewer} WHERE id > 117000;
        UPDATE outfits SET private = true WHERE id <= 60000 AND user_id <> ${viewer};
        ANALYZE outfits;
      `);
      const { rows } = await gateway.database.pool.query(
        `SELECT count(*)::int AS owned FROM outfits WHERE user_id = ${viewer}`,
      );
      owned = rows[0].owned;
      const config = { ...gateway.config, privateOutfits: 'owner', authJwtSecret: secret } as const;
      app = await buildApp(config, gateway.database);
      const token = await new SignJWT()
        .setProtectedHeader({ alg: 'HS256' })
        .setSubject(String(viewer))
        .sign(new TextEncoder().encode(secret));
      const headers = { authorization: `Bearer ${token}` };
      ask = async (query) => {
        const payload = { query };
        return (await app.inject({ method: 'POST', url: '/graphql', headers, payload })).json();
      };
    });
    afterAll(() => app.close());

    test.each(orderings)(
      "by %s, a viewer's list costs no more than seeks and what the viewer owns",
      async (ordering, field) => {
        const { rows } = await gateway.database.pool.query(
          `SELECT ${field} AS value, id FROM outfits ORDER BY ${field}, id OFFSET 20000 LIMIT 1`,
        );
        const cursor = formatCursor(field, { value: BigInt(rows[0].value), id: rows[0].id });
        const range = `outfitConnection(ordering: ${ordering}, first: ${size}, after: "${cursor}")`;
        const statements = await capture(
          `{ ${range} { totalCount edges { cursor } pageInfo { hasPreviousPage } }
             outfits(ordering: ${ordering}, page: 2000) { count results { id: databaseId } } }`,
          ask,
        );
        // A range, whether there is more before it, its count, and a page.
        expect(statements).toHaveLength(4);
        for (const statement of statements) {
          for (const mode of ['force_custom_plan', 'force_generic_plan']) {
            const plan = await explain(statement, mode);
            for (const read of readsOf(plan)) {
              expect(read['Node Type']).toMatch(/^(Index (Only )?|Bitmap Heap )Scan$/);
            }
            // What the viewer owns, as many public ones, and the rows of a page or range.
            expect(countReads(plan)).toBeLessThanOrEqual(2 * owned + 2 * (size + 1));
          }
        }
      },
    );
  });
});

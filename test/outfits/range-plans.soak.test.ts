// What a range, a page and a count cost at 120,000 outfits: seeks in an index, whatever plan PostgreSQL takes.
import { SignJWT } from 'jose';
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildApp } from '../../src/app.ts';
import { formatCursor } from '../../src/outfits/ordering.ts';
import { blocksOf, capture, explain, nodesOf, type PlanNode } from '../support/databases/plans.ts';
import { openGateway, type TestGateway } from '../support/gateway.ts';
import { orderings } from '../support/models/orderings.ts';

const modes = ['force_custom_plan', 'force_generic_plan'] as const;
const tables = ['outfits', 'outfit_like_counts'] as const;
type Table = (typeof tables)[number];

/** Where a plan reads outfits, or their likes. */
const readsOf = (plan: PlanNode, of: readonly Table[] = tables) =>
  nodesOf(plan).filter((node) => of.includes(node['Relation Name'] as Table));

/** Rows that a plan reads of one table, of that of which it reads the most, also those that it then leaves out. */
function countReads(plan: PlanNode, of: readonly Table[] = tables): number {
  const counts = of.map((table) =>
    readsOf(plan, [table]).map(
      (node) =>
        (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'],
    ),
  );
  return Math.max(...counts.map((ofTable) => ofTable.reduce((a, b) => a + b, 0)));
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
      WITH o AS (
        INSERT INTO outfits (id, image_key, image_original_key, user_id, private, created, modified)
        SELECT n, 'outfits/' || n, 'outfits/' || n, 1 + n % 500,
               n <= 30000 AND n % 10 = 0, n / 3 * 1000000::bigint,
               (n * 104729::bigint) % 120011 / 7 * 1000000
        FROM generate_series(1, 120000) n
        RETURNING *
      )
      INSERT INTO outfit_like_counts SELECT id, private, user_id, (id * 7919) % 997 / 10 FROM o;
      ANALYZE users, outfits, outfit_like_counts;
    `);
  });
  afterAll(() => gateway.close());

  const lists = orderings.map(({ enum: name, field }) => [name, field] as const);

  describe.each(lists)('a range by %s from the middle of the list', (ordering, field) => {
    test.each([
      ['forward', (cursor: string) => `first: ${size}, after: "${cursor}"`],
      ['backward', (cursor: string) => `last: ${size}, before: "${cursor}"`],
    ])('%s is read by index seeks alone', async (_direction, range) => {
      const { rows } = await gateway.database.pool.query(
        `SELECT ${field} AS value, id FROM outfits JOIN outfit_like_counts USING (id) ORDER BY ${field}, id OFFSET 60000 LIMIT 1`,
      );
      const cursor = formatCursor(field, { value: BigInt(rows[0].value), id: rows[0].id });

      const statements = await capture(
        gateway,
        `{ outfitConnection(ordering: ${ordering}, ${range(cursor)}) {
             edges { cursor node { id: databaseId title user { username } } }
             pageInfo { hasNextPage hasPreviousPage } } }`,
      );
      expect(statements).toHaveLength(2);

      for (const statement of statements) {
        for (const mode of modes) {
          const plan = await explain(gateway, statement, mode);
          // A seek that begins at the end of its range reads few rows, but many pages of the index.
          expect(blocksOf(plan)).toBeLessThan(300);
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

  describe.each([
    { pageSize: 22, limit: 101 },
    { pageSize: 100, limit: 101 },
    { pageSize: 1000, limit: 1000 },
  ])('page 1 of $pageSize', ({ pageSize, limit }) => {
    let app: Awaited<ReturnType<typeof buildApp>>;
    beforeAll(async () => {
      const config = { ...gateway.config, pageSize, graphqlMaxCost: 1_000_000 };
      app = await buildApp(config, gateway.database);
    });
    afterAll(() => app.close());

    test.each(lists)('by %s is read from the beginning of the indexes', async (ordering, field) => {
      const query = `{ outfits(ordering: ${ordering}) { count results { id: databaseId } } }`;
      const [statement, ...others] = await capture(gateway, query, async (payload) =>
        (await app.inject({ method: 'POST', url: '/graphql', payload: { query: payload } })).json(),
      );
      expect(others).toEqual([]);
      for (const mode of modes) {
        const plan = await explain(gateway, statement as pg.QueryConfig, mode);
        expect(nodesOf(plan).map((node) => node['Node Type'])).not.toContain('Function Scan');
        const [list, joined]: [Table, Table] =
          field === 'likes' ? ['outfit_like_counts', 'outfits'] : ['outfits', 'outfit_like_counts'];
        for (const read of readsOf(plan, [list]))
          expect(read['Node Type']).toMatch(/^Index (Only )?Scan$/);
        expect(countReads(plan, [list])).toBeLessThanOrEqual(2 * limit);
        for (const read of readsOf(plan, [joined])) {
          // To read all likes is right only where it is fewer blocks than to seek those of each outfit.
          if (read['Node Type'] === 'Seq Scan') expect(blocksOf(read)).toBeLessThan(2 * limit);
          else expect(read['Node Type']).toBe('Index Scan');
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
        SET LOCAL statement_timeout = 0;
        UPDATE outfits SET private = true, user_id = ${viewer} WHERE id > 117000;
        UPDATE outfits SET private = true WHERE id <= 60000 AND user_id <> ${viewer};
        ANALYZE outfits, outfit_like_counts;
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

    test.each(lists)(
      "by %s, a viewer's list costs no more than seeks and what the viewer owns",
      async (ordering, field) => {
        const { rows } = await gateway.database.pool.query(
          `SELECT ${field} AS value, id FROM outfits JOIN outfit_like_counts USING (id) ORDER BY ${field}, id OFFSET 20000 LIMIT 1`,
        );
        const cursor = formatCursor(field, { value: BigInt(rows[0].value), id: rows[0].id });
        const range = `outfitConnection(ordering: ${ordering}, first: ${size}, after: "${cursor}")`;
        const statements = await capture(
          gateway,
          `{ ${range} { totalCount edges { cursor } pageInfo { hasPreviousPage } }
             outfits(ordering: ${ordering}, page: 2000) { count results { id: databaseId } } }`,
          ask,
        );
        // A range, whether there is more before it, its count, and a page.
        expect(statements).toHaveLength(4);
        for (const statement of statements) {
          for (const mode of modes) {
            const plan = await explain(gateway, statement, mode);
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

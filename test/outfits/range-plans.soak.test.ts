// What a range, a page and a count cost at 120,000 outfits: seeks in an index, whatever plan PostgreSQL takes.
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { buildApp } from '../../src/app.ts';
import type { Config } from '../../src/config/config.ts';
import { formatCursor } from '../../src/outfits/ordering.ts';
import { blocksOf, nodesOf, type PlanNode, plansOf } from '../support/databases/plans.ts';
import { applyAll } from '../support/databases/small-buckets.ts';
import { useGateway } from '../support/gateway.ts';
import { secret, signIn } from '../support/http/tokens.ts';
import { type Ordering, orderings } from '../support/models/orderings.ts';

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
  const gateway = useGateway('PostgreSQL', [], {
    AUTH_JWT_SECRET: secret,
    REQUEST_TIMEOUT: '60s',
  });
  const run = async (statements: string) => {
    await gateway.database.pool.query(`
      SET LOCAL statement_timeout = 0;
      ${statements}
      ANALYZE users, outfits, outfit_like_counts;
    `);
    await applyAll(gateway.database.pool);
  };

  // Old ones come first in the table, and only old ones are private, as in a list that has grown: a plan that counts on an
  // even mix reads half the table.
  const isPrivate = 'id <= 30000 AND id % 10 = 0';
  beforeAll(() =>
    run(`
      INSERT INTO users (id, username) SELECT n, 'user' || n FROM generate_series(1, 500) n;
      WITH o AS (
        INSERT INTO outfits (id, image_key, image_original_key, user_id, private, created, modified)
        SELECT id, 'outfits/' || id, 'outfits/' || id, 1 + id % 500, ${isPrivate}, id / 3 * 1000000::bigint,
               (id * 104729::bigint) % 120011 / 7 * 1000000
        FROM generate_series(1, 120000) id
        RETURNING *
      )
      INSERT INTO outfit_like_counts SELECT id, private, user_id, (id * 7919) % 997 / 10 FROM o;
    `),
  );

  async function cursorAt({ field }: Ordering, offset: number): Promise<string> {
    const { rows } = await gateway.database.pool.query(
      `SELECT ${field} AS value, id FROM outfits JOIN outfit_like_counts USING (id)
       ORDER BY ${field}, id OFFSET ${offset} LIMIT 1`,
    );
    return formatCursor(field, { value: BigInt(rows[0].value), id: rows[0].id });
  }

  /** The plans of each statement that a gateway with these settings sends for a query. */
  async function plansWith(settings: Partial<Config>, query: string, viewer?: number) {
    const app = await buildApp({ ...gateway.config, ...settings }, gateway.database);
    onTestFinished(() => app.close());
    const headers = await signIn(viewer);
    return plansOf(gateway, query, async (text) => {
      const payload = { query: text };
      return (await app.inject({ method: 'POST', url: '/graphql', headers, payload })).json();
    });
  }

  // Forward in one direction of an ordering is backward in the other.
  const ascending = orderings.filter(({ sign }) => sign === 1);
  describe.each(ascending)('a range by $field from the middle of the list', (ordering) => {
    test.each([
      ['forward', (cursor: string) => `first: ${size}, after: "${cursor}"`],
      ['backward', (cursor: string) => `last: ${size}, before: "${cursor}"`],
    ])('%s is read by index seeks alone', async (_direction, range) => {
      const cursor = await cursorAt(ordering, 60_000);
      const query = `{ outfitConnection(ordering: ${ordering.enum}, ${range(cursor)}) {
        edges { cursor node { id: databaseId title user { username } } }
        pageInfo { hasNextPage hasPreviousPage } } }`;
      const plans = await plansOf(gateway, query);
      expect(plans.map(({ length }) => length)).toEqual([2, 2]);
      for (const plan of plans.flat()) {
        // A seek that begins at the end of its range reads few rows, but many pages of the index.
        expect(blocksOf(plan)).toBeLessThan(300);
        const reads = readsOf(plan);
        expect(reads.length).toBeGreaterThan(0);
        // Nobody's own outfits are a range without rows, whatever its plan.
        for (const read of reads.filter((one) => one['Actual Rows'] > 0)) {
          expect(read['Node Type']).toMatch(/^Index (Only )?Scan$/);
        }
        // Both segments of the list, public and private, can give all rows of a range.
        expect(countReads(plan)).toBeLessThanOrEqual(2 * (size + 1));
        for (const sort of nodesOf(plan).filter((node) => node['Node Type'].includes('Sort'))) {
          // What the two segments gave is put in order, and nothing else.
          const [input] = sort.Plans ?? [];
          expect(input?.['Actual Rows']).toBeLessThanOrEqual(2 * (size + 1));
        }
      }
    });
  });

  describe.each([
    { pageSize: 100, limit: 101 },
    { pageSize: 1000, limit: 1000 },
  ])('page 1 of $pageSize', ({ pageSize, limit }) => {
    test.each(orderings)('by $enum is read from the beginning of the indexes', async (ordering) => {
      const query = `{ outfits(ordering: ${ordering.enum}) { count results { id: databaseId } } }`;
      const plans = await plansWith({ pageSize, graphqlMaxCost: 1_000_000 }, query);
      expect(plans.map(({ length }) => length)).toEqual([2]);
      for (const plan of plans.flat()) {
        expect(nodesOf(plan).map((node) => node['Node Type'])).not.toContain('Function Scan');
        const [list, joined] = ordering.field === 'likes' ? tables.toReversed() : tables;
        // Nobody's own outfits are a range without rows, whatever its plan.
        const found = (table: unknown) =>
          readsOf(plan, [table as Table]).filter((read) => read['Actual Rows'] > 0);
        for (const read of found(list)) expect(read['Node Type']).toMatch(/^Index (Only )?Scan$/);
        expect(countReads(plan, [list as Table])).toBeLessThanOrEqual(2 * limit);
        for (const read of found(joined)) {
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
    // The viewer's outfits are the newest, behind the private ones of everyone else: a plan that
    // looks for them in the order of the list reads all of those.
    beforeAll(async () => {
      await run(`
        UPDATE outfits SET private = true, user_id = ${viewer} WHERE id > 117000;
        UPDATE outfits SET private = true WHERE id <= 60000 AND user_id <> ${viewer};
      `);
      const { rows } = await gateway.database.pool.query(
        `SELECT count(*)::int AS owned FROM outfits WHERE user_id = ${viewer}`,
      );
      owned = rows[0].owned;
    });

    test.each(orderings)(
      "by $enum, a viewer's list costs no more than seeks and what the viewer owns",
      async (ordering) => {
        const cursor = await cursorAt(ordering, 20_000);
        const range = `outfitConnection(ordering: ${ordering.enum}, first: ${size}, after: "${cursor}")`;
        const plans = await plansWith(
          { privateOutfits: 'owner' },
          `{ ${range} { totalCount edges { cursor } pageInfo { hasPreviousPage } }
             outfits(ordering: ${ordering.enum}, page: 2000) { count results { id: databaseId } } }`,
          viewer,
        );
        // A range, whether there is more before it, its count, and a page.
        expect(plans.map(({ length }) => length)).toEqual([2, 2, 2, 2]);
        for (const plan of plans.flat()) {
          for (const read of readsOf(plan)) {
            expect(read['Node Type']).toMatch(/^(Index (Only )?|Bitmap Heap )Scan$/);
          }
          // What the viewer owns, as many public ones, the rows of a page or range, and a bucket.
          expect(countReads(plan)).toBeLessThanOrEqual(2 * owned + 2 * (size + 1) + 1000);
        }
      },
    );
  });

  describe('of twelve users', () => {
    beforeAll(() => run(`UPDATE outfits SET user_id = 1 + id % 12, private = ${isPrivate};`));

    const most = 101;

    // A plan for any values that counts on few rows within bounds reads and sorts all outfits of a user.
    describe.each([1, 3])('the first outfits of each of %i', (users) => {
      test.each(orderings)('by $enum are read without the others', async (ordering) => {
        const lists = Array.from(
          { length: users },
          (_, index) => `user${index}: user(databaseId: ${index + 1}) {
            outfitConnection(ordering: ${ordering.enum}, first: ${most - 1}) {
              edges { cursor } pageInfo { hasNextPage } } }`,
        );
        const plans = (await plansOf(gateway, `{ ${lists.join(' ')} }`)).flat();
        const reads = plans.map((plan) => countReads(plan)).filter((count) => count > 0);
        expect(reads).toHaveLength(2);
        // Both segments of a list, public and private, can give all its first rows. A walk by id may follow the table, where
        // each twelfth outfit is one of the user, instead of their index.
        const each = ordering.enum.startsWith('ID') ? 24 : 2;
        expect(Math.max(...reads)).toBeLessThanOrEqual(users * each * most);
      });
    });
  });
});

// Walking a whole list with cursors while it changes. A list that stays is walked in filters.test.ts, in every way.
import { describe, expect, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import type { OutfitRow } from '../../src/outfits/row.ts';
import { saveOutfits } from '../../src/outfits/writes/bulk.ts';
import { useGateway } from '../support/gateway.ts';
import { type Filter, matches } from '../support/models/filter-model.ts';
import { orderings, sortIds } from '../support/models/orderings.ts';
import { walk } from '../support/models/walk.ts';

// Few different values, so that most neighbours tie.
const rows: readonly OutfitRow[] = [...generateOutfits({ outfits: 205, users: 20 })].map(
  (row, index) => ({
    ...row,
    likes: index % 3 === 0 ? 0 : (index * 7) % 11,
    created: row.created - (row.created % 20_000_000_000_000n),
    modified: 1_700_000_000_000_000n + BigInt((index * 13) % 5),
  }),
);

describe('on PostgreSQL', () => {
  const changing = useGateway('PostgreSQL');

  // Each is read in another way: see filters.md. A twin is let through as its model is.
  const filters: readonly (Filter | null)[] = [
    null,
    { likesFrom: 1 },
    { private: false },
    { search: 'the' },
  ];
  // Each filter in every fourth order, so that there is one for each order.
  const walks = filters.flatMap((filter, first) =>
    orderings
      .filter((_ordering, place) => (place - first) % filters.length === 0)
      .map((ordering) => ({ filter, ordering })),
  );
  describe.each(['forward', 'backward'] as const)('a walk %s while others write', (way) => {
    test.each(walks)(
      'by $ordering.enum of $filter: repeats and skips no outfit that stayed',
      async ({ filter, ordering }) => {
        await changing.database.pool.query(
          'TRUNCATE outfits, outfit_like_counts, users, outfit_likes, idempotency_keys',
        );
        await saveOutfits(changing.database.pool, rows);
        const found = rows.filter((row) => matches(row, filter ?? {}));
        const sorted = sortIds(found, ordering);
        const original = new Set(sorted);
        const known = new Map(rows.map((row) => [row.id, row]));
        const deleted = new Set<number>();
        // As many stops whatever the filter leaves.
        const size = Math.max(1, Math.floor(sorted.length / 11));

        const disturb = async (last: number) => {
          // The outfit that the cursor was made from goes, and so do its neighbours on both sides;
          const place = sorted.indexOf(last);
          const doomed = place === -1 ? [last] : sorted.slice(Math.max(0, place - 1), place + 2);
          await changing.database.pool.query('DELETE FROM outfits WHERE id = ANY($1)', [doomed]);
          for (const id of doomed) deleted.add(id);
          // and new ones come at the same sort value, at both ends and in the middle of the list.
          const twins = [last, sorted[0], sorted[sorted.length >> 1], sorted.at(-1)]
            .flatMap((id) => known.get(id ?? 0) ?? [])
            .map((row, index) => ({ ...row, id: 10_000 + known.size + index }));
          for (const twin of twins) known.set(twin.id, twin);
          await saveOutfits(changing.database.pool, twins);
        };
        const { ids: met } = await walk(changing.post, {
          ...{ way, ordering, size, filter, onSlice: disturb },
        });

        expect(new Set(met).size).toBe(met.length);
        const stayed = (id: number) => original.has(id) && !deleted.has(id);
        expect(met.filter(stayed)).toEqual(sorted.filter(stayed));
        expect(deleted.size).toBeGreaterThan(20);
        const all = [...known.values()].filter(({ id }) => met.includes(id));
        expect(met).toEqual(sortIds(all, ordering));
      },
    );
  });
});

// Walking a whole list with cursors while it changes. A list that stays is walked in visibility.test.ts, in every way.
import { describe, expect, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import {
  type OutfitOrdering,
  ScrollOutfitsDocument,
  type ScrollOutfitsQuery,
} from '../../src/generated/test-client.ts';
import type { OutfitRow } from '../../src/outfits/row.ts';
import { saveOutfits } from '../../src/outfits/writes/bulk.ts';
import { type TestGateway, useGateway } from '../support/gateway.ts';
import { amount, laneKinds } from '../support/lane.ts';
import { type Filter, matches } from '../support/models/filter-model.ts';
import { type Ordering, orderings, sortIds } from '../support/models/orderings.ts';

/** A walk that has met more pages than this goes round in circles. */
const mostPages = 300;

/** @param onPage called after each page with the id at the end where the walk goes on */
async function walkConnection(
  gateway: TestGateway,
  ordering: Ordering,
  direction: 'forward' | 'backward',
  size: number,
  filter: Filter | null = null,
  onPage: (last: number) => Promise<void> = async () => {},
): Promise<number[]> {
  const forward = direction === 'forward';
  const pages: number[][] = [];
  let cursor: string | null = null;
  for (let more = true; more; ) {
    expect(pages.length).toBeLessThan(mostPages);
    const data: ScrollOutfitsQuery = await gateway.query(ScrollOutfitsDocument, {
      ordering: ordering.enum as OutfitOrdering,
      filter: filter as never,
      ...(forward ? { first: size, after: cursor } : { last: size, before: cursor }),
    });
    const range: ScrollOutfitsQuery['outfitConnection'] = data.outfitConnection;
    const { edges, pageInfo } = range ?? expect.fail('no range');
    pages.push(edges.map(({ node }) => node.id));
    more = forward ? pageInfo.hasNextPage : pageInfo.hasPreviousPage;
    cursor = forward ? pageInfo.endCursor : pageInfo.startCursor;
    if (more) expect(edges).toHaveLength(size);
    const end = forward ? edges.at(-1) : edges[0];
    if (end) await onPage(end.node.id);
  }
  return (forward ? pages : pages.reverse()).flat();
}

// Few different values, so that most neighbours tie.
const rows: readonly OutfitRow[] = [...generateOutfits({ outfits: 205, users: 20 })].map(
  (row, index) => ({
    ...row,
    likes: index % 3 === 0 ? 0 : (index * 7) % 11,
    created: row.created - (row.created % 20_000_000_000_000n),
    modified: 1_700_000_000_000_000n + BigInt((index * 13) % 5),
  }),
);

describe.each(laneKinds)('on %s', (kind) => {
  const changing = useGateway(kind);

  const replaceRows = (list: readonly OutfitRow[]) =>
    saveOutfits(changing.database.pool, list, { replace: true });

  // Each is read in another way: see filters.md. A twin is let through as its model is.
  const filters: readonly (Filter | null)[] = [
    null,
    { likesFrom: 1 },
    { private: false },
    { search: 'the' },
  ];
  // Each of them in every second order, or in npm test in every fourth: each order twice or once.
  const step = amount(filters.length, 2);
  const walks = filters.flatMap((filter, first) =>
    orderings
      .filter((_ordering, place) => (place - first) % step === 0)
      .map((ordering) => ({ filter, ordering })),
  );
  describe.each(['forward', 'backward'] as const)('a walk %s while others write', (direction) => {
    test.each(walks)(
      'by $ordering.enum of $filter: repeats and skips no outfit that stayed',
      async ({ filter, ordering }) => {
        await replaceRows(rows);
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
          const models = [last, sorted[0], sorted[sorted.length >> 1], sorted.at(-1)].map((id) =>
            known.get(id ?? 0),
          );
          const twins = models
            .flatMap((row) => (row ? [row] : []))
            .map((row, index) => ({ ...row, id: 10_000 + known.size + index }));
          for (const twin of twins) known.set(twin.id, twin);
          await saveOutfits(changing.database.pool, twins);
        };
        const met = await walkConnection(changing, ordering, direction, size, filter, disturb);

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

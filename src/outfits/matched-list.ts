// Lists that a filter makes, read as what their conditions match: flat in nothing, exact in all.
import type { Access, ReadOptions, ReadRows } from '../database/read.ts';
import {
  accessOf,
  conditionsOf,
  createValues,
  isSelective,
  type OutfitFilter,
  sourceOf,
  type Values,
  viewerOf,
} from './filter.ts';
import { beyond, inOrder, type KeysetPageRequest, keysetBounds } from './keyset-page.ts';
import type { OutfitList } from './list.ts';
import { madeOfCount, madeOfPage, madeOfRange, membersOf } from './made-of.ts';
import { keyOf, type Ordering, orderBy } from './ordering.ts';
import { outfitsIn, type PageRow, pageOf } from './pages.ts';
import { rangesOf } from './ranges.ts';
import { type FlatRow, joinedRow, placedRow, rowColumns, rowOf } from './row.ts';
import { type Visibility, visibleOf } from './visibility.ts';

/**
 * A page or a count reads all that the filter matches: by an index if it has a condition that one
 * serves, and the whole table otherwise, for as long as a statement may take. A range does the same
 * with an index, and otherwise walks the list from its place until it has enough.
 */
export function createMatchedList(
  read: ReadRows,
  visibility: Visibility,
  filter: OutfitFilter,
): OutfitList {
  // Which index is best depends on the values.
  const run = <Row extends object>(
    text: string,
    { list }: Values,
    access: Access,
    madeOf: Required<ReadOptions<Row>>['madeOf'],
  ) => read<Row>(text, list, { planForValues: true, access, madeOf });
  const access = accessOf(filter);
  const members = membersOf(visibility, filter);

  const conditionsFor = (add: Values['add']) => [
    visibleOf(visibility, 's.user_id', viewerOf(visibility, add)),
    ...conditionsOf(filter, add),
  ];

  const keysetPage = async (request: KeysetPageRequest) => {
    const values = createValues();
    const { reading, bounds } = keysetBounds(request, values.add);
    const places = isSelective(filter)
      ? matchedPlaces(reading, filter, [...conditionsFor(values.add), ...bounds])
      : walkedPlaces(visibility, filter, reading, bounds, request.limit, values.add);
    const statement = `
      ${places.prelude}
      SELECT ${rowColumns}
      FROM (SELECT id FROM ${places.table} s ORDER BY ${orderBy(reading, 's', 's')} LIMIT ${request.limit}) place
      JOIN outfits o ON o.id = place.id
      ${joinedRow}
      ORDER BY ${orderBy(reading)}`;
    // A walk may find enough soon, whatever it reads.
    const walkAccess = access === 'scan' ? 'unbounded' : access;
    const rows = await run<FlatRow>(statement, values, walkAccess, (found) =>
      madeOfRange(members, request, inOrder(found, request.from)),
    );
    return inOrder(rows.map(rowOf), request.from);
  };

  return {
    async page({ ordering, page, pageSize }) {
      const values = createValues(page === 'last' ? null : (page - 1) * pageSize, pageSize);
      const statement = matchedPage(ordering, filter, conditionsFor(values.add));
      const rows = await run<PageRow>(statement, values, access, (found) =>
        madeOfPage(members, ordering, outfitsIn(found)),
      );
      return pageOf(rows, page, pageSize);
    },
    keysetPage,
    async hasOutfitAt(ordering, key, side) {
      return (await keysetPage(beyond(ordering, key, side))).length > 0;
    },
    async count() {
      const values = createValues();
      const conditions = conditionsFor(values.add).join(' AND ');
      const statement = `SELECT count(*)::int AS count FROM ${sourceOf({ field: 'id' }, filter)} WHERE ${conditions}`;
      const [row] = await run<{ count: number }>(statement, values, access, () =>
        madeOfCount(members),
      );
      return row?.count ?? 0;
    },
  };
}

interface Places {
  readonly prelude: string;
  readonly table: string;
}

/** All that match, found before they are sorted: in the order of the list, a rare one is far away. */
function matchedPlaces(
  { field }: Ordering,
  filter: OutfitFilter,
  conditions: readonly string[],
): Places {
  const source = sourceOf({ field }, filter, true);
  return {
    prelude: `WITH matched AS MATERIALIZED (
      SELECT ${keyOf(field, 's').join(', ')} FROM ${source} WHERE ${conditions.join(' AND ')}
    )`,
    table: 'matched',
  };
}

function walkedPlaces(
  visibility: Visibility,
  filter: OutfitFilter,
  reading: Ordering,
  bounds: readonly string[],
  limit: number,
  add: Values['add'],
): Places {
  const viewer = viewerOf(visibility, add);
  const conditions = [...bounds, ...conditionsOf(filter, add)];
  const ranges = rangesOf(visibility, viewer, reading, limit, conditions, filter);
  return { prelude: '', table: `(${ranges.join(' UNION ALL ')})` };
}

/** $1 outfits to skip (null: to the last page), $2 page size, then what the conditions need. */
function matchedPage(
  ordering: Ordering,
  filter: OutfitFilter,
  conditions: readonly string[],
): string {
  const { prelude, table } = matchedPlaces(ordering, filter, conditions);
  return `
    ${prelude}
    SELECT total.count, ${rowColumns}
    FROM (SELECT count(*)::int AS count FROM ${table}) total
    LEFT JOIN LATERAL (
      SELECT id FROM ${table} s ORDER BY ${orderBy(ordering, 's', 's')}
      OFFSET coalesce($1::bigint, greatest(total.count - 1, 0) / $2::int * $2::int) LIMIT $2::int
    ) place ON true
    ${placedRow}
    ORDER BY ${orderBy(ordering)}`;
}

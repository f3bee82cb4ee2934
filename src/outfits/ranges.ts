// The index ranges that a list is merged from.
import { keyColumns, type Ordering, orderBy } from './ordering.ts';
import type { Visibility } from './visibility.ts';

/** What a list has of the outfits with one value of `private`, as outfits `s`. */
interface Segment {
  readonly table: string;
  readonly condition: string;
}

/**
 * What the visible list is a merge of. The indexes lead with `private`, so each segment is one range.
 * @param viewer placeholder of the viewer's id
 */
function segmentsOf(visibility: Visibility, viewer: string): readonly Segment[] {
  const publicOnes = { table: 'outfits s', condition: 'NOT s.private' };
  switch (visibility.private) {
    case 'all':
      return [publicOnes, { table: 'outfits s', condition: 's.private' }];
    case 'none':
      return [publicOnes];
    case 'own':
      return [publicOnes, { table: `${outfitsOf(viewer)} s`, condition: 's.private' }];
  }
}

/**
 * The outfits of one user as a table. OFFSET 0 keeps its condition apart from others, so that they
 * are found by their user: the index of a list would lead past the private outfits of everyone.
 * @param user placeholder of the user's id
 */
export function outfitsOf(user: string): string {
  return `(SELECT * FROM outfits WHERE user_id = ${user}::int OFFSET 0)`;
}

/**
 * The first `limit` outfits of each segment that meet the conditions. The limit is written out: one
 * that is not known when the plan is made tempts the planner to sort. The order begins with
 * `private`, so that it is the index's: by the id alone, the planner would walk the primary key
 * past all outfits of the other segment.
 * @param viewer placeholder of the viewer's id
 */
export function rangesOf(
  visibility: Visibility,
  viewer: string,
  ordering: Ordering,
  limit: number,
  conditions: readonly string[] = [],
  columns = '*',
): string[] {
  return segmentsOf(visibility, viewer).map(
    ({ table, condition }) => `(
      SELECT ${columns} FROM ${table} WHERE ${[condition, ...conditions].join(' AND ')}
      ORDER BY s.private ${ordering.direction}, ${orderBy(ordering, 's')} LIMIT ${limit}
    )`,
  );
}

/** A bound on the sort key, with a placeholder from `first` on for each of its columns. */
export function boundOf(ordering: Ordering, operator: string, first: number): string {
  const columns = keyColumns(ordering.field);
  const names = columns.map((column) => `s.${column}`);
  const values = columns.map(
    (column, index) => `$${first + index}::${column === 'id' ? 'int' : 'bigint'}`,
  );
  return `(${names.join(', ')}) ${operator} (${values.join(', ')})`;
}

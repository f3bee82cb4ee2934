import { keyColumns, type Ordering, orderBy } from './ordering.ts';

/** The values of `private`. The indexes lead with it, so a list is a merge of a range of each. */
const segments = ['false', 'true'] as const;
type Segment = (typeof segments)[number];

/**
 * The first `limit` outfits of each segment that meet the conditions. The limit is written out: one
 * that is not known when the plan is made tempts the planner to sort. The order begins with
 * `private`, so that it is the index's: by the id alone, the planner would walk the primary key
 * past all outfits of the other segment.
 */
export function rangesOf(
  ordering: Ordering,
  limit: number,
  conditions: readonly string[] = [],
  columns = '*',
): string[] {
  return segments.map(
    (segment) => `(
      SELECT ${columns} FROM outfits s WHERE ${[conditionOf(segment), ...conditions].join(' AND ')}
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

function conditionOf(segment: Segment): string {
  return segment === 'true' ? 's.private' : 'NOT s.private';
}

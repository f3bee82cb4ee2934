import { keyColumns, type Ordering, orderBy } from './ordering.ts';

/** The values of `private`. The indexes lead with it, so a list is a merge of a range of each. */
export const segments = ['false', 'true'] as const;
export type Segment = (typeof segments)[number];

/** The order of the index that serves an ordering. */
export function indexOrder(ordering: Ordering): string {
  return `s.private ${ordering.direction}, ${orderBy(ordering, 's')}`;
}

/**
 * The first `limit` outfits of each segment. The limit is written out: one that is not known when
 * the plan is made tempts the planner to sort.
 */
export function mergeRanges(
  ordering: Ordering,
  limit: number,
  conditionsOf: (segment: Segment) => readonly string[] = () => [],
): string {
  return segments
    .map((segment) => {
      const conditions = [
        segment === 'true' ? 's.private' : 'NOT s.private',
        ...conditionsOf(segment),
      ];
      return `
        (SELECT * FROM outfits s WHERE ${conditions.join(' AND ')}
         ORDER BY ${indexOrder(ordering)} LIMIT ${limit})`;
    })
    .join(' UNION ALL ');
}

/**
 * A bound, as a placeholder from `first` on for each column of the sort key. It names the whole
 * index: a bound on the id alone would let the planner walk the primary key past all outfits of the
 * other segment.
 */
export function boundOf(
  segment: Segment,
  ordering: Ordering,
  operator: string,
  first: number,
): string {
  const columns = keyColumns(ordering.field);
  const values = columns.map(
    (column, index) => `$${first + index}::${column === 'id' ? 'int' : 'bigint'}`,
  );
  const names = columns.map((column) => `s.${column}`);
  return `(s.private, ${names.join(', ')}) ${operator} (${segment}, ${values.join(', ')}) AND s.private = ${segment}`;
}

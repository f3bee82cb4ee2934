// The index ranges that a list is merged from.
import { type OutfitFilter, sourceOf } from './filter.ts';
import { keyColumns, keyOf, type Ordering, orderBy } from './ordering.ts';
import type { Visibility } from './visibility.ts';

/** Most outfits of a range of a connection: `first: 100`, and the one that tells whether there is a next page. */
export const maxRows = 101;

/**
 * The limit of the ranges that `rows` outfits are merged from. Rounded up, since each limit is a statement of its
 * own to prepare: 21 is a page of 20 and the one behind it. Above `maxRows` are only values of PAGE_SIZE, of which
 * a process has one.
 */
export function rangeLimit(rows: number): number {
  return [21, maxRows].find((limit) => rows <= limit) ?? rows;
}

/**
 * What the visible list is a merge of, as conditions of `s`: each is one range of an index, as those
 * of lists lead with `private`, and those of users with the user and it.
 * @param s outfits, or their likes
 * @param viewer placeholder of the viewer's id
 * @param owner SQL of the id of the user whose outfits are meant; undefined: everyone's
 */
function segmentsOf(
  s: string,
  visibility: Visibility,
  viewer: string,
  owner?: string,
): readonly string[] {
  const publics = owner ? `${s}.user_id = ${owner} AND NOT ${s}.private` : `NOT ${s}.private`;
  switch (visibility.private) {
    case 'all':
      return [publics, owner ? `${s}.user_id = ${owner} AND ${s}.private` : `${s}.private`];
    case 'none':
      return [publics];
    case 'own': {
      const own = `${s}.user_id = ${viewer}::int AND ${s}.private`;
      return [publics, owner ? `${own} AND ${owner} = ${viewer}::int` : own];
    }
  }
}

/**
 * The first `limit` outfits of each segment that meet the conditions. The limit is written out: one
 * that is not known when the plan is made tempts the planner to sort. The order begins with
 * `private`, so that it is the index's: by the id alone, the planner would walk the primary key
 * past all outfits of the other segment. Gives all columns of outfits, or of likes where those order the list.
 * @param viewer placeholder of the viewer's id
 * @param conditions of outfits `s` and likes `l`: those of `filter`, and bounds of the sort key
 * @param owner SQL of the id of the user whose outfits are meant; undefined: everyone's
 */
export function rangesOf(
  visibility: Visibility,
  viewer: string,
  ordering: Ordering,
  limit: number,
  conditions: readonly string[] = [],
  filter: OutfitFilter = {},
  owner?: string,
): string[] {
  const leading = ordering.field === 'likes' ? 'l' : 's';
  return segmentsOf(leading, visibility, viewer, owner).map(
    (segment) => `(
      SELECT ${leading}.* FROM ${sourceOf(ordering, filter)}
      WHERE ${[segment, ...conditions].join(' AND ')}
      ORDER BY ${leading}.private ${ordering.direction}, ${orderBy(ordering, 's')} LIMIT ${limit}
    )`,
  );
}

/** A bound on the sort key, with a placeholder from `first` on for each of its columns. */
export function boundOf({ field }: Ordering, operator: string, first: number): string {
  const values = keyColumns(field).map(
    (column, index) => `$${first + index}::${column === 'id' ? 'int' : 'bigint'}`,
  );
  return `(${keyOf(field, 's').join(', ')}) ${operator} (${values.join(', ')})`;
}

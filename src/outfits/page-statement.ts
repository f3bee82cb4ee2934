// The statement of a numbered page, for lists that all see alike and for a viewer's own, whole or a
// span of them.
import { keyColumns, type Ordering, type OrderingField } from './ordering.ts';
import { outfitsOf } from './ranges.ts';
import { rowColumns } from './row.ts';
import type { Visibility } from './visibility.ts';

/** A range of the sort field, half-open, as placeholders of its ends. */
export interface SpanPlaceholders {
  readonly field: 'created' | 'likes';
  readonly from?: string | undefined;
  readonly below?: string | undefined;
}

/**
 * Gives the rows of a numbered page, each with the count of the list; one row without an outfit when
 * the page has none. $1 which private ones: all or none as a boolean, or a user's as their id;
 * $2 outfits to skip (null: to the last page); $3 page size. The functions walk in ascending order:
 * a descending page is the mirrored range, read from its end.
 * @param span what of the list is meant, by the field that sorts it
 */
export function pageStatement(
  ordering: Ordering,
  visibility: Visibility,
  span?: SpanPlaceholders,
): string {
  const { field, direction } = ordering;
  const { prelude, total, places } =
    visibility.private === 'own' ? ownList(field, span) : sharedList(field, span);
  const start = direction === 'asc' ? 'skip' : 'greatest(count - skip - $3::int, 0)';
  return `
    ${prelude}
    SELECT page.count, ${rowColumns}
    FROM (
      SELECT total.*, coalesce($2::bigint, greatest(count - 1, 0) / $3::int * $3::int) AS skip
      FROM (${total}) total
    ) page
    CROSS JOIN LATERAL (
      SELECT ${start} AS start, least(greatest(count - skip, 0), $3::int)::int AS size
    ) span
    LEFT JOIN LATERAL ${places} place ON true
    LEFT JOIN outfits o ON o.id = place.id
    LEFT JOIN users u ON u.id = o.user_id
    ORDER BY place.position ${direction}`;
}

/** The parts of a page statement that know which outfits are in the list. */
interface ListParts {
  readonly prelude: string;
  /** Gives `count`, and whatever else `places` needs. */
  readonly total: string;
  /** Gives `position` and `id` of `size` outfits in ascending order from `start` on. */
  readonly places: string;
}

/** The list with all private outfits or none. */
function sharedList(field: OrderingField, span?: SpanPlaceholders): ListParts {
  if (span) {
    return {
      prelude: '',
      total: spanTotal(span, '$1::boolean'),
      places: `outfits_by_${field}($1::boolean, preceding + start, size)`,
    };
  }
  return {
    prelude: '',
    // OFFSET 0, or else the planner would call the function once for each use.
    total: 'SELECT count_outfits($1::boolean)::int AS count OFFSET 0',
    places: `outfits_by_${field}($1::boolean, start, size)`,
  };
}

/**
 * The list with one user's private outfits. At most `own` outfits before any place are private, so
 * the public ones of the page are those from number `start - own` to `start + size`.
 */
function ownList(field: OrderingField, span?: SpanPlaceholders): ListParts {
  const key = keyColumns(field).join(', ');
  const publicOnes = span
    ? `(SELECT preceding, count AS public FROM (${spanTotal(span, 'false')}) s)`
    : '(SELECT count_outfits(false)::int AS public OFFSET 0)';
  const preceding = span ? 'preceding, ' : '';
  const condition = ['s.private', ...(span ? spanConditions(span) : [])].join(' AND ');
  return {
    prelude: `WITH own AS MATERIALIZED (SELECT ${key} FROM ${outfitsOf('$1')} s WHERE ${condition})`,
    total: `
      SELECT ${preceding}public, own, public + own AS count
      FROM ${publicOnes} p,
        (SELECT count(*)::int AS own FROM own) o`,
    places: `(
      SELECT row_number() OVER () AS position, merged.id
      FROM (SELECT greatest(start - own, 0) AS low) bound
      CROSS JOIN LATERAL (
        SELECT ${key}
        FROM outfits_by_${field}(false, ${span ? 'preceding + low' : 'low'}, greatest(least(start + size, public) - low, 0)::int)
        JOIN outfits USING (id)
        UNION ALL SELECT ${key} FROM own
        ORDER BY ${key} OFFSET start - low LIMIT size
      ) merged
    )`,
  };
}

/**
 * Gives `count`, the outfits of a span, and `preceding`, those that sort below it.
 * @param withPrivate SQL: whether private ones count
 */
export function spanTotal({ field, from, below }: SpanPlaceholders, withPrivate: string): string {
  const rank = (value: string) => `rank_outfits('${field}', ${withPrivate}, ${value}::bigint)`;
  // OFFSET 0, or else the planner would call the functions once for each use.
  return `
    SELECT preceding, greatest(reached - preceding, 0)::int AS count
    FROM (
      SELECT ${from ? rank(from) : '0::bigint'} AS preceding,
        ${below ? rank(below) : `count_outfits(${withPrivate})`} AS reached
      OFFSET 0
    ) ends`;
}

/** What the outfits `s` of a span are, in SQL. */
export function spanConditions({ field, from, below }: SpanPlaceholders): string[] {
  return [
    ...(from ? [`s.${field} >= ${from}::bigint`] : []),
    ...(below ? [`s.${field} < ${below}::bigint`] : []),
  ];
}

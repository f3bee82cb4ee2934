// The statement of a numbered page: of the whole list, of a span of it, or of one user's outfits.
import { type Ordering, orderBy } from './ordering.ts';
import { rangesOf } from './ranges.ts';
import { placedRow, rowColumns, rowSource } from './row.ts';
import type { Visibility } from './visibility.ts';

/** Whose outfits are in a list, in SQL: a user's id, or `everyone`. */
export interface ListMembers {
  readonly publics: string;
  /** NULL: nobody's. */
  readonly privates: string;
}

/** A range of the sort field, half-open, as placeholders of its ends. */
export interface SpanPlaceholders {
  readonly field: 'created' | 'likes';
  readonly from?: string | undefined;
  readonly below?: string | undefined;
}

/** Placeholders of the values that `membersIn` (visibility.ts) gives. */
export const givenMembers: ListMembers = { publics: '$1::bigint', privates: '$2::bigint' };

/**
 * Gives the rows of a numbered page, each with the count of the list; one row without an outfit when
 * the page has none. $1 and $2 whose outfits; $3 outfits to skip (null: to the last page); $4 page size.
 * @param span what of the list is meant, by the field that sorts it
 */
export function pageStatement(ordering: Ordering, span?: SpanPlaceholders): string {
  const total = span ? spanTotal(span) : wholeTotal(givenMembers);
  return `
    SELECT page.count, ${rowColumns}
    FROM ${pageOfList(ordering, givenMembers, { skip: '$3', size: '$4' }, total)}
    ORDER BY place.position ${ordering.direction}`;
}

/**
 * The same for a page that ends within the first `limit` outfits of the whole list. Those are walked over: to find
 * their place by the counts takes longer, and the first pages are those that are asked for. $5 is the viewer.
 */
export function nearPageStatement(
  visibility: Visibility,
  ordering: Ordering,
  limit: number,
): string {
  const ranges = rangesOf(visibility, '$5', ordering, limit);
  return `
    SELECT page.count, ${rowColumns}
    FROM (${wholeTotal(givenMembers)}) page
    LEFT JOIN (${rowSource(ordering, ranges, 'OFFSET $3::bigint LIMIT $4::int')}) ON true
    ORDER BY ${orderBy(ordering)}`;
}

/**
 * What a page is read from: its `count` as page, its outfits as o and their owners as u, in the order of
 * place.position. The functions walk in ascending order: a descending page is the mirrored range, read
 * from its end.
 * @param total gives `count`, and `preceding`, the outfits before the first one. It ends with OFFSET 0, or
 *   else the planner would call its functions once for each use.
 */
export function pageOfList(
  { field, direction }: Ordering,
  members: ListMembers,
  { skip, size }: { readonly skip: string; readonly size: string },
  total: string,
): string {
  const start = direction === 'asc' ? 'skip' : `greatest(count - skip - ${size}::int, 0)`;
  return `(
      SELECT total.*, coalesce(${skip}::bigint, greatest(count - 1, 0) / ${size}::int * ${size}::int) AS skip
      FROM (${total}) total
    ) page
    CROSS JOIN LATERAL (
      SELECT preceding + ${start} AS start, least(greatest(count - skip, 0), ${size}::int)::int AS size
    ) span
    LEFT JOIN LATERAL outfits_by_${field}(${members.publics}, ${members.privates}, start, size) place ON true
    ${field === 'likes' ? joinLiked : placedRow}`;
}

/** The likes of a place by likes are known: they sort it. */
const joinLiked = `
    CROSS JOIN LATERAL (SELECT place.value::int AS likes OFFSET 0) l
    LEFT JOIN (outfits o JOIN users u ON u.id = o.user_id) ON o.id = place.id`;

/** Outfits of a list, in SQL. */
export function countOf({ publics, privates }: ListMembers): string {
  return `count_outfits(${publics}, ${privates})::int`;
}

/** What `pageOfList` takes for a whole list. */
export function wholeTotal(members: ListMembers): string {
  return `SELECT ${countOf(members)} AS count, 0 AS preceding OFFSET 0`;
}

/** The same for a span. $1 and $2 whose outfits: `count` is those of the span, `preceding` those below it. */
export function spanTotal({ field, from, below }: SpanPlaceholders): string {
  const { publics, privates } = givenMembers;
  const rank = (value: string) =>
    `rank_outfits_by_${field}(${publics}, ${privates}, ${value}::bigint)`;
  return `
    SELECT preceding, greatest(reached - preceding, 0)::int AS count
    FROM (
      SELECT ${from ? rank(from) : '0::bigint'} AS preceding,
        ${below ? rank(below) : countOf(givenMembers)} AS reached
      OFFSET 0
    ) ends`;
}

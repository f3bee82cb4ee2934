// SQL of lists: numbered pages, keyset pages and counts, of one list or of the lists of several users (filters.md).
// In SQL: exact counts and pages at any depth, by buckets and row values, which Prisma cannot express.
//
// Each statement is whole, with the index ranges that a viewer sees. `${}` are names, of an ordering (`namesOf`), of tables
// and of columns, and a limit: a literal, as the planner may sort where it is a parameter. All conditions of filters are one
// text (`matches` of filter.ts), which the statements of filtered lists contain. `:name` is a value.
import type { Access } from '../../database/read.ts';
import {
  accessOf,
  filteredTables,
  isSelective,
  matches,
  type OutfitFilter,
  rangeOf,
  valuesOf,
} from '../filter.ts';
import { compareKeys, namesOf, type Ordering, reverse, type SortKey } from '../ordering.ts';
import { int4, int8, named, rowColumns } from '../row.ts';
import { isVisible, sightOf, type Visibility } from '../visibility.ts';

/** Which outfits a list contains. */
export interface Scope {
  readonly visibility: Visibility;
  readonly filter: OutfitFilter;
  /** A separate list for each of these users; undefined: one list of the outfits of all users. */
  readonly users?: readonly number[] | undefined;
}

export interface PageRequest {
  readonly ordering: Ordering;
  /** Outfits before the page; `last` is the last page of the list. */
  readonly offset: number | 'last';
  /** Outfits per page. */
  readonly pageSize: number;
}

/** The outfits strictly between two positions of a list. */
export interface KeysetPageRequest {
  readonly ordering: Ordering;
  readonly after?: SortKey | undefined;
  readonly before?: SortKey | undefined;
  /** Most outfits to read, at most `maxRows`. */
  readonly limit: number;
  /** Which end of the range to read from. */
  readonly from: 'start' | 'end';
}

export interface Statement {
  readonly text: string;
  readonly values: readonly unknown[];
  /** Not prepared: the best plan depends on the values. */
  readonly planForValues: boolean;
  readonly access: Access;
}

/** Most rows of a keyset page: `first: 100`, and one more to find out whether there is a next page. */
export const maxRows = 101;

/** Rounds up the limit of merged index ranges, as each limit is a prepared statement. 21: a page of 20 and one more. */
function rangeLimit(rows: number): number {
  return [1, 21, maxRows].find((limit) => rows <= limit) ?? rows;
}

/** A statement with the values of a list, and others. Filtered lists are planned for their values. */
function prepare(
  scope: Scope,
  text: string,
  values: Readonly<Record<string, unknown>> = {},
): Statement {
  const { visibility, filter, users } = scope;
  const isFiltered = text.includes(matches);
  const { field: _field, ...range } = rangeOf(filter) ?? {};
  return {
    ...named(text, {
      ...sightOf(visibility),
      ...(isFiltered ? valuesOf(filter) : range),
      ...{ users, user: users?.[0], isOwned: users !== undefined && !filter.liked },
      ...values,
    }),
    planForValues: isFiltered,
    access: isFiltered ? accessOf(users ? { ...filter, userIds: users } : filter) : 'bounded',
  };
}

const texts = new Map<string, string>();

/** A text of a statement that depends on these words only: joined once, as that takes a tenth of the time of a page. */
function joinOnce({ users, visibility }: Scope, words: unknown[], join: () => string): string {
  const owners = users ? Math.min(users.length, 2) : 'all';
  const key = [owners, visibility.private, ...words].join(' ');
  const text = texts.get(key) ?? join();
  texts.set(key, text);
  return text;
}

/** FROM item with the owners of lists; the list of all users has one without an id. Not unnest for one: PostgreSQL would replan each time. */
export function ownersIn(ids: readonly number[] | undefined): string {
  if (!ids) return '(SELECT NULL::int) AS owner (id)';
  return `${ids.length === 1 ? '(SELECT :user::int)' : 'unnest(:users::int[])'} AS owner (id)`;
}

/** The same without what it says of a user: a plan for a user with few outfits looks better, and would be made for each page. */
function anyOf(users: Scope['users']): string {
  return users ? `(SELECT * FROM ${ownersIn(users)} OFFSET 0) owner` : ownersIn(users);
}

/** The rows of a numbered page, each with the count; an empty page is one row without an outfit. See docs/counting.md. */
export function pageStatement(scope: Scope, request: PageRequest): Statement {
  const { ordering, offset, pageSize } = request;
  const { filter, users } = scope;
  const skip = offset === 'last' ? null : offset;
  const limit = rangeLimit(pageSize);
  const isCounted = Object.keys(filter).length === 0;
  const isRange = !users && rangeOf(filter)?.field === ordering.field;
  // Within the first rows, to walk the index is faster than a seek by the counts.
  const isNear = isCounted && !users && skip !== null && skip + pageSize <= limit;
  const words = ['page', ordering.field, ordering.direction, limit, isNear, isCounted, isRange];
  const text = joinOnce(scope, words, () =>
    isNear
      ? firstOutfits(ordering, limit, scope, 'counted')
      : isCounted && users
        ? userPage(ordering, limit, users)
        : isCounted || isRange
          ? countedPage(ordering, limit)
          : filteredList(ordering, users),
  );
  return prepare(scope, text, { ...valuesOfBounds({}), skip, size: pageSize });
}

/** The outfits of the list: a query of its own, as it would be counted for each row otherwise. */
const countOfList = `(SELECT (count_outfits(:all::boolean) + count(*))::int FROM outfits s WHERE s.user_id = :viewer::int AND s.private) AS count, `;

/**
 * The first outfits between two keys, of the list or of each user's: at most `limit` of each index range, merged. `private`
 * leads the ORDER BY of a range to match the index; otherwise the planner may walk the primary key past the other range.
 * `counted`: a page, which is one row without an outfit where there are none. `filtered`: by what no index of the ordering serves.
 */
function firstOutfits(
  ordering: Ordering,
  limit: number,
  { users, visibility }: Scope,
  kind: 'counted' | 'plain' | 'filtered',
  bounds: Bounds = {},
): string {
  const { table, value, direction, before, after, row, ...names } = namesOf(ordering);
  const [isCounted, isFiltered] = [kind === 'counted', kind === 'filtered'];
  const key = isFiltered ? names.key : 's';
  const tables = isFiltered ? filteredTables : `${table} s`;
  const matching = `${isBetween(bounds, key, value)} ${isFiltered ? `AND ${matches}` : ''}`;
  const owned = users ? `${key}.user_id = owner.id AND ` : '';
  const owners = isFiltered ? ownersIn(users) : anyOf(users);
  const visible = {
    all: [`NOT ${key}.private`, `${key}.private`],
    none: [`NOT ${key}.private`],
    own: [`NOT ${key}.private`, `${key}.user_id = :viewer::int AND ${key}.private`],
  };
  const ranges = visible[visibility.private].map(
    (range) => `(
            SELECT ${key}.* FROM ${tables} WHERE ${owned}${range} ${matching}
            ORDER BY ${key}.private ${direction}, ${key}.${value} ${direction}, ${key}.id ${direction} LIMIT ${limit})`,
  );
  return `
    SELECT owner.id AS "ownerId", ${isCounted ? countOfList : ''}${rowColumns}
    FROM ${owners} ${isCounted ? 'LEFT ' : ''}JOIN (
      ${before} (
        SELECT * FROM (
          ${ranges.join(' UNION ALL ')}
        ) s
        ORDER BY s.${value} ${direction}, s.id ${direction} OFFSET :skip::bigint LIMIT :size::int
      ) ${after}
      JOIN users u ON u.id = o.user_id
    ) ON true
    ORDER BY ${row}.${value} ${direction}, o.id ${direction}`;
}

/**
 * Any page of the list, or of a range of its field: finds the bucket of its first outfit by the counts, and walks the index
 * from there. Ascending: a descending page is the mirrored part of the list in reverse. The outer limit tells the planner how
 * few rows there are.
 */
function countedPage(ordering: Ordering, limit: number): string {
  const { table, value, direction, likes } = namesOf(ordering);
  const isDescending = direction === 'desc';
  return `
    SELECT place.count, ${rowColumns}
    FROM outfits o
    JOIN users u ON u.id = o.user_id
    RIGHT JOIN (
      SELECT total.count, place.value, place.id
      FROM (
        SELECT array_agg(s.value) AS values, array_agg(s.id) AS ids
        FROM (
          SELECT s.${value}::bigint AS value, s.id::bigint FROM ${table} s
          WHERE s.user_id = :viewer::int AND s.private ORDER BY s.${value}, s.id
        ) s
      ) own
      CROSS JOIN LATERAL (
        SELECT preceding, greatest(reached - preceding, 0)::int AS count
        FROM (
          SELECT CASE WHEN :from::bigint IS NULL THEN 0 ELSE rank_outfits('${value}', :all::boolean, :viewer, :from) END AS preceding,
            CASE WHEN :below::bigint IS NULL THEN count_outfits(:all) + coalesce(cardinality(own.values), 0)
              ELSE rank_outfits('${value}', :all, :viewer, :below) END AS reached
          OFFSET 0 -- or the functions would be called for each use
        ) ends
      ) total
      CROSS JOIN LATERAL (
        SELECT coalesce(:skip::bigint, greatest(total.count - 1, 0) / :size::int * :size) AS skip
      ) page
      CROSS JOIN LATERAL (
        SELECT total.preceding + CASE WHEN ${isDescending} THEN greatest(total.count - page.skip - :size, 0) ELSE page.skip END AS skip
      ) ascending
      CROSS JOIN LATERAL seek_outfits('${value}', :all, own.values, own.ids, ascending.skip, NULL) bucket
      LEFT JOIN LATERAL (
        SELECT * FROM (
          SELECT * FROM (
            (SELECT s.${value} AS value, s.id FROM ${table} s
             WHERE NOT s.private AND (s.${value}, s.id) >= (bucket.value, bucket.id)
             ORDER BY s.${value}, s.id LIMIT ascending.skip - bucket.preceding + :size)
            UNION ALL
            (SELECT s.${value}, s.id FROM ${table} s
             WHERE s.private AND :all AND (s.${value}, s.id) >= (bucket.value, bucket.id)
             ORDER BY s.${value}, s.id LIMIT ascending.skip - bucket.preceding + :size)
            UNION ALL
            (SELECT s.${value}, s.id FROM ${table} s
             WHERE s.user_id = :viewer AND s.private AND (s.${value}, s.id) >= (bucket.value, bucket.id)
             ORDER BY s.${value}, s.id LIMIT ascending.skip - bucket.preceding + :size)
          ) s
          ORDER BY s.value, s.id
          OFFSET ascending.skip - bucket.preceding LIMIT least(greatest(total.count - page.skip, 0), :size)
        ) s LIMIT ${limit}
      ) place ON true
    ) place ON o.id = place.id
    LEFT JOIN ${likes} l ON l.id = place.id
    ORDER BY place.value ${direction}, place.id ${direction}`;
}

/** A page of the outfits of each user, by the index of one user: from the end of the list that is closer. */
function userPage(ordering: Ordering, limit: number, users: readonly number[]): string {
  const { table, value, direction, reversed, likes } = namesOf(ordering);
  return `
    SELECT place."ownerId", place.count, ${rowColumns}
    FROM outfits o
    JOIN users u ON u.id = o.user_id
    RIGHT JOIN (
      SELECT owner.id AS "ownerId", total.count, place.value, place.id
      FROM ${anyOf(users)}
      CROSS JOIN LATERAL (
        -- Without a condition on each row, where all are visible, a tenth less.
        SELECT CASE WHEN :all::boolean THEN (SELECT count(*) FROM outfits s WHERE s.user_id = owner.id)
          ELSE (SELECT count(*) FROM outfits s WHERE s.user_id = owner.id AND ${isVisible}) END::int AS count
        OFFSET 0 -- or it would be counted for each use
      ) total
      CROSS JOIN LATERAL (
        SELECT skip, least(greatest(total.count - skip, 0), :size) AS size, skip <= total.count / 2 AS "isFromStart"
        FROM (SELECT coalesce(:skip::bigint, greatest(total.count - 1, 0) / :size::int * :size) AS skip) page
      ) page
      LEFT JOIN LATERAL (
        SELECT * FROM (
          (SELECT * FROM (
             (SELECT s.${value} AS value, s.id FROM ${table} s WHERE s.user_id = owner.id AND NOT s.private
              ORDER BY s.${value} ${direction}, s.id ${direction} LIMIT CASE WHEN page."isFromStart" THEN page.skip + :size ELSE 0 END)
             UNION ALL
             (SELECT s.${value}, s.id FROM ${table} s WHERE s.user_id = owner.id AND s.private AND (:all OR owner.id = :viewer)
              ORDER BY s.${value} ${direction}, s.id ${direction} LIMIT CASE WHEN page."isFromStart" THEN page.skip + :size ELSE 0 END)
           ) s
           ORDER BY s.value ${direction}, s.id ${direction} OFFSET page.skip LIMIT :size)
          UNION ALL
          (SELECT * FROM (
             (SELECT s.${value}, s.id FROM ${table} s WHERE s.user_id = owner.id AND NOT s.private
              ORDER BY s.${value} ${reversed}, s.id ${reversed} LIMIT CASE WHEN page."isFromStart" THEN 0 ELSE greatest(total.count - page.skip, 0) END)
             UNION ALL
             (SELECT s.${value}, s.id FROM ${table} s WHERE s.user_id = owner.id AND s.private AND (:all OR owner.id = :viewer)
              ORDER BY s.${value} ${reversed}, s.id ${reversed} LIMIT CASE WHEN page."isFromStart" THEN 0 ELSE greatest(total.count - page.skip, 0) END)
           ) s (value, id)
           ORDER BY s.value ${reversed}, s.id ${reversed} OFFSET greatest(total.count - page.skip - :size, 0) LIMIT page.size)
        ) s LIMIT ${limit}
      ) place ON true
    ) place ON o.id = place.id
    LEFT JOIN ${likes} l ON l.id = place.id
    ORDER BY place.value ${direction}, place.id ${direction}`;
}

/**
 * The count of a filtered list, and a part of it between two keys. Materializes all matches before sorting: a walk in list order
 * would read far to find rare ones.
 */
function filteredList(ordering: Ordering, users: Scope['users']): string {
  const { value, key, direction } = namesOf(ordering);
  return `
    SELECT place."ownerId", place.count, ${likedAt('o.id', 'place."ownerId"')}, ${rowColumns}
    FROM ${ownersIn(users)}
    CROSS JOIN LATERAL (
      WITH matched AS MATERIALIZED (
        SELECT ${key}.${value} AS value, s.id
        FROM ${filteredTables}
        WHERE ${isVisible} AND ${ofOwner}
        AND (${key}.${value}, s.id) >= (:low::bigint, :lowId::bigint) AND (${key}.${value}, s.id) <= (:high::bigint, :highId::bigint)
        AND ${matches}
      )
      SELECT owner.id AS "ownerId", total.count, found.value, found.id
      FROM (SELECT count(*)::int AS count FROM matched) total
      LEFT JOIN LATERAL (
        SELECT * FROM matched m ORDER BY m.value ${direction}, m.id ${direction}
        OFFSET coalesce(:skip::bigint, greatest(total.count - 1, 0) / :size::int * :size) LIMIT :size
      ) found ON true
    ) place
    LEFT JOIN (outfits o LEFT JOIN outfit_like_counts l ON l.id = o.id JOIN users u ON u.id = o.user_id) ON o.id = place.id
    ORDER BY place.value ${direction}, place.id ${direction}`;
}

export function countStatement(scope: Scope): Statement {
  const { filter, users } = scope;
  const isFiltered = Object.keys(filter).length > 0;
  const field = users ? undefined : rangeOf(filter)?.field;
  if (field || (!users && !isFiltered)) return prepare(scope, countOfAll, { field });
  return prepare(scope, totalOf('count(*)::int AS count', users, isFiltered));
}

/** The list, or a range of a field of it. Outfits are named, so that TRUNCATE is waited for before the snapshot is taken. */
const countOfAll = `
    SELECT greatest(
      CASE WHEN :below::bigint IS NULL THEN count_outfits(:all::boolean) + own.count ELSE rank_outfits(:field::text, :all, :viewer::int, :below) END
      - CASE WHEN :from::bigint IS NULL THEN 0 ELSE rank_outfits(:field, :all, :viewer, :from) END, 0)::int AS count
    FROM (SELECT count(*) AS count FROM outfits s WHERE s.user_id = :viewer AND s.private) own`;

/** The sum of the likes of each user, by the index of their likes. */
export function likesStatement(scope: Scope): Statement {
  const likes = `least(coalesce(sum(s.likes), 0), ${int4.max})::int AS likes`;
  return prepare(scope, totalOf(likes, scope.users, false, 'outfit_like_counts'));
}

/** An aggregate of the outfits of each user, or of the matches of a filter. */
function totalOf(aggregate: string, users: Scope['users'], isFiltered: boolean, table = 'outfits') {
  return `
    SELECT owner.id AS "ownerId", total.*
    FROM ${isFiltered ? ownersIn(users) : anyOf(users)}
    CROSS JOIN LATERAL (
      SELECT ${aggregate} FROM ${isFiltered ? filteredTables : `${table} s`}
      WHERE ${isVisible} AND ${isFiltered ? `${ofOwner} AND ${matches}` : 's.user_id = owner.id'}
    ) total`;
}

/** A condition of filtered lists: liked outfits may be anybody's. */
const ofOwner = '(NOT :isOwned::boolean OR s.user_id = owner.id)';

/** A column: when this user liked this outfit. */
export function likedAt(outfit: string, user: string): string {
  return `(SELECT g.created FROM outfit_likes g WHERE g.outfit_id = ${outfit} AND g.user_id = ${user}) AS "likedAt"`;
}

/** A keyset page. Costs the rows read, at any position; matches of a selective filter are materialized. */
export function rangeStatement(scope: Scope, request: KeysetPageRequest): Statement {
  const { ordering, limit, from } = request;
  // The index ranges are limited to `maxRows`: a larger page would skip rows beyond them.
  if (limit > maxRows) throw new RangeError(`A page has at most ${maxRows} rows, not ${limit}.`);
  const { filter, users } = scope;
  const range = users ? undefined : rangeOf(filter);
  const isRange = range?.field === ordering.field;
  const reading = from === 'start' ? ordering : reverse(ordering);
  const bounds = boundsOf(request, isRange ? range : undefined);
  const values = { ...valuesOfBounds(bounds), skip: 0, size: limit };
  const isMaterialized = isSelective(filter) && (!users || filter.liked !== undefined);
  const isFiltered = Object.keys(filter).length > 0 && !isRange;
  const most = rangeLimit(limit);
  const isBounded = [bounds.low !== undefined, bounds.high !== undefined];
  const words = ['range', reading.field, reading.direction, most, isMaterialized, isFiltered];
  const text = joinOnce(scope, [...words, ...isBounded], () =>
    isMaterialized
      ? filteredList(reading, users)
      : firstOutfits(reading, most, scope, isFiltered ? 'filtered' : 'plain', bounds),
  );
  const statement = prepare(scope, text, values);
  if (isMaterialized) return statement;
  // It stops as soon as the page is full, so a scan gets a trial.
  return statement.access === 'scan' ? { ...statement, access: 'unbounded' } : statement;
}

/** The lowest and the highest key of a keyset page; undefined: the end of the list. */
interface Bounds {
  readonly low?: SortKey | undefined;
  readonly high?: SortKey | undefined;
}

const lowest: SortKey = { value: int8.min, id: int4.min };
const highest: SortKey = { value: int8.max, id: int4.max };

function valuesOfBounds({ low = lowest, high = highest }: Bounds) {
  return { low: low.value, lowId: low.id, high: high.value, highId: high.id };
}

/** Of a keyset page, within a range of the field. */
function boundsOf(
  { ordering, after, before }: KeysetPageRequest,
  range?: { readonly from?: bigint | undefined; readonly below?: bigint | undefined },
): Bounds {
  const [above, under] = ordering.direction === 'asc' ? [after, before] : [before, after];
  const lows = [
    ...(above ? [{ value: above.value, id: above.id + 1 }] : []),
    ...(range?.from === undefined ? [] : [{ value: range.from, id: int4.min }]),
  ];
  const highs = [
    ...(under ? [{ value: under.value, id: under.id - 1 }] : []),
    ...(range?.below === undefined ? [] : [{ value: range.below, id: int4.min - 1 }]),
  ];
  return { low: lows.sort(compareKeys).at(-1), high: highs.sort(compareKeys)[0] };
}

/**
 * The conditions of a range. None for an end of the list: a plan for any values counts on few rows within bounds, however wide,
 * and would read and sort all outfits of a user.
 */
function isBetween({ low, high }: Bounds, key: string, value: string): string {
  return [
    ...(low ? [`AND (${key}.${value}, ${key}.id) >= (:low::bigint, :lowId::bigint)`] : []),
    ...(high ? [`AND (${key}.${value}, ${key}.id) <= (:high::bigint, :highId::bigint)`] : []),
  ].join(' ');
}

/** Whether a list has a row at a key, or on one side of it. */
export function beyond(
  ordering: Ordering,
  key: SortKey,
  side: 'before' | 'after',
): KeysetPageRequest {
  const isAfter = side === 'after';
  // A bound is not in its range: the key next to this one.
  const step = isAfter === (ordering.direction === 'asc') ? -1 : 1;
  const bound = { value: key.value, id: key.id + step };
  return { ordering, [side]: bound, limit: 1, from: isAfter ? 'start' : 'end' };
}

// SQL of lists: numbered pages, keyset pages and counts, of one list or of the lists of several users (filters.md).
// In SQL: exact counts and pages at any depth, by buckets and row values, which Prisma cannot express.
import type { Access } from '../../database/read.ts';
import {
  accessOf,
  conditionsOf,
  createValues,
  isSelective,
  type OutfitFilter,
  rangeOf,
  sourceOf,
  type Values,
} from '../filter.ts';
import {
  compareKeys,
  keyColumns,
  keyOf,
  type Ordering,
  type OrderingField,
  orderBy,
  reverse,
  type SortKey,
  tableOf,
} from '../ordering.ts';
import { int4, joinedRow, placedTables, rowColumns, rowSource } from '../row.ts';
import { segmentsOf, type Visibility, viewerOf, visibleOf } from '../visibility.ts';

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
  /** Whether a row at one of these positions is among them. */
  readonly isClosed?: true;
  /** Most outfits to read, at most `maxRows`. */
  readonly limit: number;
  /** Which end of the range to read from. */
  readonly from: 'start' | 'end';
}

export interface Statement {
  readonly text: string;
  readonly values: readonly unknown[];
  /** Not prepared: filters have too many different texts, and the best index depends on the values. */
  readonly planForValues: boolean;
  readonly access: Access;
}

/** Most rows of a keyset page: `first: 100`, and one more to find out whether there is a next page. */
export const maxRows = 101;

/** Rounds up the limit of merged index ranges, as each limit is a prepared statement. 21: a page of 20 and one more. */
function rangeLimit(rows: number): number {
  return [1, 21, maxRows].find((limit) => rows <= limit) ?? rows;
}

/** Placeholders of the offset (null: the last page) and of the page size. */
type Slice = readonly [skip: string, size: string];

interface Parts extends Scope, Values {
  readonly viewer: string;
  /** FROM item with the users of the lists; undefined: one list. */
  readonly owners: string | undefined;
  /** The SQL expression of the id of the user who owns the outfits of a list; undefined: all users. */
  readonly owner: string | undefined;
}

function partsOf(scope: Scope): Parts {
  const { visibility, users, filter } = scope;
  const values = createValues();
  const owners = users && ownersIn(users, values.add);
  const viewer = viewerOf(visibility, values.add);
  return {
    ...scope,
    ...values,
    viewer,
    owners,
    owner: filter.liked ? undefined : owners && 'owner.id',
  };
}

/** FROM item with the owners of lists. Not unnest for one: PostgreSQL would replan each time. */
export function ownersIn(ids: readonly number[], add: Values['add']): string {
  const table = ids.length === 1 ? `(SELECT ${add(ids[0])}::int)` : `unnest(${add(ids)}::int[])`;
  return `${table} AS owner (id)`;
}

function prepared({ list }: Parts, text: string): Statement {
  return { text, values: list, planForValues: false, access: 'bounded' };
}

/** A statement planned for its values. */
function planned({ list, filter, users }: Parts, text: string): Statement {
  const access = accessOf(users ? { ...filter, userIds: users } : filter);
  return { text, values: list, planForValues: true, access };
}

/** The rows of a numbered page, each with the count; an empty page is one row without an outfit. See docs/counting.md. */
export function pageStatement(scope: Scope, request: PageRequest): Statement {
  const { ordering, offset, pageSize } = request;
  const skip = offset === 'last' ? null : offset;
  const limit = rangeLimit(pageSize);
  const parts = partsOf(scope);
  const slice = [parts.add(skip), parts.add(pageSize)] as const;
  if (!isCounted(scope, ordering)) return planned(parts, filteredPage(parts, ordering, slice));
  // Within the first rows, to walk the index is faster than a seek by the counts.
  const isNear = isPlain(scope) && skip !== null && skip + pageSize <= limit;
  const buildPage = isNear ? nearPage : scope.users ? userPage : countedPage;
  return prepared(parts, buildPage(parts, ordering, slice, limit));
}

/** Whether it is the unfiltered list of all users. */
function isPlain({ filter, users }: Scope): boolean {
  return !users && Object.keys(filter).length === 0;
}

/** Whether counts or an index of one user give the number of outfits, and their positions in the ordering. */
function isCounted({ filter, users }: Scope, ordering?: Ordering): boolean {
  if (Object.keys(filter).length === 0) return true;
  const range = users ? undefined : rangeOf(filter);
  return range !== undefined && range.field === (ordering?.field ?? range.field);
}

function nearPage(parts: Parts, ordering: Ordering, [skip, size]: Slice, limit: number): string {
  const ranges = rangesOf(parts, ordering, limit);
  const rows = rowSource(ordering, ranges, `OFFSET ${skip}::bigint LIMIT ${size}::int`);
  return `
    SELECT count, ${rowColumns}
    FROM (${countedTotal(parts)}) page LEFT JOIN (${rows}) ON true
    ORDER BY ${orderBy(ordering)}`;
}

/** The number of outfits before the page; of the last page if there is no placeholder's value. */
const skipOf = ([skip, size]: Slice) =>
  `coalesce(${skip}::bigint, greatest(count - 1, 0) / ${size}::int * ${size}::int)`;

/**
 * Finds the bucket of the first outfit of a page by the counts, and walks the index from there. Ascending: a descending
 * page is the mirrored part of the list in reverse. The literal limit tells the planner how few rows there are.
 */
function countedPage(
  parts: Parts,
  { field, direction }: Ordering,
  slice: Slice,
  limit: number,
): string {
  const { visibility, viewer } = parts;
  const [, size] = slice;
  const own =
    visibility.private === 'own'
      ? `SELECT array_agg(s.value) AS values, array_agg(s.id) AS ids
         FROM (
           SELECT s.${field}::bigint AS value, s.id::bigint FROM ${tableOf(field)} s
           WHERE s.user_id = ${viewer} AND s.private ORDER BY s.${field}, s.id
         ) s`
      : 'SELECT NULL::bigint[] AS values, NULL::bigint[] AS ids';
  return `
    SELECT place.count, ${rowColumns}
    FROM ${placedTables}
    RIGHT JOIN (
      SELECT total.count, place.value, place.id
      FROM (${own}) own
      CROSS JOIN LATERAL (${countedTotal(parts, 'coalesce(cardinality(own.values), 0)')}) total
      CROSS JOIN LATERAL (SELECT ${skipOf(slice)} AS skip) page
      CROSS JOIN LATERAL (
        SELECT total.preceding + ${direction === 'asc' ? 'page.skip' : `greatest(count - page.skip - ${size}::int, 0)`} AS skip
      ) ascending
      CROSS JOIN LATERAL seek_outfits('${field}', ${seesAll(parts)}, own.values, own.ids, ascending.skip, NULL) bucket
      LEFT JOIN LATERAL (
        SELECT * FROM (
          SELECT s.value, s.id FROM (${walksOf(parts, field, `(s.${field}, s.id) >= (bucket.value, bucket.id)`, 'asc', `ascending.skip - bucket.preceding + ${size}::int`)}) s
          ORDER BY s.value, s.id OFFSET ascending.skip - bucket.preceding LIMIT least(greatest(count - page.skip, 0), ${size}::int)
        ) s LIMIT ${limit}
      ) place ON true
    ) place ON o.id = place.id
    ORDER BY place.value ${direction}, place.id ${direction}`;
}

/** A page of the outfits of each user, by the index of one user: from the end of the list that is closer. */
function userPage(parts: Parts, ordering: Ordering, slice: Slice, limit: number): string {
  const { field, direction } = ordering;
  const back = reverse(ordering).direction;
  const [, size] = slice;
  return `
    SELECT place."ownerId", place.count, ${rowColumns}
    FROM ${placedTables}
    RIGHT JOIN (
      SELECT owner.id AS "ownerId", total.count, place.value, place.id
      FROM ${parts.owners}
      CROSS JOIN LATERAL (${countedTotal(parts)}) total
      CROSS JOIN LATERAL (SELECT ${skipOf(slice)} AS skip) page
      LEFT JOIN LATERAL (
        SELECT * FROM (
          (SELECT s.value, s.id FROM (${walksOf(parts, field, 'true', direction, `CASE WHEN page.skip <= count / 2 THEN page.skip + ${size}::int ELSE 0 END`)}) s
           ORDER BY s.value ${direction}, s.id ${direction} OFFSET page.skip LIMIT ${size}::int)
          UNION ALL
          (SELECT s.value, s.id FROM (${walksOf(parts, field, 'true', back, 'CASE WHEN page.skip > count / 2 THEN greatest(count - page.skip, 0) ELSE 0 END')}) s
           ORDER BY s.value ${back}, s.id ${back}
           OFFSET greatest(count - page.skip - ${size}::int, 0) LIMIT least(greatest(count - page.skip, 0), ${size}::int))
        ) s LIMIT ${limit}
      ) place ON true
    ) place ON o.id = place.id
    ORDER BY place.value ${direction}, place.id ${direction}`;
}

/** The index ranges that are merged into a list, in order. With a limit of its own, each is walked instead of sorted. */
function walksOf(
  { visibility, viewer, owner }: Parts,
  field: OrderingField,
  condition: string,
  direction: Ordering['direction'],
  limit: string,
): string {
  return segmentsOf(visibility, viewer, 's', owner)
    .map(
      (segment) => `
        (SELECT s.${field} AS value, s.id FROM ${tableOf(field)} s WHERE ${segment} AND ${condition}
         ORDER BY s.${field} ${direction}, s.id ${direction} LIMIT ${limit})`,
    )
    .join(' UNION ALL ');
}

/** Whether the list has all private outfits. */
const seesAll = ({ visibility }: Parts) => visibility.private === 'all';

/**
 * The `count` of a list, and `preceding`: the outfits below its range. `own` is the number of the viewer's private outfits.
 * OFFSET 0 keeps functions from repeated calls, and outfits are named first, so that tables are locked in the order of
 * TRUNCATE.
 */
function countedTotal(
  parts: Parts,
  own = `(SELECT count(*) FROM outfits s WHERE s.user_id = ${parts.viewer} AND s.private)`,
): string {
  const { visibility, viewer, owner, filter, add } = parts;
  if (owner) {
    return `SELECT count(*)::int AS count FROM outfits s WHERE s.user_id = ${owner} AND ${visibleOf(visibility, viewer, owner)}`;
  }
  const whole = `count_outfits(${seesAll(parts)})${visibility.private === 'own' ? ` + ${own}` : ''}`;
  const range = rangeOf(filter);
  if (!range) return `SELECT (${whole})::int AS count, 0 AS preceding OFFSET 0`;
  const { field, from, below } = range;
  return `
    SELECT preceding, greatest(reached - preceding, 0)::int AS count
    FROM (
      SELECT ${from === undefined ? '0::bigint' : rankOf(parts, field, add(from))} AS preceding,
        ${below === undefined ? whole : rankOf(parts, field, add(below))} AS reached
      OFFSET 0
    ) ends`;
}

/** The number of outfits of a list with a lower value: those before a bucket by the counts, the others by the index. */
function rankOf(parts: Parts, field: OrderingField, end: string): string {
  const { visibility, viewer } = parts;
  const before = (condition: string) =>
    `(SELECT count(*) FROM ${tableOf(field)} s WHERE ${condition} AND s.${field} < ${end}::bigint)`;
  const inBucket = `(s.${field}, s.id) >= (bucket.value, bucket.id)`;
  const privates = {
    all: ` + ${before(`s.private AND ${inBucket}`)}`,
    own: ` + ${before(`s.user_id = ${viewer} AND s.private`)}`,
    none: '',
  };
  return `(
        SELECT bucket.preceding + ${before(`NOT s.private AND ${inBucket}`)}${privates[visibility.private]}
        FROM seek_outfits('${field}', ${seesAll(parts)}, NULL, NULL, NULL, ${end}::bigint) bucket
      )`;
}

function filteredPage(parts: Parts, ordering: Ordering, slice: Slice): string {
  const { owners } = parts;
  return `
    SELECT ${owners ? 'owner.id AS "ownerId", ' : ''}count, ${rowColumns}
    FROM ${owners ? `${owners} CROSS JOIN LATERAL ` : ''}(
      ${materializeMatches(parts, ordering)}
      SELECT total.count, found.id
      FROM (SELECT count(*)::int AS count FROM matched) total
      LEFT JOIN LATERAL (
        SELECT id FROM matched s ORDER BY ${orderBy(ordering, 's', 's')}
        OFFSET ${skipOf(slice)} LIMIT ${slice[1]}::int
      ) found ON true
    ) place LEFT JOIN (${placedTables}) ON o.id = place.id
    ORDER BY ${orderBy(ordering)}`;
}

/** Materializes all matches before sorting: a walk in list order would read far to find rare ones. */
function materializeMatches(
  parts: Parts,
  ordering: Ordering,
  bounds: readonly string[] = [],
): string {
  const all = [...conditionsFor(parts), ...bounds].join(' AND ');
  return `WITH matched AS MATERIALIZED (
      SELECT ${keyOf(ordering.field, 's').join(', ')} FROM ${sourceOf(parts.filter, ordering.field, true)} WHERE ${all}
    )`;
}

function conditionsFor({ visibility, viewer, owner, filter, add }: Parts): string[] {
  const ofOwner = owner ? [`s.user_id = ${owner}`] : [];
  return [...ofOwner, visibleOf(visibility, viewer, owner), ...conditionsOf(filter, add)];
}

export function countStatement(scope: Scope): Statement {
  const parts = partsOf(scope);
  const { owners, filter } = parts;
  const countOf = (total: string) => `
    SELECT ${owners ? 'owner.id AS "ownerId", ' : ''}count
    FROM ${owners ? `${owners} CROSS JOIN LATERAL ` : ''}(${total}) total`;
  if (isCounted(scope)) return prepared(parts, countOf(countedTotal(parts)));
  const conditions = conditionsFor(parts).join(' AND ');
  const found = `SELECT count(*)::int AS count FROM ${sourceOf(filter)} WHERE ${conditions}`;
  return planned(parts, countOf(found));
}

/** The sum of the likes of each user, by the index of their likes. */
export function likesStatement(scope: Scope): Statement {
  const parts = partsOf(scope);
  return prepared(
    parts,
    `
    SELECT owner.id AS "ownerId", likes
    FROM ${parts.owners} CROSS JOIN LATERAL (
      SELECT least(coalesce(sum(s.likes), 0), ${int4.max})::int AS likes
      FROM outfit_like_counts s
      WHERE s.user_id = owner.id AND ${visibleOf(scope.visibility, parts.viewer, 'owner.id')}
    ) total`,
  );
}

/** A column: when this user liked this outfit. */
export function likedAt(outfit: string, user: string): string {
  return `(SELECT g.created FROM outfit_likes g WHERE g.outfit_id = ${outfit} AND g.user_id = ${user}) AS "likedAt"`;
}

/** A keyset page. Costs the rows read, at any position; matches of a selective filter are materialized. */
export function rangeStatement(scope: Scope, request: KeysetPageRequest): Statement {
  const range = scope.users ? undefined : rangeOf(scope.filter);
  return range?.field === request.ordering.field
    ? keysetStatement({ ...scope, filter: {} }, within(range, request))
    : keysetStatement(scope, request);
}

function keysetStatement(scope: Scope, request: KeysetPageRequest): Statement {
  const { ordering, after, before, isClosed, limit, from } = request;
  // The index ranges are limited to `maxRows`: a larger page would skip rows beyond them.
  if (limit > maxRows) throw new RangeError(`A page has at most ${maxRows} rows, not ${limit}.`);
  const parts = partsOf(scope);
  const { filter, owners, add } = parts;
  const reading = from === 'start' ? ordering : reverse(ordering);
  const [beyond, short] = ordering.direction === 'asc' ? ['>', '<'] : ['<', '>'];
  const equal = isClosed ? '=' : '';
  const bounds = [
    ...(after ? [boundOf(ordering, beyond + equal, after, add)] : []),
    ...(before ? [boundOf(ordering, short + equal, before, add)] : []),
  ];
  const slice = `LIMIT ${add(limit)}::int`;
  const rows = rangeLimit(limit);
  if (!parts.owner && isSelective(filter)) {
    return planned(
      parts,
      `
    SELECT ${owners ? 'owner.id AS "ownerId", ' : ''}${filter.liked ? `${likedAt('o.id', 'owner.id')}, ` : ''}${rowColumns}
    FROM ${owners ? `${owners} CROSS JOIN LATERAL ` : ''}(
      ${materializeMatches(parts, reading, bounds)}
      SELECT id FROM matched s ORDER BY ${orderBy(reading, 's', 's')} ${slice}
    ) place
    JOIN outfits o ON o.id = place.id
    ${joinedRow}
    ORDER BY ${orderBy(reading)}`,
    );
  }
  const walk = `
    SELECT ${rowColumns}
    FROM ${owners ? `${owners} CROSS JOIN ` : ''}${rowSource(reading, rangesOf(parts, reading, rows, bounds), slice)}
    ORDER BY ${orderBy(reading)}`;
  if (Object.keys(filter).length === 0) return prepared(parts, walk);
  const statement = planned(parts, walk);
  // A walk stops as soon as the page is full, so it gets a trial.
  return statement.access === 'scan' ? { ...statement, access: 'unbounded' } : statement;
}

/**
 * The first `limit` outfits (or likes) of each segment. The limit is a literal, since with a parameter the planner may
 * sort. `private` leads the ORDER BY to match the index; otherwise it may walk the primary key past the other segment.
 */
function rangesOf(
  { visibility, viewer, owner, filter, add }: Parts,
  ordering: Ordering,
  limit: number,
  bounds: readonly string[] = [],
): string[] {
  const leading = ordering.field === 'likes' ? 'l' : 's';
  const conditions = [...bounds, ...conditionsOf(filter, add)];
  return segmentsOf(visibility, viewer, leading, owner).map(
    (segment) => `(
      SELECT ${leading}.* FROM ${sourceOf(filter, ordering.field)}
      WHERE ${[segment, ...conditions].join(' AND ')}
      ORDER BY ${leading}.private ${ordering.direction}, ${orderBy(ordering, 's')} LIMIT ${limit}
    )`,
  );
}

function boundOf(
  { field }: Ordering,
  operator: string,
  { value, id }: SortKey,
  add: Values['add'],
): string {
  const values = keyColumns(field).map((column) =>
    column === 'id' ? `${add(id)}::int` : `${add(value)}::bigint`,
  );
  return `(${keyOf(field, 's').join(', ')}) ${operator} (${values.join(', ')})`;
}

/** Whether a list has a row at a key, or on one side of it. */
export function beyond(
  ordering: Ordering,
  key: SortKey,
  side: 'before' | 'after',
): KeysetPageRequest {
  return side === 'after'
    ? { ordering, after: key, isClosed: true, limit: 1, from: 'start' }
    : { ordering, before: key, isClosed: true, limit: 1, from: 'end' };
}

/** Intersects a keyset page with a range of the sort field, so that the statement of the unfiltered list serves it. */
function within(
  { from, below }: NonNullable<ReturnType<typeof rangeOf>>,
  request: KeysetPageRequest,
): KeysetPageRequest {
  const { ordering, after, before, isClosed } = request;
  /** The place where rows with this value begin: its first key, or else the last one before. */
  const beginOf = (value: bigint | undefined, isFirst = false) =>
    value === undefined
      ? undefined
      : isFirst
        ? { value, id: int4.min }
        : { value: value - 1n, id: int4.max };
  const low = beginOf(from, isClosed);
  const high = beginOf(below, !isClosed);
  return ordering.direction === 'asc'
    ? { ...request, after: further(1, after, low), before: further(-1, before, high) }
    : { ...request, after: further(-1, after, high), before: further(1, before, low) };
}

/** The higher of two positions (`sign` is 1), or the lower one (-1). */
function further(
  sign: number,
  a: SortKey | undefined,
  b: SortKey | undefined,
): SortKey | undefined {
  return a && b ? (sign * compareKeys(a, b) < 0 ? b : a) : (a ?? b);
}

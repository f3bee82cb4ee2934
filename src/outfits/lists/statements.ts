// The statements of lists: a numbered page, a range, a count; of one list or those of several users (filters.md).
import { type Access, memoizeText } from '../../database/read.ts';
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
  orderBy,
  reverse,
  type SortKey,
  stepBack,
} from '../ordering.ts';
import { joinedRow, placedRow, rowColumns, rowSource } from '../row.ts';
import { membersOf, segmentsOf, type Visibility, viewerOf, visibleOf } from '../visibility.ts';

/** What a list has. */
export interface Scope {
  readonly visibility: Visibility;
  readonly filter: OutfitFilter;
  /** The users whose lists are meant, each by itself; undefined: one list, of everyone's outfits. */
  readonly users?: readonly number[] | undefined;
}

export interface PageRequest {
  readonly ordering: Ordering;
  /** From 1, or the last page, whichever that is when the list is read. */
  readonly page: number | 'last';
  /** Outfits per page. */
  readonly pageSize: number;
}

/** The outfits strictly between two places of a list. */
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
  /** A text for each filter would be many to keep prepared, and which index is best depends on the values. */
  readonly planForValues: boolean;
  readonly access: Access;
}

/** Most outfits of a range of a connection: `first: 100`, and the one that tells whether there is a next page. */
export const maxRows = 101;

/** The limit of merged index ranges, rounded up, as each is a statement to prepare: 21 is a page of 20 and one more. */
function rangeLimit(rows: number): number {
  return [1, 21, maxRows].find((limit) => rows <= limit) ?? rows;
}

/** Placeholders of how many outfits to skip (null: to the last page), and of the page size. */
type Slice = readonly [skip: string, size: string];

interface Parts extends Scope, Values {
  readonly viewer: string;
  /** The users as a table, and SQL of the id of one; undefined: everyone. */
  readonly owners: string | undefined;
  readonly owner: string | undefined;
  /** The range that the filter is, with placeholders for its ends. */
  readonly range:
    | { field: string; from: string | undefined; below: string | undefined }
    | undefined;
}

function partsOf(scope: Scope): Parts {
  const { visibility, users } = scope;
  const values = createValues();
  // For an array of one, PostgreSQL would make a new plan each time.
  const table = users?.length === 1 ? `(SELECT ${values.add(users[0])}::int)` : undefined;
  const owners = users && `${table ?? `unnest(${values.add(users)}::int[])`} AS owner (id)`;
  const viewer = viewerOf(visibility, values.add);
  return { ...scope, ...values, viewer, owners, owner: owners && 'owner.id', range: undefined };
}

/** The same of a list that the counts tell about. */
function countedPartsOf(scope: Scope): Parts {
  const parts = partsOf(scope);
  const range = rangeOf(scope.filter);
  if (!range) return parts;
  const [from, below] = [range.from, range.below].map((end) =>
    end === undefined ? undefined : parts.add(end),
  );
  return { ...parts, range: { field: range.field, from, below } };
}

/** A text of a few, which is built when it is first wanted. @param key what it depends on beside its scope */
function prepared(parts: Parts, key: string, build: () => string): Statement {
  const { visibility, owners = '', range, list } = parts;
  const ends = range ? `${range.field} ${range.from} ${range.below}` : '';
  const text = memoizeText(`${key} ${visibility.private} ${owners} ${ends}`, build);
  return { text, values: list, planForValues: false, access: 'bounded' };
}

/** One of very many texts. */
function planned({ list, filter, users }: Parts, text: string): Statement {
  const access = accessOf(users ? { ...filter, userIds: users } : filter);
  return { text, values: list, planForValues: true, access };
}

/** The rows of a numbered page, each with the count (one without an outfit if none). See counting.md. */
export function pageStatement(scope: Scope, request: PageRequest): Statement {
  const { ordering, page, pageSize } = request;
  const { visibility } = scope;
  const skip = page === 'last' ? null : (page - 1) * pageSize;
  if (!isPlain(scope)) return buildPage(scope, ordering, skip, pageSize);
  // What is read most: its parts are made once, and here are its values in their order.
  const nearLimit = rangeLimit(pageSize);
  const near = skip !== null && skip + pageSize <= nearLimit ? nearLimit : undefined;
  const text = memoizeText(
    `page ${near} ${ordering.field} ${ordering.direction} ${visibility.private}`,
    () => buildPage(scope, ordering, skip, pageSize, near).text,
  );
  const viewer = visibility.private === 'own' ? [visibility.userId] : [];
  return { text, values: [...viewer, skip, pageSize], planForValues: false, access: 'bounded' };
}

/** @param near the limit of the index ranges that the page is among the first outfits of */
function buildPage(
  scope: Scope,
  ordering: Ordering,
  skip: number | null,
  pageSize: number,
  near?: number,
): Statement {
  const isFiltered = !isCounted(scope, ordering);
  const parts = isFiltered ? partsOf(scope) : countedPartsOf(scope);
  const { add, owners } = parts;
  const slice = [add(skip), add(pageSize)] as const;
  const pageOf = ([from, order]: readonly [string, string]) => `
    SELECT ${owners ? 'owner.id AS "ownerId", ' : ''}count, ${rowColumns}
    FROM ${owners ? `${owners} CROSS JOIN LATERAL ` : ''}${from}
    ORDER BY ${order}`;
  if (isFiltered) return planned(parts, pageOf(matchedPage(parts, ordering, slice)));
  return prepared(parts, `page ${near} of ${ordering.field} ${ordering.direction}`, () =>
    pageOf(near ? nearPage(parts, ordering, near, slice) : countedPage(parts, ordering, slice)),
  );
}

/** Whether a list has no filter, nor is that of a user. */
function isPlain({ filter, users }: Scope): boolean {
  return !users && Object.keys(filter).length === 0;
}

/** Whether the counts of nodes tell how many outfits there are, and where, if they are sorted so. */
function isCounted({ filter, users }: Scope, ordering?: Ordering): boolean {
  if (Object.keys(filter).length === 0) return true;
  const range = users ? undefined : rangeOf(filter);
  return range !== undefined && range.field === (ordering?.field ?? range.field);
}

/** A page within the first `limit` outfits, which are walked over: by the counts it would take longer. */
function nearPage(parts: Parts, ordering: Ordering, limit: number, [skip, size]: Slice) {
  const slice = `OFFSET ${skip}::bigint LIMIT ${size}::int`;
  const rows = rowSource(ordering, rangesOf(parts, ordering, limit), slice);
  return [`(${countedTotal(parts)}) page LEFT JOIN (${rows}) ON true`, orderBy(ordering)] as const;
}

/** The functions walk in ascending order: a descending page is the mirrored range, read from its end. */
function countedPage(parts: Parts, { field, direction }: Ordering, [skip, size]: Slice) {
  const { visibility, viewer, owner } = parts;
  const start = direction === 'asc' ? 'skip' : `greatest(count - skip - ${size}::int, 0)`;
  const page = `(
      SELECT total.*, coalesce(${skip}::bigint, greatest(count - 1, 0) / ${size}::int * ${size}::int) AS skip
      FROM (${countedTotal(parts)}) total
    ) page
    CROSS JOIN LATERAL (
      SELECT preceding + ${start} AS start, least(greatest(count - skip, 0), ${size}::int)::int AS size
    ) span
    LEFT JOIN LATERAL outfits_by_${field}(${membersOf(visibility, viewer, owner)}, start, size) place ON true
    ${field === 'likes' ? joinLiked : placedRow}`;
  return [page, `place.position ${direction}`] as const;
}

/** The likes of a place by likes are known: they sort it. */
const joinLiked = `
    CROSS JOIN LATERAL (SELECT place.value::int AS likes OFFSET 0) l
    LEFT JOIN (outfits o JOIN users u ON u.id = o.user_id) ON o.id = place.id`;

/** The `count` of a list, and how many precede it. Without OFFSET 0 the planner calls functions for each use. */
function countedTotal({ visibility, viewer, owner, range }: Parts): string {
  const members = membersOf(visibility, viewer, owner);
  const whole = `count_outfits(${members})::int`;
  if (!range) return `SELECT ${whole} AS count, 0 AS preceding OFFSET 0`;
  const rank = (end: string) => `rank_outfits_by_${range.field}(${members}, ${end}::bigint)`;
  return `
    SELECT preceding, greatest(reached - preceding, 0)::int AS count
    FROM (
      SELECT ${range.from ? rank(range.from) : '0::bigint'} AS preceding,
        ${range.below ? rank(range.below) : whole} AS reached
      OFFSET 0
    ) ends`;
}

function matchedPage(parts: Parts, ordering: Ordering, [skip, size]: Slice) {
  const place = `(
      ${matches(parts, ordering)}
      SELECT total.count, found.id
      FROM (SELECT count(*)::int AS count FROM matched) total
      LEFT JOIN LATERAL (
        SELECT id FROM matched s ORDER BY ${orderBy(ordering, 's', 's')}
        OFFSET coalesce(${skip}::bigint, greatest(total.count - 1, 0) / ${size}::int * ${size}::int) LIMIT ${size}::int
      ) found ON true
    ) place ${placedRow}`;
  return [place, orderBy(ordering)] as const;
}

/** All that match, found before they are sorted: in the order of the list, a rare one is far away. */
function matches(parts: Parts, ordering: Ordering, bounds: readonly string[] = []): string {
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
  const isFiltered = !isCounted(scope);
  const parts = isFiltered ? partsOf(scope) : countedPartsOf(scope);
  const { owners, filter } = parts;
  const countOf = (total: string) => `
    SELECT ${owners ? 'owner.id AS "ownerId", ' : ''}count
    FROM ${owners ? `${owners} CROSS JOIN LATERAL ` : ''}(${total}) total`;
  if (!isFiltered) return prepared(parts, 'count', () => countOf(countedTotal(parts)));
  const conditions = conditionsFor(parts).join(' AND ');
  const found = `SELECT count(*)::int AS count FROM ${sourceOf(filter)} WHERE ${conditions}`;
  return planned(parts, countOf(found));
}

/** A slice, sought by index: costs the rows read, wherever they are. Selective filters are read out. */
export function rangeStatement(scope: Scope, request: KeysetPageRequest): Statement {
  const range = scope.users ? undefined : rangeOf(scope.filter);
  return range?.field === request.ordering.field
    ? sliceStatement({ ...scope, filter: {} }, within(range, request))
    : sliceStatement(scope, request);
}

function sliceStatement(scope: Scope, request: KeysetPageRequest): Statement {
  const { ordering, after, before, limit, from } = request;
  // More would be taken from index ranges that end before it, and skip what lies behind those.
  if (limit > maxRows) throw new RangeError(`A slice has at most ${maxRows} rows, not ${limit}.`);
  const parts = partsOf(scope);
  const { filter, owners, add } = parts;
  const reading = from === 'start' ? ordering : reverse(ordering);
  const [beyond, short] = ordering.direction === 'asc' ? ['>', '<'] : ['<', '>'];
  const bounds = [
    ...(after ? [boundOf(ordering, beyond, after, add)] : []),
    ...(before ? [boundOf(ordering, short, before, add)] : []),
  ];
  const slice = `LIMIT ${add(limit)}::int`;
  const rows = rangeLimit(limit);
  const walk = () => `
    SELECT ${rowColumns}
    FROM ${owners ? `${owners} CROSS JOIN ` : ''}${rowSource(reading, rangesOf(parts, reading, rows, bounds), slice)}
    ORDER BY ${orderBy(reading)}`;
  if (Object.keys(filter).length === 0) {
    const key = `range ${rows} ${reading.field} ${reading.direction} ${bounds.join()}`;
    return prepared(parts, key, walk);
  }
  if (!owners && isSelective(filter)) {
    return planned(
      parts,
      `
    ${matches(parts, reading, bounds)}
    SELECT ${rowColumns}
    FROM (SELECT id FROM matched s ORDER BY ${orderBy(reading, 's', 's')} ${slice}) place
    JOIN outfits o ON o.id = place.id
    ${joinedRow}
    ORDER BY ${orderBy(reading)}`,
    );
  }
  const statement = planned(parts, walk());
  // A walk may find enough soon, whatever it reads.
  return statement.access === 'scan' ? { ...statement, access: 'unbounded' } : statement;
}

/**
 * The first `limit` outfits (or likes) of each segment. An unknown limit tempts the planner to sort; without `private`
 * first, which makes it the index's order, it would walk the primary key past all outfits of the other segment.
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

export function beyond(
  ordering: Ordering,
  key: SortKey,
  side: 'before' | 'after',
): KeysetPageRequest {
  const place = stepBack(ordering, key, side === 'after' ? 'start' : 'end');
  return side === 'after'
    ? { ordering, after: place, limit: 1, from: 'start' }
    : { ordering, before: place, limit: 1, from: 'end' };
}

const lowestId = -2_147_483_648;
const highestId = 2_147_483_647;

/** The slice within a range of the sort field, whose ends are places too: so the statement is the whole list's. */
function within(
  { from, below }: NonNullable<ReturnType<typeof rangeOf>>,
  request: KeysetPageRequest,
): KeysetPageRequest {
  const low = from === undefined ? undefined : { value: from - 1n, id: highestId };
  const high = below === undefined ? undefined : { value: below, id: lowestId };
  const { ordering, after, before } = request;
  return ordering.direction === 'asc'
    ? { ...request, after: further(1, after, low), before: further(-1, before, high) }
    : { ...request, after: further(-1, after, high), before: further(1, before, low) };
}

/** The higher one of two places (`sign` is 1), or the lower one (-1). */
function further(
  sign: number,
  a: SortKey | undefined,
  b: SortKey | undefined,
): SortKey | undefined {
  return a && b ? (sign * compareKeys(a, b) < 0 ? b : a) : (a ?? b);
}

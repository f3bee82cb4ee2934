// Lists of outfits, of all users or of one: numbered pages, keyset pages and counts.
import { type Dependencies, dependenciesOfAll } from '../../database/changes/change-log.ts';
import type { ReadRows } from '../../database/read.ts';
import { inTurn } from '../../database/turns.ts';
import { accessOf, isSelective, type OutfitFilter, rangeOf, simplify } from '../filter.ts';
import type { Ordering, SortKey } from '../ordering.ts';
import { type FlatRow, type OutfitRow, rowOf } from '../row.ts';
import type { Visibility } from '../visibility.ts';
import { createLoaderInTurns } from './by-id.ts';
import {
  dependenciesOfCount,
  dependenciesOfLikes,
  dependenciesOfPage,
  dependenciesOfRange,
  type Membership,
  membershipOf,
} from './dependencies.ts';
import {
  beyond,
  countStatement,
  type KeysetPageRequest,
  likesStatement,
  type PageRequest,
  pageStatement,
  rangeStatement,
  type Scope,
  type Statement,
} from './statements.ts';

export interface OutfitPage {
  /** Outfits in the whole list. */
  readonly count: number;
  /** Outfits before this page, and per page. */
  readonly offset: number;
  readonly pageSize: number;
  /** None past the end. */
  readonly rows: readonly OutfitRow[];
}

/** A list that is read by ranges. */
export interface RangeList<Row> {
  readonly keysetPage: (request: KeysetPageRequest) => Promise<Row[]>;
  /** Rows in the whole list. */
  readonly count: () => Promise<number>;
}

export interface OutfitList extends RangeList<OutfitRow> {
  readonly page: (request: PageRequest) => Promise<OutfitPage>;
}

/** The visible outfits that match a filter, or all visible outfits without one. */
export function createOutfitList(
  read: ReadRows,
  visibility: Visibility,
  filter: OutfitFilter = {},
): OutfitList {
  const scope = simplify(filter, visibility);
  if (!scope) return emptyList;
  return {
    page: async (request) => {
      const rows = await readPage(read, scope, request);
      return pageOf(await inTurn(rows, rows.length), request);
    },
    keysetPage: async (request) => {
      const rows = await readRange(read, scope, request);
      return inOrder((await inTurn(rows, rows.length)).map(rowOf), request.from);
    },
    count: async () => (await readCounts(read, scope))[0]?.count ?? 0,
  };
}

export const emptyList = {
  page: async (request: PageRequest) => pageOf([], request),
  keysetPage: async () => [],
  count: async () => 0,
};

export async function hasRowAt(
  list: RangeList<unknown>,
  ordering: Ordering,
  key: SortKey,
  side: 'before' | 'after',
): Promise<boolean> {
  return (await list.keysetPage(beyond(ordering, key, side))).length > 0;
}

export interface UserList extends OutfitList {
  /** The sum of the likes of its outfits, if there is no filter. */
  readonly likes: () => Promise<number>;
}

export type UserLists = (userId: number, filter: OutfitFilter) => UserList;

/** Lists of several users. */
export function createUserLists(read: ReadRows, visibility: Visibility): UserLists {
  const createLoader = <Request, Row extends Owned>(
    find: (read: ReadRows, scope: Scope, request: Request) => Promise<Row[]>,
  ) =>
    createListLoader<OutfitFilter, Request, Row>(async (users, filter, request) => {
      const scope = simplify(filter, visibility);
      return scope ? find(read, { ...scope, users }, request) : [];
    });
  const pages = createLoader(readPage);
  const ranges = createLoader(readRange);
  const counts = createLoader(readCounts);
  const likes = createLoader(readLikes);
  return (userId, filter) => ({
    page: async (request) => pageOf(await pages(userId, filter, request), request),
    keysetPage: async (request) =>
      inOrder((await ranges(userId, filter, request)).map(rowOf), request.from),
    count: async () => (await counts(userId, filter, undefined))[0]?.count ?? 0,
    likes: async () => (await likes(userId, filter, undefined))[0]?.likes ?? 0,
  });
}

interface ListRequest<Filter, Request> {
  readonly owner: number;
  readonly filter: Filter;
  readonly request: Request;
  /** Equal for requests that differ only in the owner. */
  readonly key: string;
}

/** Batches the lists of several owners: equal requests of one step of a query share a statement. */
export function createListLoader<Filter, Request, Row extends Owned>(
  find: (owners: readonly number[], filter: Filter, request: Request) => Promise<Row[]>,
) {
  type Asked = ListRequest<Filter, Request>;
  const loader = createLoaderInTurns(async (requests: readonly Asked[]) => {
    const found = new Map<string, Map<number, Row[]>>();
    const readAlike = async ([key, alike]: [string, Asked[]]) => {
      const { filter, request } = alike[0] as Asked;
      const owners = [...new Set(alike.map(({ owner }) => owner))];
      found.set(key, groupBy(await find(owners, filter, request), ownerOf));
    };
    await Promise.all([...groupBy(requests, ({ key }) => key)].map(readAlike));
    return requests.map(({ key, owner }) => found.get(key)?.get(owner) ?? []);
  });
  return (owner: number, filter: Filter, request: Request) =>
    loader.load({ owner, filter, request, key: keyOf(filter, request) });
}

function keyOf(...parts: readonly unknown[]): string {
  return JSON.stringify(parts, (_name, value: unknown) =>
    typeof value === 'bigint' ? `${value}n` : value,
  );
}

/** A row of an owner's list. Without `ownerId`, the owner is the user of the outfit. */
export interface Owned {
  readonly ownerId?: number;
  readonly userId?: number;
}

function ownerOf({ ownerId, userId }: Owned): number {
  return (ownerId ?? userId) as number;
}

export interface Counted extends Owned {
  readonly count: number;
}

/** A row of a page. An empty page has one row without an outfit, for the count. */
type PageRow = Counted & (FlatRow | { readonly id: null });

function readPage(read: ReadRows, scope: Scope, request: PageRequest): Promise<PageRow[]> {
  return run(read, pageStatement(scope, request), scope, (membership, rows: PageRow[]) =>
    dependenciesOfPage(membership, request.ordering, outfitsIn(rows)),
  );
}

async function readRange(
  read: ReadRows,
  scope: Scope,
  request: KeysetPageRequest,
): Promise<FlatRow[]> {
  const rows = await run(
    read,
    rangeStatement(scope, request),
    scope,
    (membership, rows: PageRow[]) =>
      dependenciesOfRange(membership, request, inOrder(outfitsIn(rows), request.from)),
  );
  return outfitsIn(rows);
}

function readCounts(read: ReadRows, scope: Scope): Promise<Counted[]> {
  return run(read, countStatement(scope), scope, dependenciesOfCount);
}

function readLikes(read: ReadRows, scope: Scope): Promise<(Owned & { readonly likes: number })[]> {
  return run(read, likesStatement(scope), scope, dependenciesOfLikes);
}

function run<Row extends Owned>(
  read: ReadRows,
  { text, values, planForValues, access }: Statement,
  { visibility, filter, users }: Scope,
  dependenciesOf: (membership: Membership, rows: Row[]) => Dependencies | undefined,
): Promise<Row[]> {
  return read<Row>(text, values, {
    planForValues,
    access,
    dependencies(rows) {
      if (!users) return dependenciesOf(membershipOf(visibility, filter), [...rows]);
      const lists = groupBy(rows, ownerOf);
      return dependenciesOfAll(
        users.map((id) =>
          dependenciesOf(membershipOf(visibility, filter, id), lists.get(id) ?? []),
        ),
      );
    },
  });
}

function outfitsIn(rows: readonly PageRow[]): FlatRow[] {
  return rows.filter((row) => row.id !== null);
}

function pageOf(rows: readonly PageRow[], { offset, pageSize }: PageRequest): OutfitPage {
  const count = rows[0]?.count ?? 0;
  const last = Math.floor(Math.max(count - 1, 0) / pageSize) * pageSize;
  const found = offset === 'last' ? last : offset;
  return { count, offset: found, pageSize, rows: outfitsIn(rows).map(rowOf) };
}

export function inOrder<Row>(rows: Row[], from: KeysetPageRequest['from']): Row[] {
  return from === 'start' ? rows : rows.toReversed();
}

function groupBy<Key, Item>(items: readonly Item[], keyOf: (item: Item) => Key): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return groups;
}

/** Weights by cost of reading a filtered list: see filters.md. */
const weights = { bounded: 0, unbounded: 1, several: 2, scan: 4 };

/** The weight of a list; the total of a document is limited (`filterWeight` of graphql/plugins/cost.ts). */
export function weightOf(filter: OutfitFilter, { field }: Ordering): number {
  // `private: false` is no filter, but the list of public outfits.
  const { private: isPrivate, ...others } = filter;
  const conditions = isPrivate ? filter : others;
  const access = accessOf(conditions);
  if (access !== 'unbounded') return weights[access];
  const range = rangeOf(conditions);
  if (range) return range.field === field ? weights.bounded : weights.several;
  const { words, hashtags = [], userIds = [] } = conditions;
  const isOfOne =
    isSelective(conditions) && words === undefined && hashtags.length + userIds.length <= 1;
  return isOfOne ? weights.unbounded : weights.several;
}

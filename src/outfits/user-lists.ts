// The outfits of a user as a list to scroll: for all users that a step of a query asks for at once.
import DataLoader from 'dataloader';
import { madeOfAll } from '../database/changes.ts';
import type { ReadOptions, ReadRows } from '../database/read.ts';
import { conditionsOf, createValues, type OutfitFilter, sourceOf, viewerOf } from './filter.ts';
import { beyond, inOrder, type KeysetPageRequest, keysetBounds } from './keyset-page.ts';
import { type ScrollableList, simplify } from './list.ts';
import { madeOfCount, madeOfRange, membersOfUser } from './made-of.ts';
import { orderBy } from './ordering.ts';
import { countOf, type ListMembers } from './page-statement.ts';
import { rangeLimit, rangesOf } from './ranges.ts';
import { type FlatRow, type OutfitRow, rowColumns, rowOf, rowSource } from './row.ts';
import { type Visibility, visibleOf } from './visibility.ts';

/** Gives the outfits of a user that a filter lets through, as a list. */
export type UserLists = (userId: number, filter: OutfitFilter) => ScrollableList;

interface OfUser<Request> {
  readonly userId: number;
  readonly filter: OutfitFilter;
  readonly request: Request;
}

/** Users whose lists are asked for alike share a statement. */
export function createUserLists(read: ReadRows, visibility: Visibility): UserLists {
  const pages = createLoader<KeysetPageRequest, OutfitRow[]>(
    (users, filter, request) => readPages(read, visibility, users, filter, request),
    [],
  );
  const counts = createLoader<'count', number>(
    (users, filter) => readCounts(read, visibility, users, filter),
    0,
  );
  return (userId, filter) => {
    const keysetPage = (request: KeysetPageRequest) => pages.load({ userId, filter, request });
    return {
      keysetPage,
      hasOutfitAt: async (ordering, key, side) =>
        (await keysetPage(beyond(ordering, key, side))).length > 0,
      count: () => counts.load({ userId, filter, request: 'count' }),
    };
  };
}

/** Reads the same of several users in one go; `fallback` is what a user without any has. */
function createLoader<Request, Found>(
  find: (
    users: readonly number[],
    filter: OutfitFilter,
    request: Request,
  ) => Promise<ReadonlyMap<number, Found>>,
  fallback: Found,
): DataLoader<OfUser<Request>, Found> {
  return new DataLoader(
    async (asked) => {
      const alike = new Map<string, OfUser<Request>[]>();
      const keys = asked.map(({ filter, request }) => keyOf(filter, request));
      for (const [index, one] of asked.entries()) {
        const key = keys[index] as string;
        alike.set(key, [...(alike.get(key) ?? []), one]);
      }
      const found = new Map(
        await Promise.all(
          [...alike].map(async ([key, [first, ...others]]) => {
            const { filter, request } = first as OfUser<Request>;
            const users = [first as OfUser<Request>, ...others].map(({ userId }) => userId);
            return [key, await find([...new Set(users)], filter, request)] as const;
          }),
        ),
      );
      return asked.map(
        ({ userId }, index) => found.get(keys[index] as string)?.get(userId) ?? fallback,
      );
    },
    // Nothing is kept: what a document reads after it has written may be another list.
    { cache: false },
  );
}

/** The same text for what is the same; JSON knows no bigint. */
export function keyOf(...parts: readonly unknown[]): string {
  return JSON.stringify(parts, (_name, value: unknown) =>
    typeof value === 'bigint' ? `${value}n` : value,
  );
}

async function readPages(
  read: ReadRows,
  visibility: Visibility,
  users: readonly number[],
  filter: OutfitFilter,
  request: KeysetPageRequest,
): Promise<Map<number, OutfitRow[]>> {
  const values = createValues(users, request.limit);
  const { reading, bounds } = keysetBounds(request, values.add);
  const { isEmpty, visibility: visible, conditions } = simplify(filter, visibility);
  if (isEmpty) return new Map();
  const viewer = viewerOf(visible, values.add);
  const filtered = [...bounds, ...conditionsOf(conditions, values.add)];
  const limit = rangeLimit(request.limit);
  const ranges = rangesOf(visible, viewer, reading, limit, filtered, conditions, 'owner.id');
  const statement = `
    SELECT ${rowColumns}
    FROM unnest($1::int[]) AS owner (id)
    CROSS JOIN (${rowSource(reading, ranges, 'LIMIT $2::int')})
    ORDER BY ${orderBy(reading)}`;
  const rows = await read<FlatRow>(statement, values.list, {
    ...planFor(filter),
    madeOf(read) {
      const lists = groupBy(inOrder(read, request.from), ({ userId }) => userId);
      return madeOfAll(
        users.map((id) =>
          madeOfRange(membersOfUser(id, visibility, filter), request, lists.get(id) ?? []),
        ),
      );
    },
  });
  return groupBy(inOrder(rows.map(rowOf), request.from), ({ userId }) => userId);
}

async function readCounts(
  read: ReadRows,
  visibility: Visibility,
  users: readonly number[],
  filter: OutfitFilter,
): Promise<Map<number, number>> {
  const values = createValues(users);
  const { isEmpty, visibility: visible, conditions } = simplify(filter, visibility);
  if (isEmpty) return new Map();
  const viewer = viewerOf(visible, values.add);
  const filtered = conditionsOf(conditions, values.add);
  const all = ['s.user_id = owner.id', visibleOf(visible, 'owner.id', viewer), ...filtered];
  const count =
    filtered.length === 0
      ? countOf(membersOfOwner(visible, viewer))
      : `(SELECT count(*)::int FROM ${sourceOf({ field: 'id' }, conditions)} WHERE ${all.join(' AND ')})`;
  const statement = `SELECT owner.id, ${count} AS count FROM unnest($1::int[]) AS owner (id)`;
  const rows = await read<{ id: number; count: number }>(statement, values.list, {
    ...planFor(filter),
    madeOf: () => madeOfAll(users.map((id) => madeOfCount(membersOfUser(id, visibility, filter)))),
  });
  return new Map(rows.map(({ id, count }) => [id, count]));
}

export function groupBy<Key, Item>(
  items: readonly Item[],
  keyOf: (item: Item) => Key,
): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return groups;
}

/** A text for each filter would be many to keep prepared; and all outfits of a user may be read. */
export function planFor(
  filter: OutfitFilter,
): Pick<ReadOptions<never>, 'access' | 'planForValues'> {
  const isFiltered = Object.values(filter).some((value) => value !== undefined);
  return { planForValues: isFiltered, access: isFiltered ? 'unbounded' : 'bounded' };
}

/** Which outfits of the user `owner` are seen. @param viewer placeholder of the viewer's id */
export function membersOfOwner(visibility: Visibility, viewer: string): ListMembers {
  const publics = 'owner.id::bigint';
  switch (visibility.private) {
    case 'all':
      return { publics, privates: publics };
    case 'none':
      return { publics, privates: 'NULL::bigint' };
    case 'own':
      return { publics, privates: `CASE WHEN owner.id = ${viewer}::int THEN ${publics} END` };
  }
}

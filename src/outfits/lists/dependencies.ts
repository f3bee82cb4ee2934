// Cache dependencies of records, pages, keyset pages and counts: which committed changes invalidate them.
import {
  columnBits,
  type Dependencies,
  type ListPart,
  type OutfitKeys,
  type RowImage,
} from '../../database/changes/change-log.ts';
import type { OutfitFilter } from '../filter.ts';
import { compareKeys, type Ordering, type SortKey, sortKeyOf } from '../ordering.ts';
import type { Visibility } from '../visibility.ts';
import type { KeysetPageRequest } from './statements.ts';

/** Membership of outfits in a list, as far as the columns of a change show it. */
export interface Membership {
  /** Whether an outfit may be in the list. */
  readonly has: (outfit: RowImage) => boolean;
  /** Mask of the columns that decide it, except those of the owner. */
  readonly columns: number;
  /** False for filters by other columns: then any change of an outfit that may be in the list invalidates it. */
  readonly isExact: boolean;
  /** Whether it has no dependencies to track: it depends on the viewer, or on outfit_likes. */
  readonly isUntracked: boolean;
}

type Condition<Field extends keyof OutfitFilter> = (
  value: NonNullable<OutfitFilter[Field]>,
) => (outfit: RowImage) => boolean;

interface Logged<Field extends keyof OutfitFilter> {
  readonly column: number;
  readonly condition: Condition<Field>;
}

/** Filters by columns that the change log has. */
const logged: { readonly [Field in keyof Required<OutfitFilter>]?: Logged<Field> } = {
  ids: { column: 0, condition: (ids) => oneOf('id', ids) },
  userIds: { column: 0, condition: (ids) => oneOf('userId', ids) },
  createdFrom: atLeast('created'),
  createdBefore: below('created'),
  likesFrom: atLeast('likes'),
  likesBelow: below('likes'),
  private: { column: 0, condition: (isPrivate) => (outfit) => outfit.private === isPrivate },
};

/** A column that a change does not have may have any value. */
function atLeast(field: 'created' | 'likes') {
  const condition = (from: bigint | number) => (outfit: RowImage) =>
    (outfit[field] ?? from) >= from;
  return { column: columnBits[field], condition };
}

function below(field: 'created' | 'likes') {
  const condition = (end: bigint | number) => (outfit: RowImage) => {
    const value = outfit[field];
    return value === undefined || value < end;
  };
  return { column: columnBits[field], condition };
}

function oneOf(field: 'id' | 'userId', ids: readonly number[]) {
  const all = new Set(ids);
  return (outfit: RowImage) => all.has(outfit[field]);
}

/** @param owner the user of the list; undefined: all users */
export function membershipOf(
  visibility: Visibility,
  filter: OutfitFilter = {},
  owner?: number,
): Membership {
  const given = Object.entries(filter).filter(([, value]) => value !== undefined);
  const conditions: ((outfit: RowImage) => boolean)[] = [];
  if (owner !== undefined) conditions.push((outfit) => outfit.userId === owner);
  let decisive = 0;
  let isExact = true;
  if (visibility.private === 'none') conditions.push((outfit) => !outfit.private);
  for (const [field, value] of given) {
    const found = logged[field as keyof OutfitFilter] as Logged<keyof OutfitFilter> | undefined;
    if (found) {
      conditions.push(found.condition(value as never));
      decisive |= found.column;
    } else isExact = false;
  }
  return {
    has: (outfit) => conditions.every((holds) => holds(outfit)),
    columns: isExact ? decisive : decisive | columnBits.content,
    isExact,
    isUntracked: visibility.private === 'own' || filter.liked !== undefined,
  };
}

/** @param ids the requested ids, including those without an outfit */
export function dependenciesOfRecords(
  ids: readonly number[],
  rows: readonly OutfitKeys[],
): Dependencies {
  return { rows: { outfits: ids, users: rows.map(({ userId }) => userId) } };
}

export function dependenciesOfCount(membership: Membership): Dependencies | undefined {
  return dependenciesOfList(membership, [], {
    columns: 0,
    invalidates: (before, after) => !before !== !after,
  });
}

export function dependenciesOfLikes(membership: Membership): Dependencies | undefined {
  return dependenciesOfList(membership, [], {
    columns: columnBits.likes,
    invalidates: (before, after) => !before !== !after || before?.likes !== after?.likes,
  });
}

export function dependenciesOfPage(
  membership: Membership,
  { field, direction }: Ordering,
  rows: readonly OutfitKeys[],
): Dependencies | undefined {
  const [first, last] = endsOf(rows, field);
  // The number of outfits before the page decides what is on it. In a descending list these have higher keys.
  const isBefore = (key: Place) =>
    key &&
    first !== undefined &&
    (direction === 'asc' ? compareKeys(key, first) < 0 : compareKeys(key, first) > 0);
  const [low, high] = direction === 'asc' ? [first, last] : [last, first];
  return dependenciesOfList(membership, rows, {
    columns: columnOf(field),
    invalidates(before, after) {
      if (!before !== !after) return true;
      const [from, to] = [placeOf(before, field), placeOf(after, field)];
      return isBefore(from) !== isBefore(to) || isMoveWithin(from, to, low, high);
    },
  });
}

export function dependenciesOfRange(
  membership: Membership,
  { ordering, after, before, limit, from }: KeysetPageRequest,
  rows: readonly OutfitKeys[],
): Dependencies | undefined {
  const { field, direction } = ordering;
  const [first, last] = endsOf(rows, field);
  // A full page ends at its last row; otherwise it extends to the bound of the request.
  const isFull = rows.length >= limit;
  const start = from === 'end' && isFull ? first : after;
  const end = from === 'start' && isFull ? last : before;
  const [low, high] = direction === 'asc' ? [start, end] : [end, start];
  return dependenciesOfList(membership, rows, {
    columns: columnOf(field),
    invalidates: (one, other) =>
      isMoveWithin(placeOf(one, field), placeOf(other, field), low, high),
  });
}

/** @param part receives only images of members; undefined where the outfit is not in the list */
function dependenciesOfList(
  { has, isExact, isUntracked, columns: decisive }: Membership,
  rows: readonly OutfitKeys[],
  part: ListPart,
): Dependencies | undefined {
  if (isUntracked) return undefined;
  const member = (outfit: RowImage | undefined) => (outfit && has(outfit) ? outfit : undefined);
  const list: ListPart = {
    columns: withOwner(decisive | part.columns),
    invalidates(outfitBefore, outfitAfter) {
      const [before, after] = [member(outfitBefore), member(outfitAfter)];
      return (before ?? after) !== undefined && (!isExact || part.invalidates(before, after));
    },
  };
  const ids = rows.map(({ id }) => id);
  return { ...dependenciesOfRecords(ids, rows), lists: [list] };
}

/** Changes of likes suffice for a list that is ordered and filtered by likes only; others need changes of outfits. */
function withOwner(decisive: number): number {
  return decisive | (decisive === columnBits.likes ? columnBits.likesOwner : columnBits.owner);
}

function endsOf(rows: readonly OutfitKeys[], field: Ordering['field']) {
  const [first, last] = [rows[0], rows.at(-1)];
  return [first && sortKeyOf(first, field), last && sortKeyOf(last, field)] as const;
}

/** Position in an ordering; undefined: not in the list; null: the change lacks the column, so it does not move it. */
type Place = SortKey | null | undefined;

function placeOf(outfit: RowImage | undefined, field: Ordering['field']): Place {
  if (!outfit) return undefined;
  const { id, [field]: value } = outfit;
  return value === undefined ? null : { value: BigInt(value), id };
}

/** Ids never change. */
function columnOf(field: Ordering['field']): number {
  return field === 'id' ? 0 : columnBits[field];
}

/** Whether an outfit entered, left or moved within a range of keys. An undefined end is unbounded. */
function isMoveWithin(
  from: Place,
  to: Place,
  low: SortKey | undefined,
  high: SortKey | undefined,
): boolean {
  if (from === null || to === null) return from !== to;
  if (from && to && compareKeys(from, to) === 0) return false;
  return [from, to].some(
    (key) =>
      key !== undefined &&
      (low === undefined || compareKeys(low, key) <= 0) &&
      (high === undefined || compareKeys(key, high) <= 0),
  );
}

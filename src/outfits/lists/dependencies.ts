// Cache dependencies of records, pages, keyset pages and counts: which committed changes invalidate them.
import type { Dependencies, ListPart } from '../../database/changes/change-log.ts';
import type { OutfitFilter } from '../filter.ts';
import { compareKeys, type Ordering, type SortKey, sortKeyOf } from '../ordering.ts';
import type { OutfitRow } from '../row.ts';
import type { Visibility } from '../visibility.ts';
import type { KeysetPageRequest } from './statements.ts';

/** The columns by which lists of outfits are filtered and sorted. */
export type OutfitKeys = Pick<
  OutfitRow,
  'id' | 'userId' | 'private' | 'likes' | 'created' | 'modified'
>;

/** An outfit before or after a change. Outfits and their likes are two tables: a change has the columns of one. */
export type OutfitImage = Pick<OutfitKeys, 'id' | 'private' | 'userId'> & {
  readonly [Field in 'created' | 'likes' | 'modified']?: OutfitKeys[Field] | undefined;
};

type Part = (before: OutfitImage | undefined, after: OutfitImage | undefined) => boolean;

/** Membership of outfits in a list, as far as the columns of a change show it. */
export interface Membership {
  /** Whether an outfit may be in the list. */
  readonly has: (outfit: OutfitImage) => boolean;
  /** False for filters by columns that changes lack: then any change of an outfit that may be in the list invalidates it. */
  readonly isExact: boolean;
  /** Whether it is a filter by likes. */
  readonly isByLikes: boolean;
  /** Whether it is a filter by the moment of creation. */
  readonly isByCreated: boolean;
  /** Whether it has no dependencies to track: it depends on the viewer, or on outfit_likes. */
  readonly isUntracked: boolean;
}

type Condition<Field extends keyof OutfitFilter> = (
  value: NonNullable<OutfitFilter[Field]>,
) => (outfit: OutfitImage) => boolean;

/** Filters by columns that the change log has. */
const logged: { readonly [Field in keyof Required<OutfitFilter>]?: Condition<Field> } = {
  ids: (ids) => oneOf('id', ids),
  userIds: (ids) => oneOf('userId', ids),
  createdFrom: atLeast('created'),
  createdBefore: below('created'),
  likesFrom: atLeast('likes'),
  likesBelow: below('likes'),
  private: (isPrivate) => (outfit) => outfit.private === isPrivate,
};

/** A column that a change does not have may have any value. */
function atLeast(field: 'created' | 'likes') {
  return (from: bigint | number) => (outfit: OutfitImage) => (outfit[field] ?? from) >= from;
}

function below(field: 'created' | 'likes') {
  return (end: bigint | number) => (outfit: OutfitImage) => {
    const value = outfit[field];
    return value === undefined || value < end;
  };
}

function oneOf(field: 'id' | 'userId', ids: readonly number[]) {
  const all = new Set(ids);
  return (outfit: OutfitImage) => all.has(outfit[field]);
}

/** @param owner the user of the list; undefined: all users */
export function membershipOf(
  visibility: Visibility,
  filter: OutfitFilter = {},
  owner?: number,
): Membership {
  const given = Object.entries(filter).filter(([, value]) => value !== undefined);
  const conditions: ((outfit: OutfitImage) => boolean)[] = [];
  if (owner !== undefined) conditions.push((outfit) => outfit.userId === owner);
  let isExact = true;
  if (visibility.private === 'none') conditions.push((outfit) => !outfit.private);
  for (const [field, value] of given) {
    const condition = logged[field as keyof OutfitFilter] as
      | Condition<keyof OutfitFilter>
      | undefined;
    if (condition) conditions.push(condition(value as never));
    else isExact = false;
  }
  return {
    has: (outfit) => conditions.every((holds) => holds(outfit)),
    isExact,
    isByLikes: filter.likesFrom !== undefined || filter.likesBelow !== undefined,
    isByCreated: filter.createdFrom !== undefined || filter.createdBefore !== undefined,
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
  return dependenciesOfList(membership, [], (before, after) => !before !== !after);
}

export function dependenciesOfLikes(membership: Membership): Dependencies | undefined {
  const part: Part = (before, after) => !before !== !after || before?.likes !== after?.likes;
  return dependenciesOfList(membership, [], part, 'likes');
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
  const part: Part = (before, after) => {
    if (!before !== !after) return true;
    const [from, to] = [placeOf(before, field), placeOf(after, field)];
    return isBefore(from) !== isBefore(to) || isMoveWithin(from, to, low, high);
  };
  return dependenciesOfList(membership, rows, part, field);
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
  const part: Part = (before, after) =>
    isMoveWithin(placeOf(before, field), placeOf(after, field), low, high);
  return dependenciesOfList(membership, rows, part, field);
}

/** @param part receives only images of members; undefined where the outfit is not in the list */
function dependenciesOfList(
  { has, isExact, isByLikes, isByCreated, isUntracked }: Membership,
  rows: readonly OutfitKeys[],
  part: Part,
  by?: Ordering['field'],
): Dependencies | undefined {
  if (isUntracked) return undefined;
  const needsLikes = isByLikes || by === 'likes';
  // Each outfit has a row of likes with its user and privacy, which suffices for a list by these and by likes only.
  const isByMoment = isByCreated || by === 'created' || by === 'modified';
  const needsOutfits = !needsLikes || !isExact || isByMoment;
  const member = (outfit: OutfitImage | undefined) => (outfit && has(outfit) ? outfit : undefined);
  const list: Part = (outfitBefore, outfitAfter) => {
    // First, since nearly all changes are likes: these alter nothing else.
    const isOfLikes = (outfitBefore ?? outfitAfter)?.likes !== undefined;
    if (isOfLikes ? !needsLikes : !needsOutfits) return false;
    const [before, after] = [member(outfitBefore), member(outfitAfter)];
    return (before ?? after) !== undefined && (!isExact || part(before, after));
  };
  const ids = rows.map(({ id }) => id);
  // The images of changes have the columns of outfit_changes.
  return { ...dependenciesOfRecords(ids, rows), lists: [list as ListPart] };
}

function endsOf(rows: readonly OutfitKeys[], field: Ordering['field']) {
  const [first, last] = [rows[0], rows.at(-1)];
  return [first && sortKeyOf(first, field), last && sortKeyOf(last, field)] as const;
}

/** Position in an ordering; undefined: not in the list; null: the change lacks the column, so it does not move it. */
type Place = SortKey | null | undefined;

function placeOf(outfit: OutfitImage | undefined, field: Ordering['field']): Place {
  if (!outfit) return undefined;
  const { id, [field]: value } = outfit;
  return value === undefined ? null : { value: BigInt(value), id };
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

// What a reading of outfits was made of: which changes can make it another, and which cannot.
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

export interface Members {
  readonly has: (outfit: RowImage) => boolean;
  /** What of an outfit decides it, beside its owner. */
  readonly columns: number;
  /** Whether that is all that decides it. If not, any change of an outfit it might have can change it. */
  readonly isExact: boolean;
  /** Whether other tables than those of outfits and users decide it, too. */
  readonly isOfOthers: boolean;
}

type Condition<Field extends keyof OutfitFilter> = (
  value: NonNullable<OutfitFilter[Field]>,
) => (outfit: RowImage) => boolean;

interface Known<Field extends keyof OutfitFilter> {
  readonly column: number;
  readonly condition: Condition<Field>;
}

const tellable: { readonly [Field in keyof Required<OutfitFilter>]?: Known<Field> } = {
  ids: { column: 0, condition: (ids) => oneOf('id', ids) },
  userIds: { column: 0, condition: (ids) => oneOf('userId', ids) },
  createdFrom: atLeast('created'),
  createdBefore: below('created'),
  likesFrom: atLeast('likes'),
  likesBelow: below('likes'),
  private: { column: 0, condition: (isPrivate) => (outfit) => outfit.private === isPrivate },
};

/** What a change does not tell may be anything. */
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

/** @param filter what changes say nothing about may hold of any outfit @param owner undefined: everyone's */
export function membersOf(
  visibility: Visibility,
  filter: OutfitFilter = {},
  owner?: number,
): Members {
  const given = Object.entries(filter).filter(([, value]) => value !== undefined);
  const conditions: ((outfit: RowImage) => boolean)[] = [];
  if (owner !== undefined) conditions.push((outfit) => outfit.userId === owner);
  let decisive = 0;
  let isExact = true;
  if (visibility.private === 'none') conditions.push((outfit) => !outfit.private);
  for (const [field, value] of given) {
    const found = tellable[field as keyof OutfitFilter] as Known<keyof OutfitFilter> | undefined;
    if (found) {
      conditions.push(found.condition(value as never));
      decisive |= found.column;
    } else isExact = false;
  }
  return {
    has: (outfit) => conditions.every((holds) => holds(outfit)),
    columns: isExact ? decisive : decisive | columnBits.content,
    isExact,
    isOfOthers: visibility.private === 'own' || filter.likedBy !== undefined,
  };
}

type Row = OutfitKeys;

/** @param ids that were asked for, whether there were such outfits or not */
export function dependenciesOfRecords(ids: readonly number[], rows: readonly Row[]): Dependencies {
  return { outfits: ids, users: rows.map(({ userId }) => userId) };
}

export function dependenciesOfCount(members: Members): Dependencies | undefined {
  return dependenciesOfList(members, [], {
    columns: 0,
    invalidates: (before, after) => !before !== !after,
  });
}

export function dependenciesOfPage(
  members: Members,
  { field, direction }: Ordering,
  rows: readonly Row[],
): Dependencies | undefined {
  const [first, last] = endsOf(rows, field);
  // What is before it in the list moves it: in a descending one, that is what has higher keys.
  const isBefore = (key: Place) =>
    key &&
    first !== undefined &&
    (direction === 'asc' ? compareKeys(key, first) < 0 : compareKeys(key, first) > 0);
  const [low, high] = direction === 'asc' ? [first, last] : [last, first];
  return dependenciesOfList(members, rows, {
    columns: columnOf(field),
    invalidates(before, after) {
      if (!before !== !after) return true;
      const [from, to] = [placeOf(before, field), placeOf(after, field)];
      return isBefore(from) !== isBefore(to) || isMoveWithin(from, to, low, high);
    },
  });
}

export function dependenciesOfRange(
  members: Members,
  { ordering, after, before, limit, from }: KeysetPageRequest,
  rows: readonly Row[],
): Dependencies | undefined {
  const { field, direction } = ordering;
  const [first, last] = endsOf(rows, field);
  // As many as were wanted: what is further on was not looked at.
  const isFull = rows.length >= limit;
  const start = from === 'end' && isFull ? first : after;
  const end = from === 'start' && isFull ? last : before;
  const [low, high] = direction === 'asc' ? [start, end] : [end, start];
  return dependenciesOfList(members, rows, {
    columns: columnOf(field),
    invalidates: (one, other) =>
      isMoveWithin(placeOf(one, field), placeOf(other, field), low, high),
  });
}

/** @param part is asked about members only */
function dependenciesOfList(
  { has, isExact, isOfOthers, columns: decisive }: Members,
  rows: readonly Row[],
  part: ListPart,
): Dependencies | undefined {
  if (isOfOthers) return undefined;
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

/** Of a list that only likes order and narrow, the changes of likes tell all; of any other, those of outfits. */
function withOwner(decisive: number): number {
  return decisive | (decisive === columnBits.likes ? columnBits.likesOwner : columnBits.owner);
}

function endsOf(rows: readonly Row[], field: Ordering['field']) {
  const [first, last] = [rows[0], rows.at(-1)];
  return [first && sortKeyOf(first, field), last && sortKeyOf(last, field)] as const;
}

/** The place of an outfit in an order; null: the change does not tell it, nor move it there. */
type Place = SortKey | null | undefined;

function placeOf(outfit: RowImage | undefined, field: Ordering['field']): Place {
  if (!outfit) return undefined;
  const { id, [field]: value } = outfit;
  return value === undefined ? null : { value: BigInt(value), id };
}

/** Ids do not change: an outfit with another one is another outfit. */
function columnOf(field: Ordering['field']): number {
  return field === 'id' ? 0 : columnBits[field];
}

/** Whether an outfit has come to, left, or changed its place in a range; an end that is undefined is none. */
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

// A list of outfits as something to be read: which of the ways to read it fits its filter.
import type { ReadRows } from '../database/read.ts';
import { accessOf, isSelective, type OutfitFilter } from './filter.ts';
import { findKeysetPage, hasOutfitAt, type KeysetPageRequest } from './keyset-page.ts';
import { createMatchedList } from './matched-list.ts';
import type { Ordering, SortKey } from './ordering.ts';
import { countOutfits, findPage, type OutfitPage, type PageRequest, pageOf } from './pages.ts';
import type { OutfitRow } from './row.ts';
import { createSpanList, spanOf } from './span-list.ts';
import type { Visibility } from './visibility.ts';

/** What a connection reads. */
export interface ScrollableList {
  /** The outfits between two places of the list, in its order. */
  readonly keysetPage: (request: KeysetPageRequest) => Promise<OutfitRow[]>;
  /** Whether the list has an outfit at `key` or beyond it, towards `side`. */
  readonly hasOutfitAt: (
    ordering: Ordering,
    key: SortKey,
    side: 'before' | 'after',
  ) => Promise<boolean>;
  /** Outfits in the whole list. */
  readonly count: () => Promise<number>;
}

/** A list that has numbered pages, too. */
export interface OutfitList extends ScrollableList {
  /** @throws PastTheEndError */
  readonly page: (request: PageRequest) => Promise<OutfitPage>;
}

/** The visible outfits that a filter lets through; all of them without one. */
export function createOutfitList(
  read: ReadRows,
  visibility: Visibility,
  filter: OutfitFilter = {},
): OutfitList {
  const { isEmpty, visibility: visible, conditions } = simplify(filter, visibility);
  if (isEmpty) return emptyList;
  if (Object.keys(conditions).length === 0) return createPlainList(read, visible);
  const matched = createMatchedList(read, visible, conditions);
  const span = spanOf(conditions);
  return span ? createSpanList(read, visible, span, matched) : matched;
}

/** What reading a filtered list may cost the database: filters.md says how much that is. */
const weights = { bounded: 0, unbounded: 1, several: 2, scan: 4 };

/** The weight of a list; a document has a budget of it (`filterWeight` of graphql/limits.ts). */
export function weightOf(filter: OutfitFilter, { field }: Ordering): number {
  // The public outfits are a list of their own.
  const { private: isPrivate, ...others } = filter;
  const conditions = isPrivate ? filter : others;
  const access = accessOf(conditions);
  if (access !== 'unbounded') return weights[access];
  const span = spanOf(conditions);
  if (span) return span.field === field ? weights.bounded : weights.several;
  const { words, hashtags = [], userIds = [] } = conditions;
  const isOfOne =
    isSelective(conditions) && words === undefined && hashtags.length + userIds.length <= 1;
  return isOfOne ? weights.unbounded : weights.several;
}

/**
 * What a filter says of `private`, said as a visibility where that can be: the plain list of public
 * outfits costs nothing more. A condition without alternatives matches nothing.
 */
export function simplify(
  filter: OutfitFilter,
  visibility: Visibility,
): { isEmpty: boolean; visibility: Visibility; conditions: OutfitFilter } {
  const given = Object.entries(filter).filter(([, value]) => value !== undefined);
  const conditions: OutfitFilter = Object.fromEntries(given);
  const hasNoAlternative = given.some(([, value]) => Array.isArray(value) && value.length === 0);
  if (conditions.private === undefined) {
    return { isEmpty: hasNoAlternative, visibility, conditions };
  }
  if (!conditions.private) {
    const { private: _public, ...others } = conditions;
    return { isEmpty: hasNoAlternative, visibility: { private: 'none' }, conditions: others };
  }
  const { userIds } = conditions;
  const isHidden =
    visibility.private === 'none' ||
    (visibility.private === 'own' && userIds !== undefined && !userIds.includes(visibility.userId));
  return {
    isEmpty: hasNoAlternative || isHidden,
    visibility,
    // One's own private outfits are among one's own outfits, which have an index.
    conditions:
      visibility.private === 'own' ? { ...conditions, userIds: [visibility.userId] } : conditions,
  };
}

function createPlainList(read: ReadRows, visibility: Visibility): OutfitList {
  return {
    page: (request) => findPage(read, visibility, request),
    keysetPage: (request) => findKeysetPage(read, visibility, request),
    hasOutfitAt: (ordering, key, side) => hasOutfitAt(read, visibility, ordering, key, side),
    count: () => countOutfits(read, visibility),
  };
}

const emptyList: OutfitList = {
  page: async ({ page, pageSize }) => pageOf([], page, pageSize),
  keysetPage: async () => [],
  hasOutfitAt: async () => false,
  count: async () => 0,
};

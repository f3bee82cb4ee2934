// Filters of lists: their SQL conditions, and how the database finds the matches (access).
// In SQL: conditions of the statements of lists, by indexes on expressions.
import type { Access } from '../database/read.ts';
import { isLonger } from './length.ts';
import type { OrderingField } from './ordering.ts';
import { type Visibility, viewerOf } from './visibility.ts';

/** Conditions combined with AND; values of one with OR. Undefined: no condition. An empty array matches nothing. */
export interface OutfitFilter {
  readonly ids?: readonly number[] | undefined;
  readonly userIds?: readonly number[] | undefined;
  /** The outfits that the user of the list likes, instead of own ones, as far as these likes are visible. */
  readonly liked?: Visibility | undefined;
  /** Microseconds. */
  readonly createdFrom?: bigint | undefined;
  readonly createdBefore?: bigint | undefined;
  readonly likesFrom?: number | undefined;
  readonly likesBelow?: number | undefined;
  readonly hasVideo?: boolean | undefined;
  readonly private?: boolean | undefined;
  readonly quality?: readonly number[] | undefined;
  readonly creationDevices?: readonly string[] | undefined;
  /** Without `#`. */
  readonly hashtags?: readonly string[] | undefined;
  /** All words must occur in the title or the description. */
  readonly words?: readonly string[] | undefined;
}

/** Parameters of a statement; `add` returns the placeholder of a value. */
export interface Values {
  readonly list: unknown[];
  readonly add: (value: unknown) => string;
}

export function createValues(): Values {
  const list: unknown[] = [];
  return { list, add: (value) => `$${list.push(value)}` };
}

interface Condition<Field extends keyof OutfitFilter> {
  /** `range`: a range of a field that lists can be sorted by. */
  readonly access: Access | 'range';
  /** Whether it is a condition on likes `l`; otherwise on outfits `s`. */
  readonly isOfLikes?: true;
  readonly sql: (value: NonNullable<OutfitFilter[Field]>, add: Values['add']) => string;
}

const conditions: { readonly [Field in keyof Required<OutfitFilter>]: Condition<Field> } = {
  ids: { access: 'bounded', sql: (ids, add) => `s.id = ANY(${add(ids)}::int[])` },
  userIds: { access: 'unbounded', sql: (ids, add) => `s.user_id = ANY(${add(ids)}::int[])` },
  liked: {
    access: 'unbounded',
    sql: (likes, add) => {
      const viewer = viewerOf(likes, add);
      const isVisible = viewer ? ` AND (owner.id = ${viewer} OR s.user_id = ${viewer})` : '';
      return `s.id IN (SELECT l.outfit_id FROM outfit_likes l WHERE l.user_id = owner.id)${isVisible}`;
    },
  },
  createdFrom: { access: 'range', sql: (from, add) => `s.created >= ${add(from)}::bigint` },
  createdBefore: { access: 'range', sql: (end, add) => `s.created < ${add(end)}::bigint` },
  likesFrom: {
    access: 'range',
    isOfLikes: true,
    sql: (likes, add) => `l.likes >= ${add(likes)}::int`,
  },
  likesBelow: {
    access: 'range',
    isOfLikes: true,
    sql: (likes, add) => `l.likes < ${add(likes)}::int`,
  },
  hasVideo: {
    access: 'scan',
    sql: (hasVideo) => `s.video_key IS ${hasVideo ? 'NOT NULL' : 'NULL'}`,
  },
  private: { access: 'scan', sql: (isPrivate) => (isPrivate ? 's.private' : 'NOT s.private') },
  quality: { access: 'scan', sql: (grades, add) => `s.quality = ANY(${add(grades)}::int[])` },
  creationDevices: {
    access: 'scan',
    sql: (devices, add) => `s.creation_device = ANY(${add(devices)}::text[])`,
  },
  hashtags: {
    access: 'unbounded',
    sql: (hashtags, add) =>
      withText(`t.hashtags && outfit_hashtags(${add(`#${hashtags.join(' #')}`)}::text)`),
  },
  // A text may contain all trigrams of a word, but not the word: recheck.
  words: {
    access: 'unbounded',
    sql: (words, add) =>
      withText(
        `outfit_terms(t.folded) @@ outfit_search(${add(words)}::text[])`,
        ...words.map(
          (word) => `strpos(t.folded, outfit_unaccent(outfit_casefold(${add(word)}::text))) > 0`,
        ),
      ),
  },
};

function givenFields(filter: OutfitFilter): (keyof OutfitFilter)[] {
  const fields = Object.keys(conditions) as (keyof OutfitFilter)[];
  return fields.filter((field) => filter[field] !== undefined);
}

/** How the database finds the matches of a filter: by the best index of its conditions. */
export function accessOf(filter: OutfitFilter): Access {
  const found = givenFields(filter).map((field) => conditions[field].access);
  if (found.length === 0 || found.includes('bounded')) return 'bounded';
  return found.every((access) => access === 'scan') ? 'scan' : 'unbounded';
}

/** FROM: outfits `s`, likes `l`, or both joined. @param needsOutfits there are other conditions on outfits */
export function sourceOf(
  filter: OutfitFilter,
  sortedBy?: OrderingField,
  needsOutfits = false,
): string {
  const given = givenFields(filter).map((name) => conditions[name].isOfLikes ?? false);
  const isByLikes = sortedBy === 'likes';
  if (!isByLikes && !given.includes(true)) return 'outfits s';
  if (isByLikes && !needsOutfits && !given.includes(false)) return 'outfit_like_counts l';
  return 'outfits s JOIN outfit_like_counts l ON l.id = s.id';
}

/** Conditions on the text `t` of outfit `s`. A subquery, so that a GIN index serves them. */
function withText(...all: readonly string[]): string {
  return `s.id IN (SELECT t.outfit_id FROM outfit_texts t WHERE ${all.join(' AND ')})`;
}

export function conditionsOf(filter: OutfitFilter, add: Values['add']): string[] {
  return givenFields(filter).map((field) => {
    const { sql } = conditions[field] as Condition<keyof OutfitFilter>;
    return sql(filter[field] as never, add);
  });
}

/** Whether an index finds the matches: then they are materialized before sorting. */
export function isSelective(filter: OutfitFilter): boolean {
  return givenFields(filter).some((field) =>
    ['bounded', 'unbounded'].includes(conditions[field].access),
  );
}

/** A range of one field that lists can be sorted by, half-open. */
interface FieldRange {
  readonly field: 'created' | 'likes';
  readonly from: bigint | undefined;
  readonly below: bigint | undefined;
}

/** The range of one field, if that is the only condition of the filter. */
export function rangeOf(filter: OutfitFilter): FieldRange | undefined {
  const { createdFrom, createdBefore, likesFrom, likesBelow, ...others } = filter;
  for (const field in others)
    if (others[field as keyof typeof others] !== undefined) return undefined;
  const isOfCreated = createdFrom !== undefined || createdBefore !== undefined;
  const isOfLikes = likesFrom !== undefined || likesBelow !== undefined;
  if (isOfCreated === isOfLikes) return undefined;
  return isOfCreated
    ? { field: 'created', from: createdFrom, below: createdBefore }
    : { field: 'likes', from: toBigInt(likesFrom), below: toBigInt(likesBelow) };
}

function toBigInt(value: number | undefined): bigint | undefined {
  return value === undefined ? undefined : BigInt(value);
}

/** Replaces `private` by a visibility or a user where possible, for a cheaper list. Undefined: nothing matches. */
export function simplify(
  given: OutfitFilter,
  visibility: Visibility,
): { readonly filter: OutfitFilter; readonly visibility: Visibility } | undefined {
  const entries = Object.entries(given).filter(([, value]) => value !== undefined);
  if (entries.some(([, value]) => Array.isArray(value) && value.length === 0)) return undefined;
  if (given.liked?.private === 'none') return undefined;
  const filter: OutfitFilter = Object.fromEntries(entries);
  if (filter.private === undefined) return { visibility, filter };
  if (!filter.private) {
    const { private: _public, ...others } = filter;
    return { visibility: { private: 'none' }, filter: others };
  }
  if (visibility.private === 'none') return undefined;
  if (visibility.private === 'all') return { visibility, filter };
  // The viewer's private outfits are found by the index of the viewer's outfits.
  const { userId } = visibility;
  if (filter.userIds && !filter.userIds.includes(userId)) return undefined;
  return { visibility, filter: { ...filter, userIds: [userId] } };
}

/** Most characters of a search and of a hashtag; the index truncates longer hashtags. */
export const maxLength = 100;

/** Scripts in which one character carries as much as three letters, and emoji. */
const dense =
  /[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Hang}\p{sc=Bopo}\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}\p{Emoji_Presentation}\p{RI}\u2600-\u27bf]/u;

export function readWords(search: string): string[] {
  const words = search.normalize().split(/\s+/u);
  return [...new Set(words)].filter((word) => word !== '');
}

/** Whether the index finds a word without scanning most of its entries: accents that search leaves out do not count. */
export function isSearchable(word: string): boolean {
  const plain = word
    .normalize('NFD')
    .replace(/(?<=\p{sc=Latn})[\u0300-\u036f]+/gu, '')
    .normalize();
  return [...plain].length >= 3 || dense.test(word);
}

/** The hashtags of a text without `#`, each once in upper or lower case, as the index has them (`outfit_terms`). */
export function hashtagsIn(text: string): string[] {
  const found = new Map<string, string>();
  for (const [, hashtag = ''] of text.matchAll(/[#\uff03]([\p{L}\p{M}\p{N}_]+)/gu)) {
    const key = hashtag.normalize().toUpperCase();
    if (!found.has(key)) found.set(key, hashtag);
  }
  return [...found.values()];
}

export function isHashtag(text: string): boolean {
  // Before it is normalized, which makes one character of at most eight.
  if (text.length > 8 * maxLength || isLonger(text.normalize(), maxLength)) return false;
  return /^[\p{L}\p{M}\p{N}_]+$/u.test(text);
}

// Filters of lists: their SQL conditions, and how the database finds the matches (access).
// In SQL: conditions of the statements of lists, by indexes on expressions.
import type { Access } from '../database/read.ts';
import { sightOf, type Visibility } from './visibility.ts';

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

/** How the database finds the matches of each condition. `range`: of a field that lists can be sorted by. */
const accesses: { readonly [Field in keyof Required<OutfitFilter>]: Access | 'range' } = {
  ids: 'bounded',
  userIds: 'unbounded',
  liked: 'unbounded',
  createdFrom: 'range',
  createdBefore: 'range',
  likesFrom: 'range',
  likesBelow: 'range',
  hasVideo: 'scan',
  private: 'scan',
  quality: 'scan',
  creationDevices: 'scan',
  hashtags: 'unbounded',
  words: 'unbounded',
};

/**
 * The tables of a filtered list: outfits, and what its conditions and its ordering need. The planner leaves out a table
 * without a condition, as each has at most one row for an outfit. `owner` is the user of the list, if it is that of a user.
 */
export const filteredTables = `outfits s
        LEFT JOIN outfit_like_counts l ON l.id = s.id
        LEFT JOIN outfit_texts t ON t.outfit_id = s.id
        LEFT JOIN outfit_likes g ON g.outfit_id = s.id AND g.user_id = owner.id`;

/**
 * All conditions. Null is none: the planner leaves it out, as filtered lists are planned for their values. A text may contain
 * all trigrams of a word, but not the word: hence LIKE.
 */
export const matches = `(:ids::int[] IS NULL OR s.id = ANY (:ids))
        AND (:userIds::int[] IS NULL OR s.user_id = ANY (:userIds))
        AND (:createdFrom::bigint IS NULL OR s.created >= :createdFrom)
        AND (:createdBefore::bigint IS NULL OR s.created < :createdBefore)
        AND (:likesFrom::int IS NULL OR l.likes >= :likesFrom)
        AND (:likesBelow::int IS NULL OR l.likes < :likesBelow)
        AND (:hasVideo::boolean IS NULL OR (s.video_key IS NOT NULL) = :hasVideo)
        AND (:private::boolean IS NULL OR s.private = :private)
        AND (:quality::int[] IS NULL OR s.quality = ANY (:quality))
        AND (:creationDevices::text[] IS NULL OR s.creation_device = ANY (:creationDevices))
        AND (:hashtags::text IS NULL OR t.hashtags && outfit_hashtags(:hashtags))
        AND (:words::text[] IS NULL OR outfit_terms(t.folded) @@ outfit_search(:words) AND t.folded LIKE ALL (outfit_patterns(:words)))
        AND (:likers::text IS NULL OR g.user_id IS NOT NULL AND (:likers = 'all' OR owner.id = :liker::int OR s.user_id = :liker))`;

/** The values of the conditions. */
export function valuesOf({ hashtags, liked, ...filter }: OutfitFilter) {
  return {
    ...filter,
    hashtags: hashtags && `#${hashtags.join(' #')}`,
    likers: liked?.private,
    liker: liked && sightOf(liked).viewer,
  };
}

function givenFields(filter: OutfitFilter): (keyof OutfitFilter)[] {
  const fields = Object.keys(accesses) as (keyof OutfitFilter)[];
  return fields.filter((field) => filter[field] !== undefined);
}

/** How the database finds the matches of a filter: by the best index of its conditions. */
export function accessOf(filter: OutfitFilter): Access {
  const found = givenFields(filter).map((field) => accesses[field]);
  if (found.length === 0 || found.includes('bounded')) return 'bounded';
  return found.every((access) => access === 'scan') ? 'scan' : 'unbounded';
}

/** Whether an index finds the matches: then they are materialized before sorting. */
export function isSelective(filter: OutfitFilter): boolean {
  return givenFields(filter).some((field) => ['bounded', 'unbounded'].includes(accesses[field]));
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
  // Four characters can become one; to normalize thousands of combining marks would take a long time.
  for (const [, hashtag = ''] of text.matchAll(/[#\uff03]([\p{L}\p{M}\p{N}_]{1,400})/gu)) {
    const normalized = hashtag.normalize();
    // Cut as in the index, so that the filter takes it.
    const cut = [...normalized].slice(0, maxLength).join('');
    const key = cut.toUpperCase();
    if (!found.has(key)) found.set(key, cut === normalized ? hashtag : cut);
  }
  return [...found.values()];
}

export function isHashtag(text: string): boolean {
  // Before it is normalized, which makes one character of at most eight.
  if (text.length > 8 * maxLength || isLonger(text.normalize(), maxLength)) return false;
  return /^[\p{L}\p{M}\p{N}_]+$/u.test(text);
}

/** Whether a text has more code points. It is measured by its length first: clients send megabytes. */
export function isLonger(text: string, max: number): boolean {
  return text.length > 2 * max || (text.length > max && [...text].length > max);
}

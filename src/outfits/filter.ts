// Which outfits a list is narrowed to, and what that is in SQL.
import type { Visibility } from './visibility.ts';

/**
 * Conditions that all hold of an outfit of the list; several values of one are alternatives. One that
 * is undefined says nothing, and an empty array matches nothing. Ranges are half-open.
 */
export interface OutfitFilter {
  readonly ids?: readonly number[] | undefined;
  readonly userIds?: readonly number[] | undefined;
  /** A user who likes it. */
  readonly likedBy?: number | undefined;
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
  /** All of them occur, anywhere in the title or the description. */
  readonly words?: readonly string[] | undefined;
}

/** The values of a statement whose text is not known before. */
export interface Values {
  readonly list: unknown[];
  /** Takes a value in and gives its placeholder. */
  readonly add: (value: unknown) => string;
}

export function createValues(...first: readonly unknown[]): Values {
  const list = [...first];
  return { list, add: (value) => `$${list.push(value)}` };
}

/** The placeholder of the viewer's id, if it matters to what is visible. */
export function viewerOf(visibility: Visibility, add: Values['add']): string {
  return visibility.private === 'own' ? add(visibility.userId) : '';
}

type Condition<Field extends keyof OutfitFilter> = (
  value: NonNullable<OutfitFilter[Field]>,
  add: Values['add'],
) => string;

const conditions: { readonly [Field in keyof Required<OutfitFilter>]: Condition<Field> } = {
  ids: (ids, add) => `s.id = ANY(${add(ids)}::int[])`,
  userIds: (ids, add) => `s.user_id = ANY(${add(ids)}::int[])`,
  likedBy: (id, add) =>
    `s.id IN (SELECT l.outfit_id FROM outfit_likes l WHERE l.user_id = ${add(id)}::int)`,
  createdFrom: (moment, add) => `s.created >= ${add(moment)}::bigint`,
  createdBefore: (moment, add) => `s.created < ${add(moment)}::bigint`,
  likesFrom: (likes, add) => `s.likes >= ${add(likes)}::int`,
  likesBelow: (likes, add) => `s.likes < ${add(likes)}::int`,
  hasVideo: (hasVideo) => `s.video_key IS ${hasVideo ? 'NOT NULL' : 'NULL'}`,
  private: (isPrivate) => (isPrivate ? 's.private' : 'NOT s.private'),
  quality: (grades, add) => `s.quality = ANY(${add(grades)}::int[])`,
  creationDevices: (devices, add) => `s.creation_device = ANY(${add(devices)}::text[])`,
  hashtags: (hashtags, add) => withText(`outfit_hashtags(${add(hashtags)}::text[])`),
  // The terms of a word may stand in a text without the word.
  words: (words, add) =>
    withText(
      `outfit_search(${add(words)}::text[])`,
      words.map((word) => `strpos(t.folded, outfit_fold(${add(word)}::text)) > 0`),
    ),
};

/** What outfits `s` have a text with these terms. Found by itself, so that only the index is asked. */
function withText(terms: string, others: readonly string[] = []): string {
  const all = [`outfit_terms(t.folded) @@ ${terms}`, ...others].join(' AND ');
  return `s.id IN (SELECT t.outfit_id FROM outfit_texts t WHERE ${all})`;
}

/** What the outfits `s` of a filter are, in SQL. */
export function conditionsOf(filter: OutfitFilter, add: Values['add']): string[] {
  const names = Object.keys(conditions) as (keyof OutfitFilter)[];
  return names.flatMap((name) => {
    const value = filter[name];
    const condition = conditions[name] as Condition<keyof OutfitFilter>;
    return value === undefined ? [] : [condition(value as never, add)];
  });
}

/** Whether an index finds what the filter lets through: then all of it is found before it is sorted. */
export function isSelective(filter: OutfitFilter): boolean {
  const { ids, userIds, likedBy, hashtags, words } = filter;
  return [ids, userIds, likedBy, hashtags, words].some((value) => value !== undefined);
}

// OutfitFilter and OutfitOrdering: the arguments of every list of outfits.
import type { InputShapeFromTypeParam } from '@pothos/core';
import type { OutfitFilter as Filter } from '../../outfits/filter.ts';
import { isHashtag, isLonger, isSearchable, maxLength, readWords } from '../../outfits/filter.ts';
import {
  defaultOrdering,
  type Ordering,
  orderingFields,
  simplifyOrdering,
} from '../../outfits/ordering.ts';
import { builder, DateTime } from '../builder.ts';
import { badUserInput, requireRange } from '../errors.ts';
import { readGlobalId } from './node.ts';
import { Device } from './outfit-input.ts';

const maxValues = 100;

/** REST refuses what is too short: its lists have no place to say so. */
export function refuseShortSearch(text: string): string | undefined {
  const short = readWords(text).find((word) => !isSearchable(word));
  return (
    short &&
    `has a word that is too short to be found: ${JSON.stringify(short)}. Give words of three characters or more.`
  );
}

const alternatives = `At most ${maxValues}; [] matches nothing.`;
const slow =
  'Not indexed: in a very long list it may exceed the time limit, which is an error with the code TIMEOUT.';

export const OutfitFilter = builder.inputType('OutfitFilter', {
  description:
    'Filter of a list of outfits. All conditions must match (AND); the values of one condition are alternatives (OR). An omitted or null condition is ignored.',
  fields: (t) => ({
    ids: t.idList({ description: `Outfits with one of these ids. ${alternatives}` }),
    userIds: t.idList({ description: `Outfits of the users with these ids. ${alternatives}` }),
    userDatabaseIds: t.intList({
      description: `Outfits of the users with these numbers. ${alternatives}`,
    }),
    createdFrom: t.field({ type: DateTime, description: 'Published at this time or later.' }),
    createdBefore: t.field({ type: DateTime, description: 'Published before this time.' }),
    likesFrom: t.int({ description: 'With this many likes or more.' }),
    likesBelow: t.int({ description: 'With fewer likes than this.' }),
    hasVideo: t.boolean({ description: `Whether there is a video. ${slow}` }),
    private: t.boolean({
      description:
        'Whether the owner marked the outfit as private. Outfits that the viewer may not see stay hidden.',
    }),
    quality: t.intList({
      description: `With one of these quality grades. ${alternatives} ${slow}`,
    }),
    creationDevices: t.field({
      type: [Device],
      description: `Published from one of these devices. ${alternatives} ${slow}`,
    }),
    hashtags: t.stringList({
      description: `With one of these hashtags in the title or description, with or without \`#\`, in upper or lower case. ${alternatives}`,
    }),
    search: t.string({
      description: `Words, separated by white space, that all occur in the title or description: anywhere, in upper or lower case, at most ${maxLength} characters together. A word has three characters or more, but one is enough in Chinese, Japanese, Korean, Thai and the like, and of emoji: with a shorter one the list is empty, and says so by its field \`searchTooShort\` (in REST it is a 400). White space alone is ignored.`,
      extensions: { refuse: refuseShortSearch },
    }),
  }),
});

/** Whether a list is empty because its search has a word that is too short. */
export function isTooShort({ words }: Filter): boolean {
  return words?.length === 0;
}

export const searchTooShort = {
  description:
    'Whether the list is empty because a word of the search is too short to be found: more letters are needed.',
} as const;

type Input = InputShapeFromTypeParam<typeof builder.$inferSchemaTypes, typeof OutfitFilter, false>;

/** @throws GraphQLError that names the field of an invalid value */
export function filterOf(input: Input | undefined): Filter {
  if (!input) return {};
  const { ids, quality, creationDevices } = input;
  const userIds = readList('userIds', input.userIds, (id, name) =>
    readGlobalId('User', id, name, ' For numbers, use userDatabaseIds.'),
  );
  const numbers = readList('userDatabaseIds', input.userDatabaseIds, (id) => id);
  return {
    ids: readList('ids', ids, (id, name) => readGlobalId('Outfit', id, name)),
    userIds:
      userIds && numbers ? userIds.filter((id) => numbers.includes(id)) : (userIds ?? numbers),
    createdFrom: input.createdFrom ?? undefined,
    createdBefore: input.createdBefore ?? undefined,
    likesFrom: requireRange('filter.likesFrom', input.likesFrom, [0]),
    likesBelow: requireRange('filter.likesBelow', input.likesBelow, [0]),
    hasVideo: input.hasVideo ?? undefined,
    private: input.private ?? undefined,
    quality: readList('quality', quality, (grade) => grade),
    creationDevices: readList('creationDevices', creationDevices, (device) => device),
    hashtags: readList('hashtags', input.hashtags, readHashtag),
    words: readSearch('filter.search', input.search),
  };
}

function readHashtag(text: string, name: string): string {
  const hashtag = text.replace(/^[#\uff03]/u, '');
  if (isHashtag(hashtag)) return hashtag;
  throw badUserInput(
    `${name} is not a hashtag: it must have 1 to ${maxLength} letters, digits, marks and underscores, and may begin with #.`,
  );
}

/** The words of a search; undefined: none; []: one is too short. @throws GraphQLError that names the argument of an invalid search */
export function readSearch(name: string, text: string | null | undefined): string[] | undefined {
  if (text === null || text === undefined) return undefined;
  if (isLonger(text, maxLength)) {
    throw badUserInput(`${name} must have at most ${maxLength} characters.`);
  }
  // PostgreSQL text cannot hold NUL or lone surrogates.
  if (/[\0\p{Cs}]/u.test(text)) {
    throw badUserInput(`${name} must be Unicode text without NUL characters.`);
  }
  const words = readWords(text);
  if (words.length === 0) return undefined;
  return words.every(isSearchable) ? words : [];
}

function readList<Value, Read>(
  name: string,
  values: readonly Value[] | null | undefined,
  read: (value: Value, name: string) => Read,
): Read[] | undefined {
  if (!values) return undefined;
  if (values.length > maxValues) {
    throw badUserInput(
      `filter.${name} must have at most ${maxValues} values, but it has ${values.length}.`,
    );
  }
  return values.map((value, index) => read(value, `filter.${name}[${index}]`));
}

// Values are the spellings of REST, whose error lists them in this order.
export const OutfitOrdering = builder.enumType('OutfitOrdering', {
  description: 'Sort order of a list; ties are ordered by id in the same direction.',
  // For spellings of REST that are no value.
  extensions: { simplify: simplifyOrdering },
  values: {
    CREATED_ASC: { value: 'created', description: 'Oldest first.' },
    CREATED_DESC: {
      value: '-created',
      description: 'Newest first; the default.',
      extensions: { isDefault: true },
    },
    ID_ASC: { value: 'id', description: 'Lowest id first.' },
    ID_DESC: { value: '-id', description: 'Highest id first.' },
    LIKE_COUNT_ASC: { value: 'like_count', description: 'Fewest likes first.' },
    LIKE_COUNT_DESC: { value: '-like_count', description: 'Most likes first.' },
    MODIFIED_ASC: { value: 'modified', description: 'Least recently changed first.' },
    MODIFIED_DESC: { value: '-modified', description: 'Most recently changed first.' },
  } as const,
});

export function orderingOf(
  spelling: (typeof OutfitOrdering)['$inferType'] | null | undefined,
): Ordering {
  if (!spelling) return defaultOrdering;
  const name = spelling.replace('-', '') as keyof typeof orderingFields;
  return { field: orderingFields[name], direction: spelling.startsWith('-') ? 'desc' : 'asc' };
}

/** Of every list of outfits. */
export const listArguments = builder.args((t) => ({
  ordering: t.field({
    type: OutfitOrdering,
    description: 'Sort order; newest first when omitted.',
  }),
  filter: t.field({ type: OutfitFilter, description: 'Filter of the list.' }),
}));

// What a filter of outfits means, as plain JavaScript on rows, and filters at random.
import fc from 'fast-check';
import type { OutfitRow } from '../../../src/outfits/row.ts';
import { formatTimestamp } from '../../../src/outfits/timestamps.ts';
import { outfitId, userId } from '../gateway.ts';

/** Titles and descriptions in many scripts. */
export const texts = [
  ['Straße in Köln', 'Ein #Kleid für den #Sommer. STRASSE!'],
  ['ΟΔΟΣ', 'Η οδός του Αλέξη #ΜΌΔΑ'],
  ['東京の春コーデ', 'リネンのシャツ。#古着 #春コーデ2024'],
  ['여름 코디', '#여름코디 시원한 린넨'],
  ['ชุดสีดำ', '#แฟชั่น เสื้อผ้า'],
  ['Летний образ', '#лето_2024 и #ЛЕТО'],
  ['إطلالة الصيف', '#موضة في الصيف'],
  ['साड़ी', '#भारतीय_फैशन हिन्दी'],
  ['Cafe\u0301 look', "it's a\\b 'quoted' #caf\u00e9 100% _x_ 🖤 🇫🇷"],
  ['#vintage', '#vintageshop ##double #a-b'],
  ['', 'vin tage\nnew\tline ＃全角'],
  ['İstanbul ﬁne', 'ǅungla TITLE'],
  ['Søster i Łódź', 'Crème brûlée, йод и Ёлка #Crème'],
] as const;
const searches = [
  ...['strasse köln', 'ΟΔΌΣ', 'οδοσ', '春', 'の', 'シャツ リネン', '코디', 'สี', 'ЛЕТНИЙ', 'الصيف'],
  ...['हिन्दी', "a\\b 'quoted'", '100% _x_', '🖤', '🇫🇷', 'vintage', ' \t\n', 'new line', 'the'],
  ...[
    'cafe',
    'CAFÉ',
    'Koln',
    'istanbul',
    'soster lodz',
    'creme brulée',
    '#creme',
    'ёлка',
    'елка',
    'йод',
  ],
];

export interface Filter {
  readonly ids?: readonly string[] | null;
  readonly userIds?: readonly string[] | null;
  readonly createdFrom?: string | null;
  readonly createdBefore?: string | null;
  readonly likesFrom?: number | null;
  readonly likesBelow?: number | null;
  readonly hasVideo?: boolean | null;
  readonly private?: boolean | null;
  readonly quality?: readonly number[] | null;
  readonly creationDevices?: readonly string[] | null;
  readonly hashtags?: readonly string[] | null;
  readonly search?: string | null;
}

/** Lower case as Unicode folds: full, and with one sigma. */
function fold(text: string): string {
  return text
    .normalize()
    .replaceAll('İ', 'i̇')
    .toUpperCase()
    .toLowerCase()
    .replaceAll('ς', 'σ')
    .normalize();
}

const replaced = { ø: 'o', ł: 'l', đ: 'd', ı: 'i', ß: 'ss', æ: 'ae', œ: 'oe' };

/** As a search compares texts: without accents of Latin letters. */
export function plain(text: string): string {
  return fold(text)
    .normalize('NFD')
    .replace(/(\p{sc=Latn})[\u0300-\u036f]+/gu, '$1')
    .replace(/[øłđıßæœ]/g, (letter) => replaced[letter as keyof typeof replaced])
    .normalize();
}

const textOf = ({ title, description }: OutfitRow) => `${title}\n${description}`;
const wordsOf = (text: string) => text.split(/\s+/u).filter(Boolean).map(plain);
const hashtagsOf = (row: OutfitRow) =>
  Array.from(fold(textOf(row)).matchAll(/[#＃]([\p{L}\p{M}\p{N}_]+)/gu), ([, tag]) => tag);

type Meaning<Value> = (row: OutfitRow, value: NonNullable<Value>) => boolean;

/** What each condition means, as a person would say it. */
const meanings: { readonly [Field in keyof Filter]-?: Meaning<Filter[Field]> } = {
  ids: (row, ids) => ids.includes(outfitId(row.id)),
  userIds: (row, ids) => ids.includes(userId(row.userId)),
  createdFrom: (row, from) => formatTimestamp(row.created) >= from,
  createdBefore: (row, before) => formatTimestamp(row.created) < before,
  likesFrom: (row, from) => row.likes >= from,
  likesBelow: (row, below) => row.likes < below,
  hasVideo: (row, hasVideo) => (row.videoKey !== null) === hasVideo,
  private: (row, isPrivate) => row.private === isPrivate,
  quality: (row, grades) => grades.includes(row.quality),
  creationDevices: (row, devices) => devices.includes(row.creationDevice.toUpperCase()),
  hashtags: (row, tags) =>
    tags.some((tag) => hashtagsOf(row).includes(fold(tag.replace(/^[#＃]/u, '')))),
  search: (row, search) => wordsOf(search).every((word) => plain(textOf(row)).includes(word)),
};

/** Whether a filter lets an outfit through. */
export function matches(row: OutfitRow, filter: Filter): boolean {
  return Object.entries(filter).every(
    ([field, value]) =>
      value === null || (meanings[field as keyof Filter] as Meaning<unknown>)(row, value),
  );
}

const orNull = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { freq: 8 });
const some = <Value>(values: readonly Value[]) =>
  fc.array(fc.constantFrom(...values), { maxLength: 3 });

/** What filters at random are made of: values that some outfits have, and a few that none has. */
export interface Pool {
  readonly ids: readonly number[];
  readonly userIds: readonly number[];
  /** Microseconds. */
  readonly moments: readonly bigint[];
  readonly likes: readonly number[];
}

export function anyFilterOf({ ids, userIds, moments, likes }: Pool): fc.Arbitrary<Filter> {
  const moment = fc
    .tuple(fc.constantFrom(...moments), fc.constantFrom(-1n, 0n, 1n))
    .map(([base, step]) => formatTimestamp(base + step));
  const number = fc.constantFrom(...likes);
  const conditions = {
    ids: orNull(some(ids.map(outfitId))),
    userIds: orNull(some(userIds.map(userId))),
    createdFrom: orNull(moment),
    createdBefore: orNull(moment),
    likesFrom: orNull(number),
    likesBelow: orNull(number),
    hasVideo: orNull(fc.boolean()),
    private: orNull(fc.boolean()),
    quality: orNull(some([2, 3, 4, 5, 77])),
    creationDevices: orNull(some(['IOS', 'ANDROID', 'WEB'])),
    hashtags: orNull(
      some('#Vintage vintageShop ЛЕТО ＃古着 móda café a nope crème creme'.split(' ')),
    ),
    search: orNull(fc.constantFrom(...searches)),
  };
  return fc.oneof(
    // One or two conditions, so that most filters let something through.
    fc
      .subarray(Object.keys(conditions) as (keyof Filter)[], { minLength: 1, maxLength: 2 })
      .chain((names) =>
        fc.record(Object.fromEntries(names.map((name) => [name, conditions[name]]))),
      ),
    fc.record({ createdFrom: conditions.createdFrom, createdBefore: conditions.createdBefore }),
    fc.record({ likesFrom: conditions.likesFrom, likesBelow: conditions.likesBelow }),
    fc.record(conditions, { requiredKeys: [] }),
  ) as fc.Arbitrary<Filter>;
}

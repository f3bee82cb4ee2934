// The demonstration set: the same on every machine, and with all that the contract allows.
import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { generateOutfits } from '../bench/outfits/generate.ts';
import { readDemo } from '../src/demo/seed.ts';
import type { OutfitRow } from '../src/outfits/row.ts';

// A change of the set on purpose changes this too: the two belong in one commit.
const golden = 'db01b7f90d6c1c75445f0f01ecce5f92a6917cafb67123f1298b8feeaedb977f';

const rows: OutfitRow[] = [];
for await (const row of readDemo()) rows.push(row);
const users = [...new Map(rows.map(({ user }) => [user.id, user])).values()];
const texts = rows.map(({ title, description }) => `${title}\n${description}`);
const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/;

function digest(outfits: Iterable<OutfitRow>): string {
  const sha256 = createHash('sha256');
  for (const outfit of outfits) {
    const write = (_key: string, value: unknown) =>
      typeof value === 'bigint' ? value.toString() : value;
    sha256.update(`${JSON.stringify(outfit, write)}\n`);
  }
  return sha256.digest('hex');
}

function share(matches: (outfit: OutfitRow) => boolean): number {
  return rows.filter(matches).length / rows.length;
}

function countDistinct(values: Iterable<unknown>): number {
  return new Set(values).size;
}

describe('the set', () => {
  test('has the same bytes on every machine: those that bench/outfits/write.ts wrote', () => {
    expect(digest(rows)).toBe(golden);
    expect(digest(generateOutfits())).toBe(golden);
  });

  test('is at least 2,000 outfits of at least 200 users', () => {
    expect(rows).toHaveLength(2400);
    expect(users).toHaveLength(240);
  });

  test('is made like any number of outfits, one at a time, from a seed', () => {
    expect([...generateOutfits({ outfits: 0, users: 0 })]).toEqual([]);
    expect(() => [...generateOutfits({ outfits: 1, users: 0 })]).toThrow(RangeError);
    const many = { outfits: 10_000_000, users: 1_000_000 };
    const [one, same, other] = [7, 7, 8].map((seed) =>
      JSON.stringify(generateOutfits({ ...many, seed }).next().value.imageKey),
    );
    expect(one).toBe(same);
    expect(one).not.toBe(other);
  });
});

describe('ids', () => {
  test('of users have no gaps, those of outfits a few', () => {
    const ids = users.map(({ id }) => id).sort((left, right) => left - right);
    expect(ids).toEqual(Array.from({ length: 240 }, (_, index) => index + 1));
    const steps = rows.map(({ id }, index) => id - (rows[index - 1]?.id ?? 0));
    expect(new Set(steps)).toEqual(new Set([1, 2]));
    expect(steps.filter((step) => step === 2).length).toBeLessThan(rows.length / 20);
  });

  test('in keys are version 4 UUIDs, never used twice', () => {
    const keys = new Set(
      rows.flatMap((row) => [row.imageKey, row.imageOriginalKey, row.videoKey, row.user.avatarKey]),
    );
    for (const none of [null, '']) keys.delete(none);
    const found = [...keys].map((key) => key?.match(uuid)?.[0]);
    expect(found).not.toContain(undefined);
    expect(countDistinct(found)).toBe(keys.size);
  });
});

/** What the importer has not refused occurs, and how often: what readers, writers and fonts may stumble over. */
test.each<[what: string, (row: OutfitRow) => boolean, from: number, to: number]>([
  ['no title', ({ title }) => title === '', 0.02, 0.1],
  ['no description', ({ description }) => description === '', 0.05, 0.2],
  ['neither', ({ title, description }) => title + description === '', 0.0001, 0.02],
  ['an image in png', ({ imageKey }) => imageKey.endsWith('.png'), 0.1, 0.2],
  ['another original image', (row) => row.imageKey !== row.imageOriginalKey, 0.01, 0.05],
  ['a video that plays', (row) => row.videoKey !== null && row.playVideo, 0.11, 0.13],
  ['a video that does not', (row) => row.playVideo !== (row.videoKey !== null), 0, 0],
  ['no colour', ({ backgroundColor }) => backgroundColor === '', 0.1, 0.5],
  ['a short colour', ({ backgroundColor }) => backgroundColor.length === 4, 0.1, 0.5],
  ['a long colour', ({ backgroundColor }) => backgroundColor.length === 7, 0.1, 0.5],
  ['incomplete', ({ complete }) => !complete, 0, 0],
  ['private', (row) => row.private, 0.09, 0.11],
  ['no likes', ({ likes }) => likes === 0, 0.29, 0.31],
  ['many likes', ({ likes }) => likes > 5000, 0.0001, 0.02],
  ['a tie of likes', ({ likes }) => likes === 7, 0.004, 0.1],
  ['whole seconds', ({ created }) => created % 1_000_000n === 0n, 0.02, 0.1],
  ['milliseconds', ({ created }) => created % 1000n === 0n, 0.04, 0.2],
  ['never changed', (row) => row.modificationDevice === '', 0.5, 0.8],
  ['changed', (row) => row.modified >= row.created + 1_000_000n, 0.2, 0.5],
])('%s', (_what, matches, from, to) => {
  expect(share(matches)).toBeGreaterThanOrEqual(from);
  expect(share(matches)).toBeLessThanOrEqual(to);
});

test('qualities and devices occur in every combination', () => {
  expect(new Set(rows.map(({ quality }) => quality))).toEqual(new Set([2, 3, 4, 5]));
  expect(countDistinct(rows.map((row) => `${row.creationDevice} ${row.modificationDevice}`))).toBe(
    3 * 4,
  );
});

describe('texts', () => {
  test('fit the limits of a new outfit, and reach the one of titles', () => {
    expect(Math.max(...rows.map(({ title }) => [...title].length))).toBe(255);
    const longest = Math.max(...rows.map(({ description }) => [...description].length));
    expect(longest).toBeGreaterThan(2000);
    expect(longest).toBeLessThanOrEqual(10_000);
  });

  test.each([
    'Latin',
    'Cyrillic',
    'Greek',
    'Arabic',
    'Hebrew',
    'Devanagari',
    'Thai',
    'Han',
    'Hiragana',
    'Katakana',
    'Hangul',
  ])('use the script %s', (script) => {
    const pattern = new RegExp(`\\p{Script=${script}}`, 'u');
    for (const field of ['title', 'description'] as const) {
      expect(rows.filter((outfit) => pattern.test(outfit[field])).length).toBeGreaterThan(5);
    }
  });

  test.each([
    ['a Latin letter with a diacritic', /[à-öø-ÿąęłńśźżğışŁŻ]/],
    ['a combining mark', /e\u0301/],
    ['an emoji', /\p{Emoji_Presentation}/u],
    ['a ZWJ sequence', /\p{Extended_Pictographic}\ufe0f?\u200d\p{Extended_Pictographic}/u],
    ['a flag', /\p{Regional_Indicator}{2}/u],
    ['a skin tone', /\p{Emoji_Modifier}/u],
    ['a letter beyond the first plane', /𠮷/],
    ['a hashtag', /#ootd/],
    ['a hashtag in another script', /#\p{Script=Han}/u],
    ['a newline', /\S\n\S/],
    ['an empty line', /\S\n\n\S/],
    ['a carriage return', /\r\n/],
    ['a tab', /\t/],
    ['U+2028', /\u2028/],
    ['a double quote', /"/],
    ['a single quote', /'/],
    ['a backslash', /\\/],
    ['markup', /<b>.*&amp;/],
    ['both directions in one line', /\p{Script=Hebrew}.*[a-z].*\p{Script=Hebrew}/u],
  ])('hold %s', (_name, pattern) => {
    expect(texts.filter((text) => pattern.test(text)).length).toBeGreaterThan(0);
  });

  test('mention existing users, never the owner', () => {
    const usernames = new Set(users.map(({ username }) => username));
    const mentions = rows.flatMap(({ description, user }) =>
      [...description.matchAll(/@([\w-]+)/g)].map(([, username = '']) => ({ username, user })),
    );
    expect(mentions.length).toBeGreaterThan(100);
    expect(mentions.filter(({ username }) => !usernames.has(username))).toEqual([]);
    expect(mentions.filter(({ username, user }) => username === user.username)).toEqual([]);
  });
});

describe('moments', () => {
  const createds = rows.map(({ created }) => created);

  test('run from 2019 to 2026, broadly but not strictly with the id, and tie now and then', () => {
    const years = createds.map((created) => new Date(Number(created / 1000n)).getUTCFullYear());
    expect(new Set(years)).toEqual(new Set([2019, 2020, 2021, 2022, 2023, 2024, 2025, 2026]));
    const steps = createds.map((created, index) => Number(created - (createds[index - 1] ?? 0n)));
    const backwards = steps.filter((step) => step < 0);
    expect(backwards.length).toBeGreaterThan(100);
    expect(backwards.length).toBeLessThan(rows.length / 2);
    expect(Math.min(...steps)).toBeGreaterThan(-4 * 86_400_000_000);
    expect(rows.length - countDistinct(createds)).toBeGreaterThan(10);
  });

  test('an outfit that its owner never changed differs by microseconds at most', () => {
    const untouched = rows.filter(({ modificationDevice }) => modificationDevice === '');
    const delays = untouched.map(({ created, modified }) => Number(modified - created));
    expect([...new Set(delays)].sort()).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });
});

describe('users', () => {
  test('have an avatar of every kind, or none, and a name of their own', () => {
    const kinds = new Set(users.map(({ avatarKey }) => avatarKey.split('.')[1] ?? ''));
    expect(kinds).toEqual(new Set(['', 'jpeg', 'png', 'gif']));
    const usernames = users.map(({ username }) => username);
    for (const pattern of [/[A-Z]/, /[0-9]/, /-/, /_/, /^[a-z]+$/]) {
      expect(usernames.some((username) => pattern.test(username))).toBe(true);
    }
    expect(countDistinct(usernames)).toBe(users.length);
  });

  test('have both names, either or none, in several scripts', () => {
    const forms = users.map(({ firstName, lastName }) => [firstName !== '', lastName !== '']);
    expect(countDistinct(forms.map(String))).toBe(4);
    for (const script of ['Latin', 'Cyrillic', 'Arabic', 'Han', 'Hangul', 'Thai']) {
      const pattern = new RegExp(`\\p{Script=${script}}`, 'u');
      expect(users.some(({ firstName }) => pattern.test(firstName))).toBe(true);
    }
  });

  test('are the same wherever they occur', () => {
    expect(countDistinct(rows.map(({ user }) => JSON.stringify(user)))).toBe(users.length);
  });
});

test('the first page is a pleasant sight', () => {
  const newest = rows
    .toSorted((left, right) => Number(right.created - left.created) || right.id - left.id)
    .slice(0, 20);
  expect(newest.filter(({ likes }) => likes > 0).length).toBeGreaterThan(10);
  expect(newest.filter(({ title }) => title !== '').length).toBeGreaterThan(17);
  expect(countDistinct(newest.map(({ title }) => title))).toBeGreaterThan(17);
  expect(countDistinct(newest.map(({ userId }) => userId))).toBeGreaterThan(12);
});

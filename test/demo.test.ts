import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { generateOutfits } from '../src/demo/generate.ts';
import type { OutfitRow } from '../src/outfits/row.ts';

// Whoever changes the generator on purpose changes this too: the two belong in one commit.
const golden = 'db01b7f90d6c1c75445f0f01ecce5f92a6917cafb67123f1298b8feeaedb977f';

const rows = [...generateOutfits()];
const users = [...new Map(rows.map(({ user }) => [user.id, user])).values()];
const texts = rows.map(({ title, description }) => `${title}\n${description}`);
const uuid = '[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}';

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

describe('the same bytes', () => {
  test('on every machine', () => {
    expect(digest(rows)).toBe(golden);
  });

  test('for the same seed, and others for another', () => {
    const some = { outfits: 300, users: 30 };
    expect(digest(generateOutfits({ ...some, seed: 7 }))).toBe(
      digest(generateOutfits({ ...some, seed: 7 })),
    );
    expect(digest(generateOutfits({ ...some, seed: 7 }))).not.toBe(
      digest(generateOutfits({ ...some, seed: 8 })),
    );
  });
});

describe('size', () => {
  test('is at least 2,000 outfits of at least 200 users', () => {
    expect(rows).toHaveLength(2400);
    expect(users).toHaveLength(240);
  });

  test('is what the caller asks for', () => {
    expect([...generateOutfits({ outfits: 0, users: 0 })]).toEqual([]);
    expect([...generateOutfits({ outfits: 1, users: 1 })]).toHaveLength(1);
    expect(() => [...generateOutfits({ outfits: 1, users: 0 })]).toThrow(RangeError);
  });

  test('does not cost memory: rows are made one at a time', () => {
    const outfits = generateOutfits({ outfits: 10_000_000, users: 1_000_000 });
    expect(outfits.next().value).toMatchObject({ complete: true });
  });
});

describe('ids', () => {
  test('of users have no gaps', () => {
    const ids = users.map(({ id }) => id).sort((left, right) => left - right);
    expect(ids).toEqual(Array.from({ length: 240 }, (_, index) => index + 1));
  });

  test('of outfits increase, with a few gaps', () => {
    expect(rows[0]?.id).toBe(1);
    const steps = rows.slice(1).map(({ id }, index) => id - (rows[index]?.id ?? 0));
    expect(new Set(steps)).toEqual(new Set([1, 2]));
    expect(steps.filter((step) => step === 2).length).toBeLessThan(rows.length / 20);
  });

  test('in keys are version 4 UUIDs, never used twice', () => {
    const keys = rows.flatMap(({ imageKey, videoKey, imageOriginalKey }) => [
      imageKey,
      ...(videoKey === null ? [] : [videoKey]),
      ...(imageOriginalKey === imageKey ? [] : [imageOriginalKey]),
    ]);
    keys.push(...users.map(({ avatarKey }) => avatarKey).filter((key) => key !== ''));
    const found = keys.map((key) => key.match(new RegExp(uuid))?.[0]);
    expect(found).not.toContain(undefined);
    expect(countDistinct(found)).toBe(keys.length);
  });
});

describe('texts', () => {
  test('are sometimes empty', () => {
    expect(share(({ title }) => title === '')).toBeGreaterThan(0.02);
    expect(share(({ description }) => description === '')).toBeGreaterThan(0.05);
    expect(rows.some(({ title, description }) => title === '' && description === '')).toBe(true);
    expect(share(({ title }) => title === '')).toBeLessThan(0.1);
  });

  test('fit the limits of a new outfit, and reach the one of titles', () => {
    expect(Math.max(...rows.map(({ title }) => [...title].length))).toBe(255);
    const longest = Math.max(...rows.map(({ description }) => [...description].length));
    expect(longest).toBeGreaterThan(2000);
    expect(longest).toBeLessThanOrEqual(10_000);
  });

  test('are well-formed and hold no null character', () => {
    // A lone surrogate or U+0000 cannot be stored in PostgreSQL.
    expect(texts.filter((text) => /\p{Surrogate}|\0/u.test(text))).toEqual([]);
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

describe('media', () => {
  test('images are jpeg or png', () => {
    const shape = new RegExp(`^outfits/${uuid}\\.(jpeg|png)$`);
    for (const { imageKey, imageOriginalKey } of rows) {
      expect(imageKey).toMatch(shape);
      expect(imageOriginalKey).toMatch(shape);
    }
    expect(share(({ imageKey }) => imageKey.endsWith('.png'))).toBeGreaterThan(0.1);
    expect(share(({ imageKey }) => imageKey.endsWith('.jpeg'))).toBeGreaterThan(0.1);
  });

  test('the original is rarely another image', () => {
    const differing = share(({ imageKey, imageOriginalKey }) => imageKey !== imageOriginalKey);
    expect(differing).toBeGreaterThan(0);
    expect(differing).toBeLessThan(0.05);
  });

  test('a video plays exactly where there is one', () => {
    const shape = new RegExp(`^outfits_videos/${uuid}\\.mp4$`);
    for (const { videoKey, playVideo } of rows) {
      expect(playVideo).toBe(videoKey !== null);
      if (videoKey !== null) expect(videoKey).toMatch(shape);
    }
    expect(share(({ playVideo }) => playVideo)).toBeCloseTo(0.12);
  });

  test('background colours come in every form', () => {
    const forms = [/^$/, /^#[0-9a-f]{3}$/, /^#[0-9a-f]{6}$/];
    for (const form of forms) {
      expect(share(({ backgroundColor }) => form.test(backgroundColor))).toBeGreaterThan(0.1);
    }
    expect(share((outfit) => forms.some((form) => form.test(outfit.backgroundColor)))).toBe(1);
  });
});

describe('numbers and flags', () => {
  test('all are complete, and a tenth is private', () => {
    expect(share(({ complete }) => complete)).toBe(1);
    expect(share((outfit) => outfit.private)).toBeCloseTo(0.1);
  });

  test('quality is 2, 3, 4 or 5', () => {
    expect(new Set(rows.map(({ quality }) => quality))).toEqual(new Set([2, 3, 4, 5]));
  });

  test('likes have many zeros, ties and a long tail', () => {
    const likes = rows.map((outfit) => outfit.likes);
    expect(share((outfit) => outfit.likes === 0)).toBeCloseTo(0.3);
    expect(Math.min(...likes)).toBe(0);
    expect(Math.max(...likes)).toBeGreaterThan(5000);
    expect(likes.every(Number.isSafeInteger)).toBe(true);
    expect(countDistinct(likes)).toBeGreaterThan(100);
    expect(likes.filter((count) => count === 7).length).toBeGreaterThan(10);
  });
});

describe('moments', () => {
  const createds = rows.map(({ created }) => created);

  test('run from 2019 to 2026, broadly but not strictly with the id', () => {
    const years = createds.map((created) => new Date(Number(created / 1000n)).getUTCFullYear());
    expect(new Set(years)).toEqual(new Set([2019, 2020, 2021, 2022, 2023, 2024, 2025, 2026]));
    const backwards = createds.filter((created, index) => created < (createds[index - 1] ?? 0n));
    expect(backwards.length).toBeGreaterThan(100);
    expect(backwards.length).toBeLessThan(rows.length / 2);
    const fourDays = 4n * 86_400_000_000n;
    const late = createds.filter(
      (created, index) => created + fourDays < (createds[index - 1] ?? 0n),
    );
    expect(late).toEqual([]);
  });

  test('tie now and then', () => {
    expect(rows.length - countDistinct(createds)).toBeGreaterThan(10);
  });

  test('end in zeros now and then', () => {
    expect(share(({ created }) => created % 1_000_000n === 0n)).toBeGreaterThan(0.02);
    expect(
      share(({ created }) => created % 1000n === 0n && created % 1_000_000n !== 0n),
    ).toBeGreaterThan(0.02);
    expect(share(({ created }) => created % 1000n !== 0n)).toBeGreaterThan(0.8);
  });

  test('an outfit that its owner never changed differs by microseconds at most', () => {
    const untouched = rows.filter(({ modificationDevice }) => modificationDevice === '');
    const delays = untouched.map(({ created, modified }) => modified - created);
    expect(new Set(delays)).toEqual(new Set([0n, 1n, 2n, 3n, 4n, 5n, 6n, 7n, 8n, 9n]));
  });

  test('a changed outfit was changed later, on any device', () => {
    const changed = rows.filter(({ modificationDevice }) => modificationDevice !== '');
    expect(changed.every(({ created, modified }) => modified >= created + 1_000_000n)).toBe(true);
    expect(countDistinct(changed.map((row) => row.creationDevice + row.modificationDevice))).toBe(
      9,
    );
  });

  test('devices are ios, android and web', () => {
    const devices = new Set(['ios', 'android', 'web']);
    expect(new Set(rows.map(({ creationDevice }) => creationDevice))).toEqual(devices);
    expect(new Set(rows.map(({ modificationDevice }) => modificationDevice))).toEqual(
      devices.add(''),
    );
  });
});

describe('users', () => {
  test('have an avatar of every kind, or none', () => {
    const shape = new RegExp(`^(|avatars/${uuid}\\.(jpeg|png|gif))$`);
    for (const { avatarKey } of users) expect(avatarKey).toMatch(shape);
    const kinds = new Set(users.map(({ avatarKey }) => avatarKey.split('.')[1] ?? ''));
    expect(kinds).toEqual(new Set(['', 'jpeg', 'png', 'gif']));
  });

  test('have usernames of letters, digits, hyphens and underscores', () => {
    const usernames = users.map(({ username }) => username);
    for (const username of usernames) expect(username).toMatch(/^[A-Za-z0-9_-]+$/);
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
    for (const { user, userId } of rows) {
      expect(user.id).toBe(userId);
      expect(user).toEqual(users.find(({ id }) => id === userId));
    }
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

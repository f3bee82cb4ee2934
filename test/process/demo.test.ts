// The demonstration set: the same on every machine, and with all that the contract allows.
import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import type { OutfitRow } from '../../src/outfits/row.ts';
import { readDemo } from '../../src/process/demo/seed.ts';

// A change of the set on purpose changes this too: the two belong in one commit.
const golden = 'db01b7f90d6c1c75445f0f01ecce5f92a6917cafb67123f1298b8feeaedb977f';

const rows: OutfitRow[] = [];
for await (const row of readDemo()) rows.push(row);
const texts = rows.map(({ title, description }) => `${title}\n${description}`);

function digest(outfits: Iterable<OutfitRow>): string {
  const sha256 = createHash('sha256');
  for (const outfit of outfits) {
    const write = (_key: string, value: unknown) =>
      typeof value === 'bigint' ? value.toString() : value;
    sha256.update(`${JSON.stringify(outfit, write)}\n`);
  }
  return sha256.digest('hex');
}

test('the set has the same bytes on every machine: those that bench/outfits/write.ts wrote', () => {
  expect(digest(rows)).toBe(golden);
  expect(digest(generateOutfits())).toBe(golden);
});

test('the set is made like any number of outfits, one at a time, from a seed', () => {
  expect([...generateOutfits({ outfits: 0, users: 0 })]).toEqual([]);
  expect(() => [...generateOutfits({ outfits: 1, users: 0 })]).toThrow(RangeError);
  const many = { outfits: 10_000_000, users: 1_000_000 };
  const [one, same, other] = [7, 7, 8].map((seed) =>
    JSON.stringify(generateOutfits({ ...many, seed }).next().value.imageKey),
  );
  expect(one).toBe(same);
  expect(one).not.toBe(other);
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
])('texts hold %s', (_name, pattern) => {
  expect(texts.filter((text) => pattern.test(text)).length).toBeGreaterThan(0);
});

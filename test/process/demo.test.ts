// The demonstration set: the same on every machine.
import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import type { OutfitRow } from '../../src/outfits/row.ts';
import { readDemo } from '../../src/process/demo/seed.ts';

// A change of the set on purpose changes this too: the two belong in one commit.
const golden = 'db01b7f90d6c1c75445f0f01ecce5f92a6917cafb67123f1298b8feeaedb977f';

const rows = [...readDemo()].flat();

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

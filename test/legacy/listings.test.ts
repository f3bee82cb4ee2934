// Two listings, brought together record by record: what repeats, when they are not the same one, and whether a page is sorted.
import { describe, expect, test } from 'vitest';
import { checkOrder, type PageRecord } from '../../src/legacy/compare/listing-page.ts';
import { Listings } from '../../src/legacy/verify/walk.ts';

const pageSize = 100;

function match(theirs: readonly PageRecord[], ours: readonly PageRecord[], most?: number) {
  const listings = new Listings(most);
  let shared = 0;
  for (let start = 0; start < Math.max(theirs.length, ours.length); start += pageSize) {
    for (const [side, records] of [
      ['theirs', theirs],
      ['ours', ours],
    ] as const) {
      const part = records.slice(start, start + pageSize);
      shared += listings.add(side, part, 1 + start / pageSize).length;
    }
  }
  const { hasRepeated, unmatched } = listings;
  const [missing, additional] = [[...unmatched.theirs.keys()], [...unmatched.ours.keys()]];
  return { shared, hasRepeated, missing, additional };
}

const make = (id: number, key = BigInt(id)): PageRecord => ({ id, key, value: { id } });
const list = (count: number) => Array.from({ length: count }, (_, index) => make(index + 1));

test('takes a record that a page repeats as the same one', () => {
  const records = list(300);
  const repeated = [...records.slice(0, 100), ...records.slice(99)];
  const found = match(repeated, records);
  expect(found).toMatchObject({ missing: [], additional: [], hasRepeated: true });
});

test('matches an id that no outfit can have with no other one', () => {
  const others = [1.5, 2 ** 31, 2 ** 40].map((id) => make(id, 0n));
  const found = match([...list(3), ...others, ...others], list(3));
  const missing = others.map(({ id }) => id);
  expect(found).toMatchObject({ missing, additional: [], hasRepeated: true });
});

test('ends when more records than its bound have no match', () => {
  const disjoint = Array.from({ length: 600 }, (_, index) => make(2_000 + index));
  expect(() => match(list(600), disjoint, 500)).toThrow(
    'More than 500 outfits are in one listing only',
  );
});

describe('the order of a page', () => {
  const ordered = (misplaced?: readonly [number, number], isTieOpen = false) => ({
    misplaced,
    isTieOpen,
  });
  const [a, b, c] = [make(1, 5n), make(2, 5n), make(3, 7n)] as const;
  test.each([
    ['id', [a, b, c], ordered()],
    ['-id', [c, b, a], ordered()],
    ['', [c, b, a], ordered()],
    ['likes', [b, a, c], ordered(undefined, true)],
    ['-likes', [c, a, b], ordered(undefined, true)],
    ['likes', [a, c, b], ordered([3, 2])],
    ['', [a, b, c], ordered([2, 3], true)],
  ])('the order of a page by "%s" is judged record by record', (name, records, expected) => {
    expect(checkOrder(records, name)).toEqual(expected);
  });
});

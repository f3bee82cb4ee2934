// Two listings, brought together record by record: what is out of order, tied, or only on one side.
import { describe, expect, test } from 'vitest';
import type { PageRecord } from '../../src/legacy/compare/listing-page.ts';
import { Alignment } from '../../src/legacy/verify/alignment.ts';

const pageSize = 100;

function align(theirs: readonly PageRecord[], ours: readonly PageRecord[]) {
  const misplaced: string[] = [];
  const both = new Set<string>();
  const alignment = new Alignment({
    matched: (id) => both.add(id),
    matchedAcrossPages: () => {},
    misplaced: ({ id }, before) => misplaced.push(`${id} behind ${before.id}`),
  });
  const length = Math.max(theirs.length, ours.length);
  for (let start = 0; start < length; start += pageSize) {
    const page = 1 + start / pageSize;
    for (const [side, records] of [
      ['theirs', theirs],
      ['ours', ours],
    ] as const) {
      const part = records.slice(start, start + pageSize);
      if (part.length > 0) alignment.add(side, part, page);
    }
  }
  const { missing, additional } = alignment.finish();
  const { tied } = alignment;
  return {
    misplaced,
    tied,
    both: both.size,
    missing: missing.map(({ id }) => id),
    additional: additional.map(({ id }) => id),
  };
}

const make = (id: number, key = `${id}`): PageRecord => ({
  id: `${id}`,
  key,
  text: `{"id":${id}}`,
});
const list = (count: number, keyOf?: (id: number) => string) =>
  Array.from({ length: count }, (_, index) => make(index + 1, keyOf?.(index + 1)));
const nothing = { misplaced: [], tied: 0, missing: [], additional: [] };

/** The same list with one record at another place. */
function move(records: readonly PageRecord[], from: number, to: number): PageRecord[] {
  const moved = [...records];
  moved.splice(to, 0, ...moved.splice(from, 1));
  return moved;
}

describe('a record that is out of order', () => {
  const records = list(25_000);

  test.each([3, 9_000, 15_000, 24_000])('is told when it comes %i places elsewhere', (distance) => {
    const later = align(records, move(records, 50, 50 + distance));
    expect(later).toEqual({
      ...nothing,
      misplaced: [expect.stringMatching(/ behind 51$/)],
      both: 25_000,
    });
    const sooner = align(records, move(records, 50 + distance, 50));
    const misplaced = [`${51 + distance} behind ${50 + distance}`];
    expect(sooner).toEqual({ ...nothing, misplaced, both: 25_000 });
  });

  test('is told behind more records than are held back', () => {
    const others = Array.from({ length: 12_000 }, (_, index) => make(100_000 + index));
    const found = align(records, [...others, ...move(records, 500, 600)]);
    expect(found.additional).toHaveLength(12_000);
    expect(found.misplaced).toEqual(['601 behind 501']);
  });
});

test('records that only one side has move all others, and are no other order', () => {
  const records = list(25_000);
  const found = align(records, [make(100_001), ...records.slice(0, 20), ...records.slice(12_020)]);
  expect(found).toMatchObject({ misplaced: [], tied: 0, additional: ['100001'] });
  expect(found.missing).toHaveLength(12_000);
});

describe('more ties than can be held, in another direction', () => {
  const records = list(210_000, () => 'same');

  test('are ties', () => {
    const found = align(records, records.toReversed());
    expect(found).toMatchObject({ ...nothing, tied: expect.any(Number), both: 210_000 });
    expect(found.tied).toBeGreaterThan(0);
  });

  test('and a record that only one side has is still told', () => {
    const found = align([make(300_001, 'same'), ...records], records.toReversed());
    expect(found).toMatchObject({ missing: ['300001'], additional: [] });
  });
});

test('records far from their places are told, however many wait for their match', () => {
  const records = list(110_000);
  const found = align(records, move(records, 0, 109_000));
  expect(found).toMatchObject({ misplaced: [expect.any(String)], missing: [], additional: [] });
  const reversed = align(list(210_000), list(210_000).toReversed());
  expect(reversed).toMatchObject({ missing: [], additional: [], tied: 0 });
  expect(reversed.misplaced.length).toBeGreaterThan(100_000);
});

test('ends when more than a million records have no match', () => {
  const disjoint = Array.from({ length: 1_000_100 }, (_, index) => make(2_000_000 + index));
  expect(() => align(list(1_000_100), disjoint)).toThrow(
    'More than 1000000 outfits are in one listing only',
  );
});

// Moments keep their microseconds, from the text that comes in to the text that goes out.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { formatTimestamp, parseTimestamp } from '../../src/outfits/timestamps.ts';
import { useGateway } from '../support/gateway.ts';

const first = -62_135_596_800_000_000n;
const last = 253_402_300_799_999_999n;
const anyMoment = fc.oneof(
  fc.bigInt({ min: first, max: last }),
  fc.bigInt({ min: -2_000_000n, max: 2_000_000n }),
);

test('a moment of the years 0001 to 9999 has six digits and Z, and reads back as itself', () => {
  fc.assert(
    fc.property(anyMoment, (micros) => {
      const text = formatTimestamp(micros);
      expect(text).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
      expect(parseTimestamp(text)).toBe(micros);
    }),
    { numRuns: 2000 },
  );
});

test.each([
  [first, '0001-01-01T00:00:00.000000Z'],
  [-1n, '1969-12-31T23:59:59.999999Z'],
  [-1_000_000n, '1969-12-31T23:59:59.000000Z'],
  [0n, '1970-01-01T00:00:00.000000Z'],
  [1n, '1970-01-01T00:00:00.000001Z'],
  [951_782_400_123_456n, '2000-02-29T00:00:00.123456Z'],
  [2n ** 53n + 1n, '2255-06-05T23:47:34.740993Z'],
  [last, '9999-12-31T23:59:59.999999Z'],
])('the moment %s is written as %s', (micros, text) => {
  expect(formatTimestamp(micros)).toBe(text);
  expect(parseTimestamp(text)).toBe(micros);
});

test('a moment beyond these years, as SQL of others may store it, is written as the first or the last of them', () => {
  expect([first - 1n, -(2n ** 63n)].map(formatTimestamp)).toEqual(
    Array(2).fill(formatTimestamp(first)),
  );
  expect([last + 1n, 2n ** 63n - 1n].map(formatTimestamp)).toEqual(
    Array(2).fill(formatTimestamp(last)),
  );
});

test('a moment may be read with fewer digits', () => {
  expect(parseTimestamp('1970-01-01T00:00:01Z')).toBe(1_000_000n);
  expect(parseTimestamp('1970-01-01T00:00:00.5Z')).toBe(500_000n);
  expect(parseTimestamp('1969-12-31T23:59:59.99999Z')).toBe(-10n);
});

test.each([
  '0000-01-01T00:00:00.000000Z',
  '10000-01-01T00:00:00.000000Z',
  '+02024-01-01T00:00:00.000000Z',
  '2024-01-01T00:00:00.000000+00:00',
  '2024-01-01t00:00:00.000000z',
  '2024-01-01 00:00:00.000000Z',
  '2024-01-01T00:00:00.0000000Z',
  '2024-01-01T00:00:00.Z',
  '2024-01-01T00:00Z',
  '2024-01-01T00:00:00.000000Z\n',
  '٢٠٢٤-01-01T00:00:00.000000Z',
  '2024-01-01',
  '',
])('a moment is not read from %j', (text) => {
  expect(parseTimestamp(text)).toBeUndefined();
});

test('a moment is never read from text that it would not be written as', () => {
  const upTo = (most: number) =>
    fc.integer({ min: 0, max: most }).map((number) => String(number).padStart(2, '0'));
  const shaped = fc
    .tuple(fc.integer({ min: 0, max: 9999 }), upTo(13), upTo(32), upTo(25), upTo(61), upTo(61))
    .map(([year, month, day, hour, minute, second]) => {
      const date = `${String(year).padStart(4, '0')}-${month}-${day}`;
      return `${date}T${hour}:${minute}:${second}.000000Z`;
    });
  fc.assert(
    fc.property(fc.oneof(shaped, fc.string()), (text) => {
      const micros = parseTimestamp(text);
      if (micros !== undefined) expect(formatTimestamp(micros)).toBe(text);
    }),
    { numRuns: 2000 },
  );
});

const moments: [created: bigint, modified: bigint][] = [
  [0n, 1n],
  [999_999n, 1_000_000n],
  [-1n, -999_999n],
  [first, last],
  [2n ** 53n + 1n, 2n ** 53n + 3n],
  [1_714_555_800_000_000n, 1_714_555_800_000_001n],
  [1_714_555_800_000_000n, 1_714_555_800_999_999n],
];
const rows = [...generateOutfits({ outfits: moments.length, users: 2 })].map((row, index) => {
  const [created = 0n, modified = 0n] = moments[index] ?? [];
  return { ...row, created, modified };
});
const gateway = useGateway('PostgreSQL', rows);

test('every microsecond comes out the same over REST and over GraphQL', async () => {
  const expected = rows
    .toSorted((a, b) => a.id - b.id)
    .map(({ id, created, modified }) => ({
      id,
      created: formatTimestamp(created),
      modified: formatTimestamp(modified),
    }));
  const rest = await gateway.get('/api/outfits/?ordering=id');
  expect(rest.json().results).toMatchObject(expected);
  const fields = '{ id: databaseId created modified }';
  const graphql = await gateway.post(`{
    outfits(ordering: ID_ASC) { results ${fields} }
    outfitConnection(ordering: ID_ASC) { nodes ${fields} }
  }`);
  expect(graphql).toEqual({
    data: { outfits: { results: expected }, outfitConnection: { nodes: expected } },
  });
});

// Of the specification that the schema names: https://scalars.graphql.org/chillicream/date-time.html
test.each([
  ['2024-05-01T09:30:00Z', 2],
  ['2024-05-01t09:30:00.000001z', 0],
  ['2024-05-01T11:30:00.000001+02:00', 0],
  ['2024-04-30T13:45:00.00-19:45', 2],
  ['2024-05-01T09:30:00.000001-00:00', 0],
  ['2024-05-01T09:30:00', 'BAD_USER_INPUT'],
  ['2024-05-01 09:30:00Z', 'BAD_USER_INPUT'],
  ['2024-05-01T09:30:00+24:00', 'BAD_USER_INPUT'],
  ['2024-05-01T09:30:00+0200', 'BAD_USER_INPUT'],
  ['2024-02-30T09:30:00+02:00', 'BAD_USER_INPUT'],
  ['2024-05-01T09:30:00.0000001Z', 'BAD_USER_INPUT'],
])('%s is the beginning of %s outfits, whatever its offset', async (createdFrom, expected) => {
  const query = `query ($createdFrom: DateTime, $createdBefore: DateTime) {
    outfits(filter: { createdFrom: $createdFrom, createdBefore: $createdBefore }) { count }
  }`;
  const createdBefore = '2024-05-01T19:00:00.999999+09:30';
  const { data, errors } = await gateway.post(query, { createdFrom, createdBefore });
  expect(
    (data as { outfits?: { count: number } | null })?.outfits?.count ??
      errors?.[0]?.extensions?.code,
  ).toBe(expected);
});

// Cursors carry the sort key, and nothing else passes for one.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatCursor, parseCursor } from '../../src/outfits/ordering.ts';

const places = fc.record({
  field: fc.constantFrom('created' as const, 'id' as const, 'likes' as const, 'modified' as const),
  key: fc.record({
    value: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
    id: fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }),
  }),
});
const encode = (text: string) => Buffer.from(text).toString('base64url');

test('a cursor is never read from text that is not one, letter by letter', () => {
  const shaped = fc
    .tuple(
      fc.constantFrom('created', 'id', 'likes', 'modified', 'title', ''),
      fc.stringMatching(/^[-+]?\d{0,21}$/),
      fc.stringMatching(/^[-+]?\d{0,12}$/),
    )
    .map((parts) => encode(parts.join(':')));
  const tampered = fc
    .tuple(places, fc.nat(), fc.string({ unit: 'binary', maxLength: 2 }), fc.nat(2))
    .map(([{ field, key }, at, text, replaced]) => {
      const cursor = formatCursor(field, key);
      const index = at % (cursor.length + 1);
      return cursor.slice(0, index) + text + cursor.slice(index + replaced);
    });
  const texts = fc.oneof(fc.string({ unit: 'binary' }), fc.base64String(), shaped, tampered);
  fc.assert(
    fc.property(texts, (text) => {
      const place = parseCursor(text);
      if (place) expect(formatCursor(place.field, place.key)).toBe(text);
    }),
    { numRuns: 2000 },
  );
});

test.each([
  ['', 'nothing'],
  [`${encode('likes:1:12')}=`, 'padding'],
  ['likes:1:1', 'no encoding'],
  [encode('likes:1'), 'no id'],
  [encode('likes:1:1:1'), 'one part too many'],
  [encode('likes:1:1\n'), 'a line break'],
  [encode('likes:007:1'), 'leading zeros'],
  [encode('likes:-0:1'), 'a negative zero'],
  [encode('likes:1.5:1'), 'a fraction'],
  [encode('likes:1:2147483648'), 'an id that is too large'],
  [encode('created:9223372036854775808:1'), 'a value that is too large'],
  [encode('created:-9223372036854775809:1'), 'a value that is too small'],
  [encode('title:1:1'), 'an unknown field'],
  [encode('Likes:1:1'), 'another case'],
])('a cursor is not read from %j (%s)', (text) => {
  expect(parseCursor(text)).toBeUndefined();
});

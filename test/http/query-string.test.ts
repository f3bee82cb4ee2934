// What a client may write after the `?`, held against an independent reading of the decided rules.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { formatQuery, parseQuery } from '../../src/rest/variables.ts';
import { useGateway } from '../support/gateway.ts';

type Parameters = readonly (readonly [name: string, value: string])[];

/** Any text that can arrive: every code point, and often what the rules treat in its own way. */
const anyText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 8 }),
  fc.string({ unit: fc.constantFrom(..." +%&=?#;*~!'()-_.\0\uFEFF\uFFFF\u{10000}éa2") }),
);
const anyName = fc.oneof(fc.constantFrom('page', 'ordering', 'a', 'b', ''), anyText);
const anyParameters = fc.array(fc.tuple(anyName, anyText), { maxLength: 8 });

const bytesOf = (text: string): number[] => [...new TextEncoder().encode(text)];
const hex = (byte: number): string => byte.toString(16).padStart(2, '0');

/** As a client may send it: every byte percent-encoded, in either case, or as it is. */
function encodeSomehow(text: string, choice: number): string {
  return bytesOf(text)
    .map((byte, index) => {
      const way = (choice >> (index % 16)) & 1;
      if (way === 0 && byte === 0x20) return '+';
      if (way === 0 && /[A-Za-z0-9*~!'();,/:@$_.-]/.test(String.fromCharCode(byte)))
        return String.fromCharCode(byte);
      return `%${(choice >> 16) & 1 ? hex(byte).toUpperCase() : hex(byte)}`;
    })
    .join('');
}

/** The query string of a link, as decisions.md describes it: sorted by code points, which is the order of UTF-32. */
function expectedQuery(parameters: Parameters, page: string): string {
  const kept: Parameters = [...parameters.filter(([name]) => name !== 'page'), ['page', page]];
  const sortable = (text: string) =>
    [...text].map((character) => character.codePointAt(0)?.toString(16).padStart(6, '0')).join('');
  const encode = (text: string) =>
    bytesOf(text)
      .map((byte) => {
        if (byte === 0x20) return '+';
        const character = String.fromCharCode(byte);
        return /[A-Za-z0-9_.~-]/.test(character) ? character : `%${hex(byte).toUpperCase()}`;
      })
      .join('');
  return kept
    .map(([name, value]) => ({ key: sortable(name), text: `${encode(name)}=${encode(value)}` }))
    .toSorted((a, b) => (a.key < b.key ? -1 : Number(a.key > b.key)))
    .map(({ text }) => text)
    .join('&');
}

test('the query string of a link is the decided form of any parameters, however they were encoded', () => {
  fc.assert(
    fc.property(anyParameters, fc.nat(), fc.nat(10_000), (parameters, choice, page) => {
      const sent = parameters
        .map(([name, value]) => `${encodeSomehow(name, choice)}=${encodeSomehow(value, choice)}`)
        .join('&');
      expect(formatQuery(parseQuery(sent), 'page', String(page))).toBe(
        expectedQuery(parameters, String(page)),
      );
    }),
    { numRuns: 2000 },
  );
});

// What no encoding of parameters is.
test.each([
  ['a', 'a=&page=2'],
  ['a=b=c', 'a=b%3Dc&page=2'],
  ['&&a=1&', 'a=1&page=2'],
  ['%', '%25=&page=2'],
  ['a=%zz%4', 'a=%25zz%254&page=2'],
  ['a=%ff%C3', 'a=%EF%BF%BD%EF%BF%BD&page=2'],
  ['?a=1', '%3Fa=1&page=2'],
])('the query string of a link of ?%s is %s', (sent, link) => {
  expect(formatQuery(parseQuery(sent), 'page', '2')).toBe(link);
});

const anyPageText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 6 }),
  fc.stringMatching(/^\s{0,2}\+?0{0,3}[0-9]{0,12}\s{0,2}$/),
  fc.stringMatching(/^\s?\+?0{0,3}[1-4]\s?$/),
  fc.string({ unit: fc.constantFrom('0', '1', '2', '+', '-', ' ', '\n', '.', 'e', '٣') }),
  fc.constantFrom('', 'last', 'Last', 'last ', '2147483647', '2147483648'),
  fc.integer({ min: 1, max: 800 }).map((digits) => '9'.repeat(digits)),
);

/** The page that a text names under the decided expression, however large its number. */
function expectedPage(text: string): bigint | 'last' | undefined {
  if (text === '') return 1n;
  if (text === 'last') return 'last';
  if (!/^\s*\+?0*[1-9][0-9]*\s*$/.test(text)) return undefined;
  return BigInt(text.trim().replace('+', ''));
}

const gateway = useGateway('PostgreSQL', [...generateOutfits({ outfits: 45, users: 9 })]);

test('any page text gives that page or 404', async () => {
  await fc.assert(
    fc.asyncProperty(anyPageText, async (text) => {
      const page = expectedPage(text);
      const response = await gateway.get(`/api/outfits/?page=${encodeURIComponent(text)}`);
      const exists = page === 'last' || (page !== undefined && page <= 3n);
      expect(response.statusCode).toBe(exists ? 200 : 404);
      if (!exists) expect(response.body).toBe('{"detail":"Invalid page."}');
      else expect(response.json().previous === null).toBe(page === 1n);
    }),
    { numRuns: 250 },
  );
});

test('only the eight orderings and the empty one are taken, any other text is 400', async () => {
  const fields = ['created', 'id', 'like_count', 'modified'];
  const choices = fields.flatMap((field) => [field, `-${field}`]);
  const near = ['likes', 'Created', '--id', '+id', ' id', 'id ', 'created,nope', '__proto__'];
  await fc.assert(
    fc.asyncProperty(fc.oneof(anyText, fc.constantFrom(...choices, ...near)), async (text) => {
      const url = `/api/outfits/?ordering=${encodeURIComponent(text)}`;
      const response = await gateway.get(url);
      const isTaken = choices.includes(text) || text === '';
      expect(response.statusCode).toBe(isTaken ? 200 : 400);
      if (isTaken) return;
      const message =
        `Select a valid choice. ${text} is not one of the available choices: ` +
        'created, -created, id, -id, like_count, -like_count, modified, -modified.';
      expect(response.json()).toEqual({ ordering: [message] });
    }),
    { numRuns: 150 },
  );
});

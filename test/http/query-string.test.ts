// What a client may write after the `?`, held against an independent reading of the decided rules.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { formatQuery, parseQuery } from '../../src/rest/url.ts';
import { parsePageNumber } from '../../src/rest/variables.ts';
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

/** The query string of a link, as decisions.md describes it. */
function expectedQuery(parameters: Parameters, page: string): string {
  const kept: Parameters = [...parameters.filter(([name]) => name !== 'page'), ['page', page]];
  const isBefore = (a: string, b: string): boolean => {
    const [left, right] = [a, b].map((text) => [...text].map((c) => c.codePointAt(0) ?? 0));
    for (const [index, point] of (left ?? []).entries()) {
      const other = right?.[index];
      if (other === undefined) return false;
      if (point !== other) return point < other;
    }
    return a !== b;
  };
  const sorted: (readonly [string, string])[] = [];
  for (const parameter of kept) {
    const place = sorted.findIndex(([name]) => isBefore(parameter[0], name));
    sorted.splice(place === -1 ? sorted.length : place, 0, parameter);
  }
  const encode = (text: string) =>
    bytesOf(text)
      .map((byte) => {
        if (byte === 0x20) return '+';
        const character = String.fromCharCode(byte);
        return /[A-Za-z0-9_.~-]/.test(character) ? character : `%${hex(byte).toUpperCase()}`;
      })
      .join('');
  return sorted.map(([name, value]) => `${encode(name)}=${encode(value)}`).join('&');
}

describe('the query string of a link', () => {
  test('is the decided form of any parameters, however they were encoded', () => {
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

  test('names the same parameters again when it is followed', () => {
    fc.assert(
      fc.property(anyParameters, (parameters) => {
        const link = formatQuery(parameters, 'page', '3');
        const read = parseQuery(link);
        const byName = (list: Parameters, name: string) =>
          list.filter(([key]) => key === name).map(([, value]) => value);
        for (const [name] of parameters.filter(([key]) => key !== 'page')) {
          expect(byName(read, name)).toEqual(byName(parameters, name));
        }
        expect(byName(read, 'page')).toEqual(['3']);
        expect(formatQuery(read, 'page', '3')).toBe(link);
      }),
    );
  });

  test('can be made from any garbage, and is clean then', () => {
    const garbage = fc.oneof(
      fc.string({ unit: 'binary-ascii', maxLength: 40 }),
      fc.string({ unit: fc.constantFrom('%', '&', '=', '+', 'f', '8', 'E', '2', 'page') }),
    );
    fc.assert(
      fc.property(garbage, (text) => {
        const link = formatQuery(parseQuery(text), 'page', '2');
        expect(link).toMatch(/^([\w.~+-]|%[0-9A-F]{2}|[=&])+$/);
        expect(link.match(/(^|&)page=[^&]*/g)).toHaveLength(1);
        expect(formatQuery(parseQuery(link), 'page', '2')).toBe(link);
      }),
      { numRuns: 1000 },
    );
  });

  test.each([
    ['a', 'a=&page=2'],
    ['=', '=&page=2'],
    ['=x', '=x&page=2'],
    ['a=b=c', 'a=b%3Dc&page=2'],
    ['&&a=1&', 'a=1&page=2'],
    ['z=1&page=9&a=2&page=7', 'a=2&page=2&z=1'],
    ['b=2&a=3&b=1&a=', 'a=3&a=&b=2&b=1&page=2'],
    ['%', '%25=&page=2'],
    ['a=%zz%4', 'a=%25zz%254&page=2'],
    ['a=%ff%C3', 'a=%EF%BF%BD%EF%BF%BD&page=2'],
    ['a;b=1', 'a%3Bb=1&page=2'],
    ["x=*~!'()", 'page=2&x=%2A~%21%27%28%29'],
    ['x=a+b%20c%2B', 'page=2&x=a+b+c%2B'],
    ['?a=1', '%3Fa=1&page=2'],
    ['%EF%BB%BFa=1', 'page=2&%EF%BB%BFa=1'],
    ['%F0%90%80%80=1&%EF%BF%BF=2', 'page=2&%EF%BF%BF=2&%F0%90%80%80=1'],
    ['P=1&page=1&q=1', 'P=1&page=2&q=1'],
    ['%70age=5', 'page=2'],
  ])('of ?%s is %s', (sent, link) => {
    expect(formatQuery(parseQuery(sent), 'page', '2')).toBe(link);
  });
});

const anyPageText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 6 }),
  fc.stringMatching(/^\s{0,2}\+?0{0,3}[0-9]{0,12}\s{0,2}$/),
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

describe('the page parameter', () => {
  test('is read by the decided expression, and numbers that no table reaches are no page', () => {
    fc.assert(
      fc.property(anyPageText, (text) => {
        const page = expectedPage(text);
        const reachable = page === 'last' || (page !== undefined && page < 2n ** 31n);
        const expected = typeof page === 'bigint' ? Number(page) : page;
        expect(parsePageNumber(text)).toBe(reachable ? expected : undefined);
      }),
      { numRuns: 2000 },
    );
  });

  test('is the first page when absent', () => {
    expect(parsePageNumber(undefined)).toBe(1);
  });
});

describe('over HTTP', () => {
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
      { numRuns: 200 },
    );
  });

  test('only the eight orderings and the empty one are taken, any other text is 400', async () => {
    const fields = ['created', 'id', 'like_count', 'modified'];
    const choices = fields.flatMap((field) => [field, `-${field}`]);
    const anyOrdering = fc.oneof(
      anyText,
      fc.constantFrom(...choices, ''),
      fc.constantFrom(
        'likes',
        'Created',
        '--id',
        '+id',
        ' id',
        'id ',
        'created,nope',
        '-',
        '__proto__',
      ),
    );
    await fc.assert(
      fc.asyncProperty(anyOrdering, async (text) => {
        const url = `/api/outfits/?ordering=${encodeURIComponent(text)}`;
        const response = await gateway.get(url);
        if (choices.includes(text) || text === '') {
          expect(response.statusCode).toBe(200);
          expect(response.json().results).toHaveLength(20);
        } else {
          expect(response.statusCode).toBe(400);
          expect(response.json()).toEqual({
            ordering: [
              `Select a valid choice. ${text} is not one of the available choices: ` +
                'created, -created, id, -id, like_count, -like_count, modified, -modified.',
            ],
          });
        }
      }),
      { numRuns: 300 },
    );
  });
});

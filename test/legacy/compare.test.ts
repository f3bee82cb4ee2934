// The comparison of two answers: one known change to a random page, or to headers that apps see, is reported as
// its kind and nothing else, and no change as nothing.
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Answer } from '../../src/http/client.ts';
import { encodeJson } from '../../src/http/representation.ts';
import { compareAnswers } from '../../src/legacy/compare/compare.ts';
import { acceptedOf, type Kind } from '../../src/legacy/compare/difference.ts';
import { type LegacyRecord, makeRecord } from '../support/legacy/legacy-service.ts';

const bases = { theirs: 'https://old.test', ours: 'http://localhost:4000' };
const question = { method: 'GET', target: '/api/outfits/?page=2' };
const headers = { 'content-type': 'application/json', vary: 'Accept', allow: 'GET, POST' };

interface Page {
  count: number;
  next: string | null;
  previous: string | null;
  results: LegacyRecord[];
}

/** As both services write JSON. */
const write = (value: unknown) => encodeJson(value).toString();
const answer = (body: unknown, changes: Partial<Answer> = {}): Answer => ({
  status: 200,
  headers,
  body: Buffer.from(typeof body === 'string' ? body : write(body)),
  ...changes,
});

const kindsOf = (theirs: Answer, ours: Answer, asked = question) =>
  compareAnswers(asked, theirs, ours, bases).map(({ kind }) => kind);

const moment = fc
  .tuple(fc.integer({ min: 0, max: 4e9 }), fc.integer({ min: 0, max: 999_999 }))
  .map(([seconds, micros]) => {
    const whole = new Date(seconds * 1000).toISOString().slice(0, 19);
    return `${whole}.${String(micros).padStart(6, '0')}Z`;
  });
const text = fc.string({ unit: 'grapheme', maxLength: 20 });
const record = fc.record({
  title: text,
  description: text,
  likes: fc.nat(),
  quality: fc.integer(),
  private: fc.boolean(),
  created: moment,
  modified: moment,
});
const page = fc
  .tuple(
    fc.uniqueArray(fc.integer(), { minLength: 2, maxLength: 12 }),
    fc.nat(),
    fc.webQueryParameters(),
  )
  .chain(([ids, count, query]) =>
    fc.array(record, { minLength: ids.length, maxLength: ids.length }).map(
      (changes): Page => ({
        count,
        next: `${bases.theirs}/api/outfits/?a=${query.replace(/[&#]/g, '')}&page=3`,
        previous: `${bases.theirs}/api/outfits/?ordering=id&page=4`,
        results: ids.map((id, index) => ({ ...makeRecord(7), id, ...changes[index] })),
      }),
    ),
  );

/** The same page as this gateway serves it. */
function served(theirs: Page): Page {
  const move = (link: string | null) => link?.replace(bases.theirs, bases.ours) ?? null;
  return { ...theirs, next: move(theirs.next), previous: move(theirs.previous) };
}

const first = ({ results }: Page) => results[0] as LegacyRecord;
const reversed = (object: object) => Object.fromEntries(Object.entries(object).reverse());
const setFirst = (found: Page, record: object): Page => ({
  ...found,
  results: [record as LegacyRecord, ...found.results.slice(1)],
});
const set = (found: Page, changes: object) => setFirst(found, { ...first(found), ...changes });

/** The bytes of a page whose records have an integer and a device, with one text in the place of another. */
const respelled = (text: string, other: string) => (ours: Page) =>
  write(set(ours, { likes: 5 })).replace(text, other);

/** Each changes our page, or its bytes, in one way. */
const mutations: readonly (readonly [Kind, string, (ours: Page) => unknown])[] = [
  ['value', 'another count', (ours) => ({ ...ours, count: ours.count + 1 })],
  ['value', 'a count as text', (ours) => ({ ...ours, count: String(ours.count) })],
  ['value', 'no next', (ours) => ({ ...ours, next: null })],
  ['value', 'without base', (ours) => ({ ...ours, next: ours.next?.replace(bases.ours, '') })],
  ['value', 'next of the old side', (ours) => ({ ...ours, next: `${bases.theirs}/api/outfits/` })],
  ['value', 'another previous', (ours) => ({ ...ours, previous: `${ours.previous}&z=1` })],
  ['value', 'no previous', ({ previous: _, ...ours }) => ours],
  ['bytes-only', 'keys of the page', reversed],
  ['bytes-only', 'keys of a record', (ours) => setFirst(ours, reversed(first(ours)))],
  ['bytes-only', 'keys of a user', (ours) => set(ours, { user: reversed(first(ours).user) })],
  ['value', 'a field', (ours) => set(ours, { title: undefined })],
  ['value', 'a field of the page', ({ results: _, ...ours }) => ours],
  ['value', 'a field', (ours) => set(ours, { extra: 1 })],
  ['value', 'a text', (ours) => set(ours, { title: `${first(ours).title}.` })],
  ['value', 'a type', (ours) => set(ours, { likes: String(first(ours).likes) })],
  ['value', 'null', (ours) => set(ours, { user: null })],
  ['value', 'a moment', (ours) => set(ours, { created: '2200-01-01T00:00:00.000001Z' })],
  ['records', 'reversed', (ours) => ({ ...ours, results: ours.results.toReversed() })],
  ['records', 'one lost', (ours) => ({ ...ours, results: ours.results.slice(1) })],
  [
    'records',
    'one more',
    (ours) => ({ ...ours, results: [...ours.results, { ...first(ours), id: 2 ** 40 }] }),
  ],
  ['bytes-only', 'indented', (ours) => JSON.stringify(ours, undefined, 1)],
  ['bytes-only', 'an escaped letter', respelled('ios', '\\u0069os')],
  ['bytes-only', 'an escaped key', respelled('"count"', '"c\\u006funt"')],
  ['bytes-only', 'an escaped link', respelled('/api/', '\\/api\\/')],
  ['bytes-only', 'a number with a fraction', respelled('"likes":5', '"likes":5.0')],
  ['bytes-only', 'a key twice', respelled('"count":', '"count":0,"count":')],
  ['body', 'cut short', (ours) => write(ours).slice(0, -1)],
];

describe('a page that is changed in one way differs in that kind only', () => {
  test.each(mutations)('%s: %s', (kind, _name, mutate) => {
    fc.assert(
      fc.property(page, (theirs) => {
        const there = kind === 'bytes-only' ? set(theirs, { likes: 5 }) : theirs;
        const ours = mutate(served(there as Page));
        expect([...new Set(kindsOf(answer(there), answer(ours)))]).toEqual([kind]);
      }),
      { numRuns: 30 },
    );
  });

  test('and in none when it is not', () => {
    fc.assert(
      fc.property(page, (theirs) => {
        expect(kindsOf(answer(theirs), answer(served(theirs)))).toEqual([]);
      }),
    );
  });

  test('in both kinds when it is changed in two ways', () => {
    const cases = mutations.filter(([kind]) => !/bytes-only|body/.test(kind));
    fc.assert(
      fc.property(page, fc.constantFrom(...cases), (theirs, [kind, , mutate]) => {
        const ours = write(mutate(served(theirs)));
        const found = kindsOf(answer(theirs), answer(`${ours} `));
        expect([...new Set(found)].sort()).toEqual([kind, 'bytes-only'].sort());
      }),
    );
  });
});

describe('what was decided has kinds of its own', () => {
  const base: Page = {
    count: 45,
    next: null,
    previous: `${bases.theirs}/api/outfits/?a=1&z=2`,
    results: [makeRecord(10), makeRecord(9)],
  };
  const short = '2020-01-02T03:04:05';

  test('previous with page=1', () => {
    const ours = { ...served(base), previous: `${bases.ours}/api/outfits/?a=1&page=1&z=2` };
    expect(kindsOf(answer(base), answer(ours))).toEqual(['previous-page-1']);
    const other = { ...ours, previous: `${bases.ours}/api/outfits/?a=2&page=1&z=2` };
    expect(kindsOf(answer(base), answer(other))).toEqual(['value']);
    const plain = { ...base, previous: `${bases.theirs}/api/outfits/` };
    const first = { ...ours, previous: `${bases.ours}/api/outfits/?page=1` };
    expect(kindsOf(answer(plain), answer(first))).toEqual(['previous-page-1']);
  });

  test.each([
    [`${short}Z`, `${short}.000000Z`, ['fraction']],
    [`${short}.12Z`, `${short}.120000Z`, ['value']],
    [`${short}.000000Z`, `${short}Z`, ['value']],
    [`${short}Z`, `${short}.000001Z`, ['value']],
    [`${short}+00:00`, `${short}.000000Z`, ['value']],
    [`${short}.000000Z`, `${short}.000000Z`, []],
  ])('six digits: %s is %s here', (there, here, expected) => {
    const theirs = set(base, { created: there, modified: there });
    const ours = set(served(base), { created: here, modified: here });
    expect([...new Set(kindsOf(answer(theirs), answer(ours)))]).toEqual(expected);
    const titled = set(ours, { title: 'Other' });
    expect(new Set(kindsOf(answer(theirs), answer(titled)))).toEqual(
      new Set(['value', ...expected]),
    );
    const spaced = write(ours).replace(',"results"', ', "results"');
    for (const respelt of [spaced, setFirst(ours, reversed(first(ours)))]) {
      expect(new Set(kindsOf(answer(theirs), answer(respelt)))).toEqual(
        new Set(['bytes-only', ...expected]),
      );
    }
  });

  test('a fraction does not excuse a text that looks like a timestamp', () => {
    const theirs = set(base, { title: `${short}Z` });
    const ours = set(served(base), { title: `${short}.000000Z` });
    expect(kindsOf(answer(theirs), answer(ours))).toEqual(['value']);
  });

  test('the order of records that share what they are sorted by', () => {
    const byLikes = { method: 'GET', target: '/api/outfits/?ordering=like_count' };
    const [a, b, c] = [1, 2, 3].map((id) => makeRecord(id, { likes: id === 1 ? 0 : 5 }));
    const page = (...results: (LegacyRecord | undefined)[]) =>
      answer({ count: 3, next: null, results });
    expect(kindsOf(page(a, b, c), page(a, c, b), byLikes)).toEqual(['tie-order']);
    expect(kindsOf(page(a, b), page(a, c), byLikes)).toEqual(['tie-order']);
    expect(kindsOf(page(a, b, c), page(b, a, c), byLikes)).toEqual(['records']);
    expect(kindsOf(page(a, b, c), page(a, c, b))).toEqual(['records']);
    expect(kindsOf(page(a, b, c), page(a, b), byLikes)).toEqual(['records']);
  });

  test('an ordering of several fields that no list has, which is not called unknown', () => {
    const refused = answer({ ordering: ['No list is sorted by it.'] }, { status: 400 });
    const ask = (ordering: string, method = 'GET') => ({
      method,
      target: `/api/outfits/?ordering=${ordering}`,
    });
    for (const several of ['-like_count,-created', '-like_count,id', 'created,-modified,id']) {
      expect(kindsOf(answer(base), refused, ask(several))).toEqual(['several-orderings']);
      expect(kindsOf(answer(base), refused, ask(several, 'HEAD'))).toEqual(['several-orderings']);
    }
    expect(kindsOf(answer(base), refused, ask('title,-created'))).toEqual(['unknown-ordering']);
    expect(kindsOf(answer(base), refused, ask('-created,-id'))).toEqual(['status']);
  });

  test('an unknown ordering, unless the source really sorts by it', () => {
    const refused = answer({ ordering: ['Select a valid choice.'] }, { status: 400 });
    const ask = (target: string) => ({ method: 'GET', target });
    const unknown = ask('/api/outfits/?ordering=id&ordering=title');
    expect(kindsOf(answer(base), refused, unknown)).toEqual(['unknown-ordering']);
    const sorted = { ...base, results: [...base.results].reverse() };
    expect(kindsOf(answer(sorted), refused, unknown)).toEqual(['status']);
    const known = ask('/api/outfits/?ordering=title&ordering=-id');
    expect(kindsOf(answer(base), refused, known)).toEqual(['status']);
  });
});

describe('beside the body', () => {
  test('a status that differs is all that is said', () => {
    const ours = answer({ detail: 'No.' }, { status: 500, headers: {} });
    expect(kindsOf(answer({}), ours)).toEqual(['status']);
  });

  test('a redirect is compared by where it leads, with or without base', () => {
    const redirect = (location: string) => answer('', { status: 301, headers: { location } });
    const there = redirect(`${bases.theirs}/api/outfits/?a=1`);
    expect(kindsOf(there, redirect(`${bases.ours}/api/outfits/?a=1`))).toEqual([]);
    expect(kindsOf(there, redirect('/api/outfits/?a=1'))).toEqual([]);
    expect(kindsOf(there, redirect('/api/outfits/?a=2'))).toEqual(['header']);
    expect(kindsOf(there, redirect('https://elsewhere.test/api/outfits/?a=1'))).toEqual(['header']);
  });

  test.each([
    ['another sentence', '{"detail":"Not found."}', '{"detail":"Not here."}', ['body']],
    ['a page for people', '<h1>Not Found</h1>', '{"detail":"Not found."}', ['body']],
    ['spaces', '{"detail": "Not found."}', '{"detail":"Not found."}', ['bytes-only']],
    ['nothing', '{"detail":"Not found."}', '{"detail":"Not found."}', []],
  ])('an error that differs in %s', (_name, there, here, expected) => {
    const found = kindsOf(answer(there, { status: 404 }), answer(here, { status: 404 }));
    expect(found).toEqual(expected);
  });

  test('OPTIONS is compared by its keys, HEAD without a body', () => {
    const options = { method: 'OPTIONS', target: '/api/outfits/' };
    const there = { name: 'A', description: 'x', renders: [1] };
    expect(
      kindsOf(answer(there), answer({ name: 'B', description: '', renders: [] }), options),
    ).toEqual([]);
    expect(kindsOf(answer(there), answer({ name: 'B', renders: [] }), options)).toEqual(['value']);
    const head = { method: 'HEAD', target: '/api/outfits/' };
    expect(kindsOf(answer('{}'), answer(''), head)).toEqual([]);
  });
});

describe('any bytes', () => {
  test('are compared without an error, and equal ones do not differ', () => {
    const body = fc
      .oneof(fc.json(), fc.uint8Array(), fc.string())
      .map((value) => Buffer.from(value as string));
    fc.assert(
      fc.property(body, body, (a, b) => {
        expect(kindsOf(answer('', { body: a }), answer('', { body: a }))).toEqual([]);
        const found = kindsOf(answer('', { body: a }), answer('', { body: b }));
        expect(found.length > 0).toBe(!a.equals(b));
      }),
    );
  });

  test('behind an unknown ordering are compared without an error', () => {
    const asked = { method: 'GET', target: '/api/outfits/?ordering=nope' };
    const refused = answer('{"ordering":["x"]}', { status: 400 });
    const piece = fc.constantFrom('"created"', '[', ']', '{', '}', '"', ':', ',', '"results"', '1');
    const body = fc.tuple(fc.integer({ min: 0, max: 100 }), fc.array(piece)).map(
      // Deeper values are not looked at, and so may be nonsense.
      ([depth, pieces]) => '['.repeat(depth) + pieces.join('') + ']'.repeat(depth),
    );
    fc.assert(
      fc.property(body, (there) => {
        expect(kindsOf(answer(there), refused, asked)).toEqual(['status']);
      }),
      { examples: [[`${'['.repeat(70)}{"a" "b"}${']'.repeat(70)}`]] },
    );
  });

  test('of numbers that a double cannot hold are written in another way', () => {
    const numbers = ['9007199254740993', '9007199254740992'];
    const [there = '', here = ''] = numbers.map((number) => `{"count":${number},"results":[]}`);
    expect(kindsOf(answer(there), answer(here))).toEqual(['bytes-only']);
  });

  test('that are nested too deeply are only told apart', () => {
    const deep = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);
    expect(kindsOf(answer(deep(100_000)), answer(deep(99_999)))).toEqual(['value']);
  });
});

const origin = 'https://app.test';
type Headers = Readonly<Record<string, string>>;
const fromPage = { method: 'GET', target: '/api/outfits/', headers: { origin } };
const preflight = {
  method: 'OPTIONS',
  target: '/api/outfits/',
  headers: {
    origin,
    'access-control-request-method': 'POST',
    'access-control-request-headers': 'authorization,x-app',
  },
};
const headed = (headers: Headers = {}, body: string | Buffer = '{}', status = 200): Answer =>
  answer('', { status, headers, body: Buffer.from(body as string) });
const foundIn = (theirs: Answer, ours: Answer, asked = fromPage) =>
  compareAnswers(asked, theirs, ours, bases).map(({ kind, where }) => `${kind}:${where}`);

describe('headers', () => {
  test.each<[string, Headers, Headers]>([
    ['content-type', { 'content-type': 'text/html' }, { 'content-type': 'application/json' }],
    ['vary', { vary: 'Accept, Cookie' }, { vary: 'Accept' }],
    ['allow', { allow: 'GET, POST' }, { allow: 'GET' }],
    ['www-authenticate', { 'www-authenticate': 'Token' }, {}],
    ['content-encoding', { 'content-encoding': 'gzip' }, {}],
    ['set-cookie', { 'set-cookie': 'a=1; Path=/; HttpOnly' }, {}],
    ['set-cookie', { 'set-cookie': 'a=1; Path=/; HttpOnly' }, { 'set-cookie': 'a=1; Path=/' }],
    ['cache-control', { 'cache-control': 'max-age=60' }, { 'cache-control': 'no-cache' }],
    ['cache-control', {}, { 'cache-control': 'public, max-age=60' }],
    ['etag', { etag: '"a"' }, {}],
    ['etag', { etag: 'W/"a"' }, { etag: '"a"' }],
    ['link', { link: '<https://old.test/?page=2>; rel="next"' }, {}],
    ['x-total-count', { 'x-total-count': '5' }, { 'x-total-count': '6' }],
    ['content-language', { 'content-language': 'en' }, {}],
    ['last-modified', { 'last-modified': 'Mon, 01 Jan 2024 00:00:00 GMT' }, {}],
    ['access-control-allow-origin', { 'access-control-allow-origin': origin }, {}],
    ['access-control-allow-origin', {}, { 'access-control-allow-origin': '*' }],
    [
      'access-control-allow-credentials',
      { 'access-control-allow-origin': origin, 'access-control-allow-credentials': 'true' },
      { 'access-control-allow-origin': origin },
    ],
    [
      'access-control-expose-headers',
      { 'access-control-allow-origin': '*', 'access-control-expose-headers': 'X-Total-Count' },
      { 'access-control-allow-origin': '*', 'access-control-expose-headers': 'ETag' },
    ],
  ])('%s is told: %j, %j here', (name, theirs, ours) => {
    expect(foundIn(headed(theirs), headed(ours))).toEqual([`header:${name}`]);
  });

  test.each<[Headers, Headers]>([
    [{ date: 'a', server: 'b', via: 'c', 'x-request-id': 'd', connection: 'close' }, {}],
    [{ 'x-frame-options': 'DENY' }, { 'x-served-by': 'gateway' }],
    [{}, { etag: '"a"', 'cache-control': 'private, no-cache' }],
    [{ etag: '"a"' }, { etag: '"b"' }],
    [{ vary: 'Accept, origin' }, { vary: 'Origin, Accept' }],
    [
      { 'set-cookie': 'a=1; Expires=Wed, 01 Jan 2031 00:00:00 GMT; Path=/, b=2' },
      { 'set-cookie': 'b=3, a=4; path=/; expires=Thu, 02 Jan 2031 00:00:00 GMT' },
    ],
    [
      { link: '<https://old.test/?page=2>; rel="next"' },
      { link: '<http://localhost:4000/?page=2>; rel="next"' },
    ],
    [{ 'access-control-allow-origin': '*' }, { 'access-control-allow-origin': origin }],
    [{ 'content-length': '2' }, { 'content-length': '3' }],
  ])('%j is as good as %j', (theirs, ours) => {
    expect(foundIn(headed(theirs), headed(ours))).toEqual([]);
  });

  test('a sentence on cookies holds no value', () => {
    const theirs = headed({ 'set-cookie': 's=secret' });
    expect(compareAnswers(fromPage, theirs, headed(), bases)[0]?.sentence).not.toContain('secret');
  });
});

describe('preflights', () => {
  const allowed = {
    'access-control-allow-origin': origin,
    'access-control-allow-methods': 'DELETE, GET, OPTIONS, PATCH, POST, PUT',
    'access-control-allow-headers': 'accept, Authorization, x-app',
    'access-control-max-age': '600',
  };

  test('another 2xx, body and headers that were not requested do not count as differences', () => {
    const ours = {
      ...allowed,
      'access-control-allow-methods': 'GET, HEAD, POST',
      'access-control-allow-headers': 'authorization,x-app',
    };
    expect(foundIn(headed(allowed), headed(ours, '', 204), preflight)).toEqual([]);
  });

  test.each<[string, Headers]>([
    ['access-control-max-age', { 'access-control-max-age': '5' }],
    ['access-control-allow-headers', { 'access-control-allow-headers': 'authorization' }],
    ['access-control-allow-headers', { 'access-control-allow-headers': 'x-app, accept' }],
    ['access-control-allow-methods', { 'access-control-allow-methods': 'GET' }],
    ['access-control-allow-origin', { 'access-control-allow-origin': 'https://two.test' }],
  ])('%s is told: %j', (name, changes) => {
    const ours = headed({ ...allowed, ...changes }, '', 204);
    expect(foundIn(headed(allowed), ours, preflight)).toEqual([`header:${name}`]);
  });
});

describe('a body that some apps cannot read differs in body', () => {
  const text = '{"title":"é"}';
  test.each<[string, Buffer]>([
    ['byte-order-mark', Buffer.from(`\ufeff${text}`)],
    ['not-utf-8', Buffer.from(text, 'latin1')],
    ['not-json', Buffer.from(`${text}<!-- 3 ms -->`)],
    ['not-json', gzipSync(text)],
  ])('with %s as its place', (where, body) => {
    expect(foundIn(headed({}, body), headed({}, text))).toEqual([`body:${where}`]);
    expect(foundIn(headed({}, text), headed({}, body))).toEqual([`body:${where}`]);
  });
});

test.each<[envelope: string, theirs: unknown, ours: unknown, kinds: string[]]>([
  ['a bare list', [{ id: 1 }, { id: 2 }], [{ id: 1 }, { id: 2 }], []],
  ['a bare list without a record', [{ id: 1 }, { id: 2 }], [{ id: 2 }], ['records missing']],
  [
    'a bare list in another order',
    [{ id: 1 }, { id: 2 }],
    [{ id: 2 }, { id: 1 }],
    ['records order'],
  ],
  [
    'links in an object',
    { links: { next: `${bases.theirs}/a?page=2` }, items: [{ id: 1 }] },
    { links: { next: `${bases.ours}/a?page=2` }, items: [{ id: 1 }] },
    [],
  ],
  [
    'another link',
    { links: { next: `${bases.theirs}/a?page=2` }, items: [] },
    { links: { next: `${bases.ours}/a?page=3` }, items: [] },
    ['value links.next'],
  ],
  [
    'another record of data',
    { data: [{ id: 1, a: 1 }] },
    { data: [{ id: 1, a: 2 }] },
    ['value data.a'],
  ],
  [
    'a count that is a text, a next that is a number, and equal sort values in another order',
    { count: '2', next: 2, results: [1, 2].map((id) => ({ id, created: 'a' })) },
    { count: 2, next: null, results: [2, 1].map((id) => ({ id, created: 'a' })) },
    ['value count', 'value next', 'tie-order undefined'],
  ],
])('compares pages of another envelope: %s', (_envelope, theirs, ours, kinds) => {
  const answerOf = (value: unknown) => ({
    status: 200,
    headers: {},
    body: Buffer.from(JSON.stringify(value)),
  });
  const found = compareAnswers(
    { method: 'GET', target: '/api/looks/' },
    answerOf(theirs),
    answerOf(ours),
    bases,
  );
  expect(found.map(({ kind, where }) => `${kind} ${where}`)).toEqual(kinds);
});

test('LEGACY_ACCEPT with a kind that does not exist is refused', () => {
  expect(() => acceptedOf(['fraction', 'fractions'])).toThrow('LEGACY_ACCEPT names "fractions"');
});

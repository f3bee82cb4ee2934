// Any request and operation gets an answer that is no failure. Bytes, frames and floods are those of hostile-input.soak.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import type { InjectOptions } from 'fastify';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { schema } from '../../src/graphql/schema.ts';
import { useGateway } from '../support/gateway.ts';
import { createRandom, generateDocument } from '../support/graphql/random-documents.ts';
import { amount } from '../support/lane.ts';

const gateway = useGateway('PostgreSQL', [...generateOutfits({ outfits: 45, users: 9 })]);
let sent = 0;
let heapBefore: number;
const unhandled: unknown[] = [];
const note = (reason: unknown) => unhandled.push(reason);

beforeAll(() => {
  process.on('unhandledRejection', note).on('uncaughtException', note);
  heapBefore = measureHeap();
});
afterAll(() => void process.off('unhandledRejection', note).off('uncaughtException', note));
afterEach(async () => {
  // A normal request of each kind is answered as ever.
  expect((await gateway.get('/api/outfits/')).json().count).toBe(45);
  expect(await gateway.post('{ outfits { count } }')).toEqual({ data: { outfits: { count: 45 } } });
  expect(unhandled).toEqual([]);
});

/** Sends a request and looks at no more than what every answer must be. */
async function expectAnswer(options: InjectOptions): Promise<void> {
  sent++;
  const response = await gateway.app.inject(options);
  expect(response.statusCode).toBeLessThan(500);
  const type = String(response.headers['content-type'] ?? '');
  if (response.body !== '' && !type.startsWith('text/html')) JSON.parse(response.body);
  expect(response.headers['x-content-type-options']).toBe('nosniff');
}

/** @param runs with SOAK_TIMES=2 */
const check = <Value>(
  values: fc.Arbitrary<Value>,
  runs: number,
  ask: (value: Value) => Promise<void>,
) => fc.assert(fc.asyncProperty(values, ask), { numRuns: amount(Math.ceil(runs / 8), runs / 2) });

const oddTexts = [
  ...['', '\u0000', '\ud83d', '\udc4d\ud83d', '\u2028', '\ufeff', '__proto__', 'constructor'],
  ...['2147483648', '-2147483649', '9007199254740993', '1e20', '1e400', '-0', 'NaN', 'null', '[]'],
  ...["'", '"; DROP TABLE outfits; --', '%', '%00', '%zz', '%ff%fe'],
  ...['../../etc/passwd', '\r\nX: y'],
  ...['last', 'like_count', '-created', 'a'.repeat(5000), '['.repeat(2000), '{"a":'.repeat(2000)],
];
const text = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...oddTexts) },
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc
    .array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 20 })
    .map((units) => String.fromCharCode(...units)),
);
const value: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 3, arbitrary: text },
  fc.constantFrom(2 ** 31, -(2 ** 31) - 1, 2 ** 53 + 2, 1e20, -1e20, 1e308),
  fc.constantFrom(-0, -1, 1.5, true, null),
  fc.integer(),
  fc.jsonValue({ depthSize: 'medium' }),
  fc.array(fc.constant([]), { maxLength: 3 }),
  fc.integer({ min: 1, max: 3000 }).map(nest),
);

function nest(levels: number): unknown {
  let nested: unknown = 1;
  for (let level = 0; level < levels; level++) nested = level % 2 ? [nested] : { a: nested };
  return nested;
}

const knownHeaders = [
  ...['accept', 'content-type', 'authorization', 'if-none-match', 'x-forwarded-host', 'origin'],
  ...['host', 'x-forwarded-proto', 'x-request-id', 'idempotency-key', 'accept-encoding', 'cookie'],
  ...['access-control-request-method', 'range', 'te', 'x-http-method-override', 'traceparent'],
];
const headerValue = fc.oneof(
  fc.constantFrom('application/json', 'application/x-www-form-urlencoded', 'text/html', '*/*'),
  fc.constantFrom('Bearer x', 'Bearer a.b.c', '*', '"x"', ',;=', 'q=0'),
  text.map((raw) => raw.replace(/[^\t\x20-\x7e\x80-\xff]/g, '')),
);
const headers = fc.dictionary(fc.constantFrom(...knownHeaders), headerValue, { maxKeys: 5 });

const parameterName = fc.constantFrom('page', 'ordering', 'query', 'variables');
const parameter = fc.tuple(fc.oneof({ weight: 3, arbitrary: parameterName }, text), text);
// A Buffer makes lone surrogates what a browser makes of them, too.
const encode = (raw: string) => encodeURIComponent(Buffer.from(raw).toString());
const queryString = fc.oneof(
  fc
    .array(parameter, { maxLength: 5 })
    .map((pairs) => pairs.map(([name, given]) => `${encode(name)}=${encode(given)}`).join('&')),
  text.map((raw) => raw.replace(/[^\x21-\x7e]/g, '+')),
);
const path = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom('/api/outfits/', '/graphql') },
  fc.constantFrom('/api/outfits', '/api/', '/', '//', '/api/outfits//'),
  fc.constantFrom('/graphql/', '/%', '/%ff', '/*'),
  // Neither `\` nor `//` in front, from which the test's own client makes no request.
  text.map((raw) => `/x${raw.replace(/[^\x21-\x7e]|[?#\\]/g, '')}`),
);
const listing = (query: string) => `/api/outfits/?${query}`;
const method = fc.constantFrom(
  ...(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND'] as const),
);
const body = fc.oneof(
  value.map((given) => Buffer.from(JSON.stringify(given) ?? '')),
  fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
  queryString.map((raw) => Buffer.from(raw)),
);

const bodyType = fc.constantFrom('application/json', 'application/x-www-form-urlencoded', 'a/b');

/** What a word of a document may become. */
const oddWords = [
  ...'{ } ( ...F ...G $v mutation subscription __schema __type __typename __proto__'.split(' '),
  ...'-1 2147483648 1e20 null true [[[[1]]]] {a:{b:1}} "\\ud83d" """x""" nope'.split(' '),
  ...['', 'a: ', '@skip(if: $v)', '@nope @nope', '} fragment F on Outfit { ...G user { ...F } '],
];
const word = fc.oneof(
  fc.constantFrom(...oddWords),
  text.map((raw) => JSON.stringify(raw)),
);
const changes = fc.array(fc.tuple(fc.nat(), word), { maxLength: 5 });
const values = { Int: [0, 1, 2 ** 31 - 1], String: ['', 'x'] };
/** A document that was valid before some of its words were others. */
const document = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.tuple(fc.nat(), changes).map(([seed, changed]) => {
      const words = generateDocument(schema, createRandom(seed), values).text.split(/\b/);
      for (const [place, other] of changed) words[place % words.length] = other;
      return words.join('');
    }),
  },
  text,
);

const known = [
  'query ($v: Int) { outfits(page: $v) { count results { id: databaseId user { username } } } }',
  'query ($v: Int) { outfitConnection(first: $v) { edges { cursor node { id: databaseId } } } }',
  'query ($v: String) { outfitConnection(after: $v) { edges { cursor } } }',
  'query ($v: String) { user(username: $v) { id: databaseId } }',
  'query ($v: Int!) { outfit(databaseId: $v) { id: databaseId } }',
  'query ($v: OutfitOrdering) { outfits(ordering: $v) { page } }',
];

const request: fc.Arbitrary<InjectOptions> = fc.oneof(
  fc.record({ method: fc.constant('GET' as const), url: queryString.map(listing), headers }),
  fc.record({
    method: fc.constant('POST' as const),
    url: fc.constant('/api/outfits/'),
    headers: fc.record({ 'content-type': bodyType }),
    payload: body,
  }),
  fc.record({
    method,
    url: fc.tuple(path, queryString).map((parts) => parts.join('?')),
    headers,
    payload: body,
  }) as fc.Arbitrary<InjectOptions>,
);

const operation = fc.oneof(
  fc.record({ query: document }),
  // Of queries that have been compiled by then.
  fc.record({ query: fc.constantFrom(...known), variables: fc.record({ v: value, more: value }) }),
  fc.record(
    { query: fc.oneof(document, value), variables: value, operationName: value, extensions: value },
    { requiredKeys: [] },
  ),
);

describe('nothing that is sent is a 5xx, a hang, or the end', () => {
  test('methods, paths, query strings, headers and bodies', () =>
    check(request, 4000, expectAnswer));

  test('operations of GraphQL, with parameters of any type', () =>
    check(operation, 1200, (payload) =>
      expectAnswer({ method: 'POST', url: '/graphql', payload }),
    ));
});

const least = amount(600, 2_400);
test(`that was ${least} requests, and nothing of them stays in memory but what is kept on purpose`, () => {
  expect(sent).toBeGreaterThanOrEqual(least);
  expect(measureHeap() - heapBefore).toBeLessThan(150 * 2 ** 20);
});

/** Bytes in use after a collection. */
function measureHeap(): number {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  return process.memoryUsage().heapUsed;
}

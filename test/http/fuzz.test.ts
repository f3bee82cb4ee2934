// Anything may be sent, thousands of requests of every kind, and the service answers on.
import { type AddressInfo, connect } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import type { InjectOptions, LightMyRequestResponse } from 'fastify';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { openGateway, type TestGateway } from '../support/gateway.ts';
import { amount } from '../support/lane.ts';

let gateway: TestGateway;
let port: number;
let sent = 0;
let heapBefore: number;
const unhandled: unknown[] = [];
const note = (reason: unknown) => unhandled.push(reason);

beforeAll(async () => {
  process.on('unhandledRejection', note).on('uncaughtException', note);
  gateway = await openGateway('PostgreSQL', [...generateOutfits({ outfits: 45, users: 9 })]);
  await gateway.app.listen({ port: 0, host: '127.0.0.1' });
  port = (gateway.app.server.address() as AddressInfo).port;
  heapBefore = measureHeap();
});
afterAll(async () => {
  process.off('unhandledRejection', note).off('uncaughtException', note);
  await gateway.close();
});
afterEach(async () => {
  // A normal request of each kind is answered as ever.
  expect((await gateway.get('/api/outfits/')).json().count).toBe(45);
  expect(await gateway.post('{ outfits { count } }')).toEqual({ data: { outfits: { count: 45 } } });
  expect(unhandled).toEqual([]);
});

/** Sends a request and looks at no more than what every answer must be. */
async function expectAnswer(options: InjectOptions): Promise<LightMyRequestResponse> {
  sent++;
  const response = await gateway.app.inject(options);
  expect(response.statusCode).toBeLessThan(500);
  const type = String(response.headers['content-type'] ?? '');
  if (response.body !== '' && !type.startsWith('text/html')) JSON.parse(response.body);
  expect(response.headers['x-content-type-options']).toBe('nosniff');
  return response;
}

/** @param runs in the slow lane */
const check = <Value>(
  values: fc.Arbitrary<Value>,
  runs: number,
  ask: (value: Value) => Promise<unknown>,
) =>
  fc.assert(
    fc.asyncProperty(values, async (value) => {
      await ask(value);
    }),
    { numRuns: amount(Math.ceil(runs / 8), runs) },
  );

const oddTexts = [
  ...['', '\u0000', '\ud83d', '\udc4d\ud83d', '\u2028', '\ufeff', '__proto__', 'constructor'],
  ...['2147483648', '-2147483649', '9007199254740993', '1e20', '1e400', '-0', 'NaN', 'null', '[]'],
  ...[
    "'",
    '"; DROP TABLE outfits; --',
    '%',
    '%00',
    '%zz',
    '%ff%fe',
    '../../etc/passwd',
    '\r\nX: y',
  ],
  ...[
    'last',
    'like_count',
    '-created',
    'a'.repeat(5000),
    '['.repeat(2000),
    '{a'.repeat(3000),
    '{"a":'.repeat(2000),
  ],
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
  fc.constantFrom(
    2 ** 31,
    -(2 ** 31) - 1,
    2 ** 53,
    2 ** 53 + 2,
    1e20,
    -1e20,
    1e308,
    0,
    -0,
    -1,
    1.5,
    true,
    null,
  ),
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
  fc.constantFrom(
    'application/json',
    'text/html',
    '*/*',
    'Bearer x',
    'Bearer a.b.c',
    '*',
    '"x"',
    ',;=',
    'q=0',
  ),
  text.map((raw) => raw.replace(/[^\t\x20-\x7e\x80-\xff]/g, '')),
);
const headers = fc.dictionary(fc.constantFrom(...knownHeaders), headerValue, { maxKeys: 5 });

const parameter = fc.tuple(
  fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom('page', 'ordering', 'query', 'variables') },
    text,
  ),
  text,
);
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
  fc.constantFrom(
    '/api/outfits',
    '/api/',
    '/',
    '//',
    '/api/outfits//',
    '/graphql/',
    '/%',
    '/%ff',
    '/*',
  ),
  // Neither `\` nor `//` in front, from which the test's own client makes no request.
  text.map((raw) => `/x${raw.replace(/[^\x21-\x7e]|[?#\\]/g, '')}`),
);
const method = fc.constantFrom(
  ...(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND'] as const),
);
const body = fc.oneof(
  value.map((given) => Buffer.from(JSON.stringify(given) ?? '')),
  fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
  queryString.map((raw) => Buffer.from(raw)),
);

const name = fc.constantFrom(
  ...['outfits', 'outfit', 'user', 'outfitConnection', 'results', 'edges', 'node', 'count', 'id'],
  ...['__typename', '__schema', '__type', 'types', 'fields', 'nope', '__proto__', 'totalCount'],
);
const literal = fc.oneof(
  fc.constantFrom('1', '0', '-1', '2147483648', '1e20', '9007199254740993', 'null', 'true', 'X'),
  fc.constantFrom(
    '$v',
    '$w',
    '[[[[1]]]]',
    '{a: {b: 1}}',
    'ID_ASC',
    '"\\u0000"',
    '"\\ud83d"',
    '"""x"""',
  ),
  text.map((raw) => JSON.stringify(raw)),
);
const { selection } = fc.letrec<{ selection: string }>((tie) => ({
  selection: fc.oneof(
    { maxDepth: 6 },
    name,
    fc.constantFrom('...F', '...G', '... on Outfit { id }', 'a: __typename'),
    fc
      .tuple(
        fc.constantFrom('', 'a: ', 'b: '),
        name,
        fc.dictionary(
          fc.constantFrom('first', 'last', 'page', 'id', 'after', 'ordering', 'name', 'username'),
          literal,
          { maxKeys: 2 },
        ),
        fc.constantFrom('', '@skip(if: $v)', '@include(if: true)', '@nope @nope'),
        fc.array(tie('selection'), { minLength: 1, maxLength: 4 }),
      )
      .map(([alias, field, args, directive, inner]) => {
        const given = Object.entries(args).map(([key, literalValue]) => `${key}: ${literalValue}`);
        return `${alias}${field}${given.length > 0 ? `(${given})` : ''} ${directive} { ${inner.join(' ')} }`;
      }),
  ),
}));
const document = fc.oneof(
  {
    weight: 4,
    arbitrary: fc
      .tuple(
        fc.constantFrom(
          '',
          'query',
          'query Q',
          'query ($v: Int, $w: OutfitOrdering)',
          'mutation',
          'subscription',
          'fragment F on Outfit',
        ),
        fc.array(selection, { minLength: 1, maxLength: 4 }),
        fc.constantFrom(
          '',
          'fragment F on Outfit { ...G } fragment G on Outfit { id: databaseId user { ...F } }',
          'fragment F on Query { outfits { count } }',
        ),
      )
      .map(([head, selections, tail]) => `${head} { ${selections.join(' ')} } ${tail}`),
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

describe('nothing that is sent is a 5xx, a hang, or the end', () => {
  test('query strings and headers of the listing', () =>
    check(fc.tuple(queryString, headers), 4000, ([query, given]) =>
      expectAnswer({ method: 'GET', url: `/api/outfits/?${query}`, headers: given }),
    ));

  test('methods, paths, headers and bodies', () =>
    check(
      fc.tuple(method, path, queryString, headers, body),
      3000,
      ([verb, url, query, given, payload]) =>
        expectAnswer({
          method: verb,
          url: `${url}?${query}`,
          headers: given,
          payload,
        } as InjectOptions),
    ));

  test('bodies for the listing, of the types that it takes', () =>
    check(
      fc.tuple(
        fc.constantFrom('application/json', 'application/x-www-form-urlencoded', 'text/plain'),
        body,
      ),
      1500,
      ([type, payload]) =>
        expectAnswer({
          method: 'POST',
          url: '/api/outfits/',
          headers: { 'content-type': type },
          payload,
        }),
    ));

  test('documents of GraphQL', () =>
    check(document, 750, (query) =>
      expectAnswer({ method: 'POST', url: '/graphql', payload: { query } }),
    ));

  test('variables of queries that have been compiled', () =>
    check(fc.tuple(fc.constantFrom(...known), value, value), 500, ([query, v, more]) =>
      expectAnswer({ method: 'POST', url: '/graphql', payload: { query, variables: { v, more } } }),
    ));

  test('parameters of GraphQL of any type', () =>
    check(
      fc.record(
        {
          query: fc.oneof(document, value),
          variables: value,
          operationName: value,
          extensions: value,
        },
        { requiredKeys: [] },
      ),
      500,
      (payload) => expectAnswer({ method: 'POST', url: '/graphql', payload }),
    ));

  test('bytes on a socket', async () => {
    const line = fc.oneof(
      text,
      fc.constantFrom(
        'Host: a',
        'Content-Length: 5',
        'Content-Length: -1',
        'Transfer-Encoding: chunked',
        'Connection: close',
        'Expect: 100-continue',
        'Upgrade: websocket',
        'Content-Type: application/json',
        `X: ${'x'.repeat(20_000)}`,
      ),
    );
    const start = fc.oneof(
      text,
      fc
        .tuple(method, path, queryString)
        .map(([verb, url, query]) => `${verb} ${url}?${query} HTTP/1.1`),
      fc.constant('POST /graphql HTTP/1.1'),
    );
    const request = fc
      .tuple(start, fc.array(line, { maxLength: 4 }), fc.uint8Array({ maxLength: 50 }))
      .map(([first, lines, bytes]) =>
        Buffer.concat([Buffer.from(`${[first, ...lines].join('\r\n')}\r\n\r\n`, 'latin1'), bytes]),
      );
    await check(fc.array(request, { minLength: 10, maxLength: 10 }), 75, (requests) =>
      Promise.all(
        requests.map(async (bytes) => {
          for (const status of (await sendRaw(bytes)).matchAll(/^HTTP\/1\.1 (\d{3}) /gm)) {
            expect(Number(status[1])).toBeLessThan(500);
          }
        }),
      ),
    );
  });

  /** Sends bytes as they are and gives what comes back; half a request ends with the connection. */
  function sendRaw(bytes: Buffer): Promise<string> {
    sent++;
    return new Promise((settle) => {
      let answer = '';
      const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true }, () =>
        socket.end(bytes),
      );
      socket.setTimeout(10_000, () => settle('HTTP/1.1 599 nothing came'));
      socket.on('data', (chunk) => {
        answer += chunk;
      });
      socket.on('error', () => {}).on('close', () => settle(answer));
      socket.on('end', () => socket.destroy());
    });
  }
});

const least = amount(1_300, 10_000);
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

// The checks that attackers' tools make first: graphql-cop's, the OWASP list for GraphQL, requests
// that a page of another site can send, and bytes that are hardly HTTP.
import type { InjectOptions, LightMyRequestResponse } from 'fastify';
import { expect, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { addressOf, sendPart } from '../support/faults/clients.ts';
import { buildObserved, openForTest, type TestGateway, useGateway } from '../support/gateway.ts';
import { baseOfApp } from '../support/http/event-stream.ts';
import { postGraphql } from '../support/http/graphql.ts';
import { sendRaw, statusesIn } from '../support/http/raw-http.ts';

const rows = [...generateOutfits({ outfits: 45, users: 9 })];

const open = useGateway('PostgreSQL', rows);
/** With introspection and GraphiQL switched off. */
const off = { GRAPHQL_INTROSPECTION: 'off', GRAPHIQL: 'off' };
const closed = useGateway('PostgreSQL', rows, off);

const post = ({ app }: TestGateway, payload: object) => postGraphql(app, payload);
const cop = (gateway: TestGateway, query: string) => post(gateway, { query, operationName: 'cop' });
const send = (options: InjectOptions) => open.app.inject({ url: '/graphql', ...options });

function expectRefused(response: LightMyRequestResponse, status: number): void {
  expect(response.statusCode).toBe(status);
  expect(response.json().errors[0].message).toMatch(/\w{3}/);
  expect(response.json()).not.toHaveProperty('data');
}

// Its other checks are those of limits.test.ts, http.test.ts and graphiql.test.ts: aliases, directives, repeated fields,
// batches, mutations by GET, GraphiQL.
test.each<[string, object?]>([
  ['{ __schema { directive } outfit { count } }'],
  ['{ outfit(idd: 1) { titel } }'],
  ['{ outfits(ordering: CREATED_DES) { count } }'],
  ['{ ...F } fragment F on Quer { __typename }'],
  ['query ($by: OutfitOrdering) { outfits(ordering: $by) { count } }', { by: 'CREATED_DES' }],
])(
  'suggestions are there while the schema can be read anyway, and not otherwise: %s',
  async (query, variables = {}) => {
    expect((await post(open, { query, variables })).body).toContain('Did you mean');
    expect((await post(closed, { query, variables })).body).toMatch(/errors(?!.*Did you mean)/);
  },
);

test('introspection: it answers where it is on, and discloses nothing where it is off', async () => {
  for (const document of [
    'query cop { __schema { types { name fields { name } } } }',
    'query cop { __type(name: "Outfit") { name } }',
    'query cop { ...F } fragment F on Query { outfits { count } a: __type(name: "User") { name } }',
  ]) {
    expect((await cop(open, document)).json()).toHaveProperty('data');
    for (let round = 0; round < 5; round++) {
      const response = await cop(closed, document);
      expect(response.json()).not.toHaveProperty('data');
      expect(response.body).toMatch(/introspection/i);
    }
  }
  expect((await cop(closed, 'query cop { __typename }')).json()).toHaveProperty('data');
});

test('text is never a part of SQL', async () => {
  const query = 'query ($username: String) { user(username: $username) { id } }';
  for (const username of ["' OR '1'='1", '\\', '$1', '\u0000', '%', '"; DROP TABLE users; --']) {
    const { body } = await post(open, { query, variables: { username } });
    expect(body).toBe('{"data":{"user":null}}');
  }
});

test('errors show nothing of the inside', async () => {
  for (const query of [
    '{',
    '{ nope }',
    '{ outfits(page: -1) { count } }',
    '\u0000',
    'qwerty cop { abc }',
  ]) {
    const { body } = await post(open, { query });
    expect(body).toContain('"errors"');
    expect(body).not.toMatch(/SELECT |[Pp]risma|node_modules|\.[jt]s:\d|originalError|stack/);
    expect(body).not.toMatch(/exception|"extensions":\{(?!"code":"\w+"\})|tracing/);
  }
});

const payload = JSON.stringify({ query: '{ __typename }' });

test.each([
  undefined,
  'text/plain',
  'nonsense',
  'text/plain;application/json',
  'text/plain; charset=application/json',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  'application/graphql+json',
  'application/jsonp',
  'text/plain, application/json',
  'application/json, text/plain',
  ' ',
])('a page of another site cannot send a body of the type %s', async (type) => {
  const headers = type === undefined ? {} : { 'content-type': type };
  const response = await send({ method: 'POST', headers, payload: Buffer.from(payload) });
  expectRefused(response, 415);
  const message = 'The Content-Type of a POST must be application/json.';
  expect(response.json().errors[0].message).toBe(message);
});

test('a page of another site cannot hide behind a second Content-Type, or behind none', async () => {
  const sendLines = (lines: string[]) => {
    const head = ['POST /graphql HTTP/1.1', 'Host: a', 'Connection: close', ...lines];
    const length = `Content-Length: ${payload.length}`;
    return sendRaw(open.app, [...head, length, '', payload].join('\r\n'));
  };
  const type = (value: string) => `Content-Type: ${value}`;
  // What needs a preflight.
  expect(await sendLines([type('Application/JSON; foo')])).toMatch(/^HTTP\/1.1 200 /);
  for (const lines of [[], [type('')], [type('text/plain'), type('application/json')]]) {
    expect(await sendLines(lines)).toMatch(/^HTTP\/1.1 4(00|15) /);
  }
});

const expected = {
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
};
const json = { 'content-type': 'application/json' };
test.each<[string, InjectOptions, number]>([
  ['a page of the listing', { url: '/api/outfits/' }, 200],
  ['an error of the listing', { url: '/api/outfits/?page=0' }, 404],
  ['a redirect', { url: '/api/outfits' }, 301],
  ['an unknown path', { url: '/nope' }, 404],
  [
    'an unknown path with a body',
    { url: '/nope', method: 'POST', headers: json, payload: '{' },
    404,
  ],
  ['a path that cannot be decoded', { url: '/%zz' }, 404],
  ['an answer of GraphQL', { url: '/graphql?query={__typename}' }, 200],
  ['an error of GraphQL', { url: '/graphql' }, 400],
  ['GraphiQL', { url: '/graphql', headers: { accept: 'text/html' } }, 200],
  ['nothing new', { url: '/graphql?query={__typename}', headers: { 'if-none-match': '*' } }, 304],
])('%s has the security headers', async (_name, options, status) => {
  const response = await open.app.inject(options);
  expect(response.statusCode).toBe(status);
  expect(response.headers).toMatchObject(expected);
});

test.each(['nonsense\r\n\r\n', `GET / HTTP/1.1\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`])(
  'an answer to bytes that are no request has the security headers',
  async (bytes) => {
    const answer = await sendRaw(closed.app, bytes);
    expect(answer).toMatch(/^HTTP\/1.1 4(00|31) /);
    for (const [name, value] of Object.entries(expected)) {
      expect(answer).toContain(`\r\n${name}: ${value}\r\n`);
    }
    expect(answer).toMatch(/"detail":"The request/);
  },
);

const many = 'a:\r\n'.repeat(2_100);
const head = `GET /api/outfits/ HTTP/1.1\r\nHost: shop.test\r\nConnection: close\r\n${many}`;

test('more than 2,000 header lines hide no token', async () => {
  expect(await sendRaw(open.app, `${head}\r\n`)).toMatch(/^HTTP\/1\.1 200 /);
  const answer = await sendRaw(open.app, `${head}Authorization: Bearer x\r\n\r\n`);
  expect(answer).toMatch(/^HTTP\/1\.1 401 /);
  const twice = `Authorization: Basic x\r\n${many}Authorization: Basic x\r\n`;
  expect(await sendRaw(open.app, `${head.replace(many, twice)}\r\n`)).toMatch(/^HTTP\/1\.1 401 /);
});

test('more than 2,000 header lines hide no sender from the rate limit', async () => {
  const settings = { RATE_LIMIT: '2/hour', TRUST_PROXY: '127.0.0.1' };
  const gateway = await openForTest('PostgreSQL', rows, settings);
  const ask = () => sendRaw(gateway.app, `${head}X-Forwarded-For: 192.0.2.1\r\n\r\n`);
  for (const status of [200, 200, 429]) {
    expect(await ask()).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
  }
  expect(await sendRaw(gateway.app, `${head}\r\n`)).toMatch(/^HTTP\/1\.1 200 /);
});

const page = (number: number) =>
  `GET /api/outfits/?page=${number} HTTP/1.1\r\nHost: shop.test\r\n\r\n`;

const chunked =
  'POST /graphql HTTP/1.1\r\nHost: shop.test\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n';

test.each([
  ['behind requests', [`${page(3)}${page(1)}GARBAGE\r\n\r\n`], [200, 200, 400]],
  ['in many packets', [page(1), 'GARBAGE\r\n\r\n', 'MORE\r\n\r\n'], [200, 400]],
  ['in a body', [chunked], [400]],
  ['in a body behind a request', [page(1) + chunked], [200, 400]],
])(
  'bytes that are not a request are answered once, after the requests before them: %s',
  async (_name, parts, statuses) => {
    // Read anew, so that the answers are not there yet when the bytes come.
    await open.database.pool.query('UPDATE outfit_like_counts SET likes = likes + 1');
    const answer = await sendRaw(open.app, ...parts);
    expect(statusesIn(answer)).toEqual(statuses);
    expect(answer).toMatch(/The request is not valid HTTP\.[^{]*$/);
  },
);

const CORS_ORIGINS = 'https://app.test';
const line = 'HTTP/1.1\r\nHost: a\r\n';
const long = 'x'.repeat(20_000);

test('requests that cannot be read are counted and logged by their reason, with the form and the CORS headers of their path', async () => {
  const opened = await openForTest('PostgreSQL', [], { CORS_ORIGINS });
  const { app, log, metrics } = await buildObserved(opened, 'debug');
  const { lines } = log;
  for (const [reason, bytes, status = 400] of [
    ['HPE_INVALID_METHOD', `get / ${line}Origin: https://app.test\r\n\r\n`],
    ['HPE_INVALID_METHOD', `FOO /graphql ${line}\r\n`],
    ['HPE_INVALID_METHOD', `PLAY rtsp://a/ RTSP/1.0\r\nOrigin: https://app.test\r\n\r\n`],
    ['HPE_INVALID_URL', `GET /api/outfits/?q=\xc3\xa9 ${line}Origin: https://app.test\r\n\r\n`],
    ['HPE_INVALID_URL', `GET /graphql?query=\xe9 ${line}Origin: https://app.test\r\n\r\n`],
    ['HPE_INVALID_VERSION', `GET / HTTP/1.2\r\nOrigin: https://app.test\r\n\r\n`],
    ['HPE_INVALID_CONSTANT', `GET / FTP/1.1\r\nOrigin: https://app.test\r\n\r\n`],
    ['HPE_INVALID_HEADER_TOKEN', `GET / ${line}Origin: https://app.test\r\nA: b\r\n c\r\n\r\n`],
    ['HPE_INVALID_HEADER_TOKEN', `GET /graphql ${line}origin:https://app.test\r\nA: b\x7f\r\n\r\n`],
    [
      'HPE_HEADER_OVERFLOW',
      `GET /graphql?query=${long} ${line}Origin: https://app.test\r\n\r\n`,
      431,
    ],
    [
      'HPE_HEADER_OVERFLOW',
      `GET /api/outfits/ ${line}Origin: https://app.test\r\nA: ${long}\r\n\r\n`,
      431,
    ],
    [
      'HPE_INVALID_CONTENT_LENGTH',
      `POST /graphql ${line}Origin: https://app.test\r\nContent-Length: x\r\n\r\n`,
    ],
  ] as const) {
    const before = await metrics();
    const answer = await sendRaw(app, bytes);
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    const requestId = /^[^{]*\r\nx-request-id: ([\w-]{8,64})\r\n/.exec(answer)?.[1];
    expect(requestId).toBeDefined();
    expect(answer).toMatch(
      bytes.includes(' /graphql') ? /\{"errors":\[\{"message":.*"code":/ : /\{"detail":"/,
    );
    if (/\r\norigin:/i.test(bytes) && !bytes.includes('rtsp')) {
      expect(answer).toContain('Access-Control-Allow-Origin: https://app.test\r\n');
    }
    const countIn = (text: string) =>
      Number(
        new RegExp(`_unreadable_requests_total\\{reason="${reason}"\\} (\\d+)`).exec(text)?.[1],
      );
    expect(countIn(await metrics())).toBe(countIn(before) + 1);
    const logged = { level: 'info', msg: 'unreadable', requestId, reason, status };
    expect(lines().at(-1)).toMatchObject(logged);
  }
  // A client that leaves within its request is no failure.
  const count = lines().length;
  await sendPart(addressOf(await baseOfApp(app)), `GET / ${line}`).then((socket) => socket.end());
  expect(lines()).toHaveLength(count);
  const other = await app.inject({ url: '/api/outfits/%zz', headers: { origin: CORS_ORIGINS } });
  expect(other.headers).toMatchObject({
    'access-control-allow-origin': CORS_ORIGINS,
    vary: 'Origin',
  });
});

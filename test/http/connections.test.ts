// What becomes of a connection: upgrades that are none, unread bodies, half-closed and silent connections.
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, expect, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { disconnectSignalOf } from '../../src/http/server/connections.ts';
import { createServer } from '../../src/http/server/server.ts';
import { connectTo, databaseUrlOf } from '../support/databases/connections.ts';
import { addressOf, countBlocked, lockOutfits, sendPart } from '../support/faults/clients.ts';
import { keepLog, openForTest, useGateway } from '../support/gateway.ts';
import { baseOfApp } from '../support/http/event-stream.ts';
import { portOf } from '../support/http/listen.ts';
import { sendRaw, statusesIn } from '../support/http/raw-http.ts';
import { secret, signIn } from '../support/http/tokens.ts';
import { keepWarnings } from '../support/this-process.ts';

const log = keepLog();
const gateway = useGateway(
  'PostgreSQL',
  [...generateOutfits({ outfits: 45, users: 9 })],
  { AUTH_JWT_SECRET: secret, CACHE_MAX_SIZE: '0', CORS_ORIGINS: 'https://app.test' },
  { logger: log.logger },
);
let authorization: string;
beforeAll(async () => {
  ({ authorization } = (await signIn(1)) as { authorization: string });
});

const query = '{"query":"{ outfits { count } }"}';
const json = `Content-Type: application/json\r\nContent-Length: ${query.length}\r\n`;

test.each([
  ['pRoXy-CoNnEcTiOn: UPGRADE', 'uPgRaDe: foo, \xe9'],
  ['Connection: a', 'Connection:upgrade', 'Proxy-Connection:\tupgrade ', 'Upgrade:', 'Upgrade: b'],
  ['Upgrade: websocket', 'Proxy-Connection: upgrade'],
  ...['h2c', 'websocket'].map((name) => [
    ...['Connection: Upgrade, HTTP2-Settings', `Upgrade: ${name}`],
    'HTTP2-Settings: AAMAAABkAAQAAP__',
  ]),
])(
  'a request for another upgrade than to a WebSocket is answered once, with its body and what follows: %s %s',
  async (...lines) => {
    const upgrade = `POST /graphql HTTP/1.1\r\nHost: a\r\n${json}${lines.join('\r\n')}\r\n\r\n${query}`;
    const last = 'GET /health/live HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n';
    const answer = await sendRaw(gateway.app, upgrade, last);
    expect(answer).toMatch(/"count":45[\s\S]*"ok"/);
    expect(statusesIn(answer)).toEqual([200, 200]);
  },
);

test('a request for another upgrade is answered in its turn, with a body in two packets', async () => {
  const health = 'GET /health/live HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\n\r\n';
  const reads = `GET /api/outfits/ HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(5);
  const upgrade = `POST /graphql HTTP/1.1\r\nHost: a\r\n${json}Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n${query}`;
  const parts = [health + reads + upgrade.slice(0, -24), upgrade.slice(-24)];
  const answer = await sendRaw(gateway.app, ...parts, health.replace('keep-alive', 'close'));
  expect(answer).toMatch(/"ok"[\s\S]*"data":\{"outfits":\{"count":45[\s\S]*"ok"/);
  expect(statusesIn(answer)).toEqual(Array(8).fill(200));
});

test('a request for an upgrade of a path without one is answered twenty times on one connection without a warning', async () => {
  const warnings = keepWarnings();
  const upgrade =
    'GET /health/live HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n';
  const all = [upgrade, upgrade.replace('h2c', 'websocket')].join('').repeat(10);
  const last = 'GET /health/live HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n';
  expect(statusesIn(await sendRaw(gateway.app, all + last))).toEqual(Array(21).fill(200));
  await sleep(0);
  expect(warnings).toEqual([]);
});

test('requests that wait on one connection are served one after the other, without a warning', async () => {
  const warnings = keepWarnings();
  const reads = Array.from({ length: 20 }, (_, index) => `{a${index}:outfits{count}}`);
  const all = reads.map((read) => `GET /graphql?query=${read} HTTP/1.1\r\nHost: a\r\n\r\n`);
  const last = 'GET /health/live HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n';
  expect(statusesIn(await sendRaw(gateway.app, all.join('') + last))).toEqual(Array(21).fill(200));
  await sleep(0);
  expect(warnings).toEqual([]);
});

test('a connection on which more than a hundred requests wait is closed', async () => {
  const live = 'GET /graphql?query=subscription{outfits{count}} HTTP/1.1\r\nHost: a\r\n';
  const next = 'GET /health/live HTTP/1.1\r\nHost: a\r\n\r\n';
  const last = next.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n');
  expect(statusesIn(await sendRaw(gateway.app, next.repeat(100) + last))).toHaveLength(101);
  const stream = `${live}Accept: text/event-stream\r\n\r\n`;
  expect(await sendRaw(gateway.app, stream + next.repeat(101))).not.toContain('"ok"');
});

test('a connection on which more than 64 KiB wait is closed', async () => {
  const stream =
    'GET /graphql?query=subscription{outfits{count}} HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n';
  const head = `POST /graphql HTTP/1.1\r\nHost: a\r\nX-Long: ${'x'.repeat(12_000)}\r\n${json}`;
  const last = 'GET /health/live HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n';
  const read = 'GET /api/outfits/ HTTP/1.1\r\nHost: a\r\n\r\n';
  const all = await sendRaw(gateway.app, read + `${head}\r\n${query}`.repeat(5) + last);
  expect(statusesIn(all)).toEqual(Array(7).fill(200));
  expect(await sendRaw(gateway.app, stream + `${head}\r\n${query}`.repeat(6))).not.toContain(
    'application/json',
  );
});

const names = { protocol: 'Sec-WebSocket-Protocol', key: 'Sec-WebSocket-Key' };
const key = `${names.key}: dGhlIHNhbXBsZSBub25jZQ==`;
const version = 'Sec-WebSocket-Version: 13';
const protocol = `${names.protocol}: graphql-transport-ws`;
test.each([
  ['without a key', 'HTTP/1.1', protocol, version],
  ['with a key that is none', 'HTTP/1.1', protocol, version, `${names.key}: x`],
  ['without a version', 'HTTP/1.1', protocol, key],
  ['of another version', 'HTTP/1.1', protocol, key, 'Sec-WebSocket-Version: 7'],
  ['with a repeated protocol', 'HTTP/1.1', `${protocol}, graphql-transport-ws`, key, version],
  ['of another protocol', 'HTTP/1.1', `${names.protocol}: graphql-ws`, key, version],
  ['of HTTP/1.0', 'HTTP/1.0', protocol, key, version],
])(
  'a handshake that is not taken is answered as every request, %s',
  async (_name, http, ...lines) => {
    const head = ['Host: a', 'Connection: close, Upgrade', 'Upgrade: websocket', ...lines];
    const answer = await sendRaw(
      gateway.app,
      `GET /graphql ${http}\r\n${head.join('\r\n')}\r\n\r\n`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 400 [\s\S]*x-request-id: [\s\S]*nosniff/);
    expect(answer).toMatch(/"code":"TRANSPORT_NOT_AVAILABLE"\}\}\]\}$/);
  },
);

test.each([
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  ...['DESCRIBE', 'FLUSH', 'TEARDOWN'].map((method) => `${method} rtsp://x/ RTSP/1.0\r\n\r\n`),
  'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n',
])(
  'a method that only the parser of Node knows gets a 400 in its turn, and no stack into the log: %j',
  async (bytes) => {
    const first = 'GET /api/outfits/ HTTP/1.1\r\nHost: a\r\n\r\n';
    const answer = await sendRaw(gateway.app, first + bytes);
    expect(statusesIn(answer)).toEqual([200, 400]);
    expect(answer).toMatch(
      /x-request-id: [^{]*nosniff[^{]*\{"detail":"The request is not valid HTTP\."\}$/,
    );
    expect(log.text()).not.toContain('stack');
  },
);

const size = 5_000_000;
const rest = 'x'.repeat(size);
const chunks = `100000\r\n${'x'.repeat(0x100000)}\r\n`.repeat(4);

test.each([
  ['POST /graphql', 413, 'application/json'],
  ['POST /api/outfits/', 413, 'application/json'],
  ['POST /api/outfits/', 413, 'application/x-www-form-urlencoded'],
  ['PUT /api/outfits/', 405, 'application/json'],
  ['POST /api/nope', 404, 'application/json'],
  ['DELETE /nope', 404, 'a/b'],
])(
  'an answer before the body is read arrives, however the client sends: %s, %s, %s',
  async (line, status, type) => {
    const head = `${line} HTTP/1.1\r\nHost: a\r\nAuthorization: ${authorization}\r\nContent-Type: ${type}\r\n`;
    const length = `Content-Length: ${size}\r\n`;
    for (const [headers, body] of [
      [`${length}Connection: close\r\n\r\n`, rest],
      [`${length}Expect: 100-continue\r\n\r\n`, rest],
      ['Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n', `${chunks}0\r\n\r\n`],
    ] as const) {
      expect(statusesIn(await sendRaw(gateway.app, head + headers + body))).toEqual(
        status === 413 && headers.includes('chunked') ? [413] : [status],
      );
    }
  },
);

test('nothing behind the last answer of a connection is executed', async () => {
  const head = `POST /graphql HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${size}\r\n\r\n`;
  const next = 'GET /health/live HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n';
  expect(statusesIn(await sendRaw(gateway.app, head, rest + next))).toEqual([413]);
});

const begin = async (line: string, headers: string, part = '', on = gateway) => {
  const address = addressOf(await baseOfApp(on.app));
  const head = `${line}\r\nHost: a\r\nContent-Type: application/json\r\n${headers}\r\n`;
  const socket = await sendPart(address, head + part);
  const [answer] = (await once(socket.setEncoding('latin1'), 'data')) as [string];
  return { socket, answer };
};
const expectation = 'Expect: 100-continue\r\n';

test.each([
  ['POST /nope HTTP/1.1', 'Content-Length: 5\r\n', 404],
  ['POST /api/outfits/ HTTP/1.1', 'Content-Length: 5\r\n', 401],
  ['POST /graphql HTTP/1.1', 'Authorization: Bearer x\r\nContent-Length: 1000000\r\n', 401],
  ['PUT /api/outfits/ HTTP/1.1', 'Transfer-Encoding: chunked\r\n', 405],
  ['POST /graphql HTTP/1.1', 'Content-Length: 1048577\r\n', 413],
])('a body that is still to come is refused at once: %s, %s', async (line, headers, status) => {
  const expected = `^HTTP/1\\.1 ${status} `;
  const { socket, answer } = await begin(line, headers + expectation);
  expect(answer).toMatch(new RegExp(`${expected}[^{]*Connection: close\r\n`, 'i'));
  await once(socket, 'close');
  const begun = await begin(line, headers, '1');
  expect(begun.answer).toMatch(new RegExp(expected));
  begun.socket.destroy();
});

test('a body that is still to come is refused at once where too much was sent', async () => {
  const limited = await openForTest('PostgreSQL', [], { RATE_LIMIT: '1/day' });
  await limited.get('/api/outfits/');
  const { socket, answer } = await begin(
    'POST /graphql HTTP/1.1',
    'Content-Length: 9\r\n',
    '1',
    limited,
  );
  expect(answer).toMatch(/^HTTP\/1\.1 429 /);
  socket.destroy();
});

test('a kept connection forgets a request whose body has come behind its answer', async () => {
  await baseOfApp(gateway.app);
  const accepted = once(gateway.app.server, 'connection');
  const { socket } = await begin('POST /nope HTTP/1.1', 'Content-Length: 5\r\n', '1');
  const [connection] = await accepted;
  const holdsRequest = () => Object.hasOwn(connection, 'destroySoon');
  await expect.poll(holdsRequest).toBe(true);
  socket.write('2345');
  await expect.poll(holdsRequest).toBe(false);
  socket.write('GET /health/live HTTP/1.1\r\nHost: a\r\n\r\n');
  expect(String(await once(socket, 'data'))).toMatch(/^HTTP\/1\.1 200 /);
  socket.destroy();
});

test('Expect: 100-continue gets 100 once it is let in', async () => {
  const length = `Content-Length: ${query.length}\r\n`;
  const { socket, answer } = await begin('POST /graphql HTTP/1.1', length + expectation);
  expect(answer).toBe('HTTP/1.1 100 Continue\r\n\r\n');
  socket.write(query);
  expect(String(await once(socket, 'data'))).toMatch(/^HTTP\/1\.1 200 [\s\S]*"count":45/);
  socket.destroy();
});

const half = async (bytes: string) => {
  const address = addressOf(await baseOfApp(gateway.app));
  const socket = connect({ ...address, allowHalfOpen: true }, () => socket.end(bytes));
  return (await socket.setEncoding('utf8').toArray()).join('');
};
const headers = 'HTTP/1.1\r\nHost: a\r\n';

test.each([
  [`GET /api/outfits/ ${headers}\r\n`, /"count":45/],
  [`POST /graphql HTTP/1.0\r\n${json}\r\n${query}`, /"count":45/],
  [`GET /outfits/ ${headers}Accept: text/html\r\n\r\n`, /<\/html>/],
  [`GET /a ${headers}\r\nGET /api/outfits/ ${headers}\r\n`, / 404 [\s\S]*"count":45/],
  [`POST /graphql ${headers}${json}\r\n{"qu`, /^HTTP\/1\.1 400 /],
])(
  'a connection that the client has half-closed gets its answer, read from the database: %j',
  async (bytes, expected) => {
    expect(await half(bytes)).toMatch(expected);
  },
);

test('a connection that the client has half-closed gets none that takes long, and its SQL is stopped', async () => {
  const url = databaseUrlOf(gateway.database.pool);
  const [watcher, unlock] = [await connectTo(url), await lockOutfits(url)];
  const before = log.lines().length;
  const answer = half(`GET /api/outfits/ ${headers}\r\n`);
  await expect.poll(() => countBlocked(watcher)).toBe(1);
  expect(await answer).toBe('');
  await expect.poll(() => countBlocked(watcher)).toBe(0);
  await unlock();
  await watcher.end();
  // A client that has left is no failure.
  expect(log.lines().slice(before)).toEqual([]);
});

test('each answer on a connection that the client has half-closed has its own time', async () => {
  const server = createServer(({ socket }, response) => {
    disconnectSignalOf(socket);
    setTimeout(() => response.end(), 300);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const socket = connect({ port: portOf(server), host: '127.0.0.1', allowHalfOpen: true });
  socket.end(`GET / ${headers}\r\n`.repeat(3));
  const answers = await socket.setEncoding('latin1').toArray();
  expect(statusesIn(answers.join(''))).toEqual([200, 200, 200]);
  server.close();
});

test('a connection that the client has half-closed ends a live answer', async () => {
  const live = `GET /graphql?query=subscription{outfits{count}} ${headers}Accept: text/event-stream\r\n\r\n`;
  expect(await half(live)).not.toContain('complete');
});

test('a connection is closed without an answer until a request has begun', async () => {
  const { app } = await openForTest('PostgreSQL');
  Object.assign(app.server, { headersTimeout: 500, requestTimeout: 500 });
  const [nothing, line, begun] = await Promise.all(
    ['', '\r\n', 'GET /'].map((b) => sendRaw(app, b)),
  );
  expect([nothing, line]).toEqual(['', '']);
  expect(begun).toMatch(/^HTTP\/1\.1 408 /);
  // An answered request whose body does not arrive gets no second answer.
  const refused = 'POST /nope HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{';
  expect(statusesIn(await sendRaw(app, refused))).toEqual([404]);
});

// More clients than there is room for: who is let in is served as ever, the others are told at once.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { openDatabase } from '../../src/database/database.ts';
import { migrate } from '../../src/database/migrations.ts';
import { generateOutfits } from '../../src/demo/generate.ts';
import { raiseSequences, saveOutfits } from '../../src/outfits/bulk.ts';
import { baseOf, environmentOf, runServer } from '../process.ts';
import { secret, signIn } from '../tokens.ts';
import {
  type Address,
  type Answer,
  addressOf,
  crowd,
  lockOutfits,
  readNothing,
  sendPart,
} from './clients.ts';

let environment: Record<string, string>;

beforeEach(async () => {
  environment = { ...(await environmentOf('PostgreSQL')), HOST: '127.0.0.1' };
  const databaseUrl = environment['DATABASE_URL'] ?? '';
  const database = await openDatabase({ databaseUrl, databasePoolMax: 1, dataDir: '' });
  await migrate(database.pool, () => {});
  await saveOutfits(database.pool, [...generateOutfits({ outfits: 500, users: 5 })]);
  await raiseSequences(database.pool);
  await database.close();
});

/** The time below which `share` of the answers were. */
function quantile(answers: readonly Answer[], share: number): number {
  const times = answers.map(({ milliseconds }) => milliseconds).sort((a, b) => a - b);
  return times[Math.floor(times.length * share)] ?? Number.POSITIVE_INFINITY;
}

async function load(address: Address, clients: number, milliseconds: number) {
  const { answers } = await crowd(
    address,
    clients,
    '/api/outfits/',
    AbortSignal.timeout(milliseconds),
  );
  return {
    taken: answers.filter(({ status }) => status === 200),
    refused: answers.filter(({ status }) => status === 503),
    count: answers.length,
  };
}

describe.each([
  ['from memory', {}],
  ['from the database', { CACHE_MAX_BYTES: '0' }],
] as const)('answers %s, at ten times capacity', (_name, settings) => {
  test('take at most three times as long as usual, and the excess gets 503 quickly', async () => {
    const capacity = 32;
    const server = runServer({
      ...environment,
      ...settings,
      MAX_CONCURRENT_REQUESTS: String(capacity),
    });
    const base = await baseOf(server);
    const address = addressOf(base);
    await load(address, capacity, 1_000);
    // Three rounds of each, since whatever else the machine does slows one or the other.
    const usual: number[] = [];
    const overloaded: number[] = [];
    const refused: Answer[] = [];
    for (let round = 0; round < 3; round += 1) {
      const calm = await load(address, capacity, 1_500);
      expect(calm.refused).toEqual([]);
      usual.push(quantile(calm.taken, 0.5));
      const crowded = await load(address, 10 * capacity, 2_500);
      expect(crowded.taken.length + crowded.refused.length).toBe(crowded.count);
      expect(crowded.taken.length).toBeGreaterThan(100);
      overloaded.push(quantile(crowded.taken, 0.5));
      refused.push(...crowded.refused);
    }
    expect(Math.min(...overloaded)).toBeLessThan(3 * Math.max(...usual));
    expect(refused.length).toBeGreaterThan(9 * capacity);
    expect(quantile(refused, 0.99)).toBeLessThan(2_000);
    for (const { head } of refused) expect(head).toMatch(/^retry-after: 1\r$/im);
    // The log has a line now and then, not one for each.
    expect(server.output().match(/"status":503/g)?.length).toBeLessThan(20);

    const after = await fetch(`${base}/api/outfits/`);
    expect(after.status).toBe(200);
    await after.arrayBuffer();
  });
});

describe('a slot is not held', () => {
  const startSmall = (settings = {}) =>
    baseOf(
      runServer({
        ...environment,
        MAX_CONCURRENT_REQUESTS: '2',
        PAGE_SIZE: '1000',
        ...settings,
      }),
    );
  const expectRoom = async (base: string) => {
    for (let time = 0; time < 3; time += 1) {
      const response = await fetch(`${base}/api/outfits/?ordering=id&time=${time}`);
      expect(response.status).toBe(200);
      await response.arrayBuffer();
    }
  };

  test('by uploads that do not end', async () => {
    const base = await startSmall();
    const head =
      'HTTP/1.1\r\nHost: shop.test\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{';
    const sockets = await Promise.all([
      ...Array.from({ length: 5 }, () => sendPart(addressOf(base), `POST /graphql ${head}`)),
      ...Array.from({ length: 5 }, () => sendPart(addressOf(base), `POST /api/outfits/ ${head}`)),
    ]);
    await sleep(300);
    await expectRoom(base);
    for (const socket of sockets) socket.destroy();
  });

  test('by clients that read nothing', async () => {
    const base = await startSmall();
    const sockets = await Promise.all(
      Array.from({ length: 5 }, () => readNothing(addressOf(base))),
    );
    await sleep(500);
    await expectRoom(base);
    for (const socket of sockets) socket.destroy();
  });

  test('by clients that have left', async () => {
    const base = await startSmall();
    for (let time = 0; time < 20; time += 1) {
      for (const target of [
        '/api/outfits/',
        '/graphql?query={outfits{count}}',
        '/graphql?query={',
      ]) {
        const text = `GET ${target} HTTP/1.1\r\nHost: shop.test\r\n\r\n`;
        (await sendPart(addressOf(base), text)).destroy();
      }
    }
    await sleep(500);
    await expectRoom(base);
  });

  test('by made-up tokens while the keys are fetched', async () => {
    const keys = createServer(() => {}).listen(0, '127.0.0.1');
    onTestFinished(() => {
      keys.closeAllConnections();
      keys.close();
    });
    await once(keys, 'listening');
    const { port } = keys.address() as AddressInfo;
    const base = await startSmall({ AUTH_JWKS_URL: `http://127.0.0.1:${port}/` });
    const header = Buffer.from('{"alg":"RS256","kid":"made-up"}').toString('base64url');
    const head = `HTTP/1.1\r\nHost: shop.test\r\nAuthorization: Bearer ${header}.e30.AAAA\r\n`;
    const body = '{"query":"{ __typename }"}';
    const withBody = `${head}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    for (const text of [`GET /api/outfits/ ${head}\r\n`, `POST /graphql ${withBody}`]) {
      const sockets = await Promise.all(
        Array.from({ length: 5 }, () => sendPart(addressOf(base), text)),
      );
      await sleep(200);
      await expectRoom(base);
      for (const socket of sockets) socket.destroy();
      // Until the keys are given up.
      await sleep(1_500);
    }
  });
});

test.each([
  [
    '/api/outfits/',
    { title: 'New', image_key: 'outfits/2b1d3c4e-0000-4000-8000-000000000001.png' },
  ],
  ['/graphql', { query: '{ outfits { count } }' }],
])('a slot is held by a POST to %s while it is worked on', async (path, content) => {
  const settings = { AUTH_JWT_SECRET: secret, MAX_CONCURRENT_REQUESTS: '1' };
  const base = await baseOf(runServer({ ...environment, ...settings }));
  const unlock = await lockOutfits(environment['DATABASE_URL'] ?? '');
  const headers = { 'content-type': 'application/json', ...(await signIn(1)) };
  const body = JSON.stringify(content);
  const running = fetch(`${base}${path}`, { method: 'POST', headers, body });
  await sleep(500);
  expect((await fetch(`${base}/api/outfits/`)).status).toBe(503);
  await unlock();
  expect((await running).ok).toBe(true);
  expect((await fetch(`${base}/api/outfits/`)).status).toBe(200);
});

test('is said in the form of REST and of GraphQL, and not by health', async () => {
  const server = runServer({ ...environment, MAX_CONCURRENT_REQUESTS: '1' });
  const base = await baseOf(server);
  const unlock = await lockOutfits(environment['DATABASE_URL'] ?? '');
  const running = fetch(`${base}/api/outfits/`);
  await sleep(500);
  const rest = await fetch(`${base}/api/outfits/`);
  expect(rest.status).toBe(503);
  expect(await rest.json()).toEqual({ detail: 'The service is busy, try again later.' });
  expect(Object.fromEntries(rest.headers)).toMatchObject({
    allow: 'GET, POST, HEAD, OPTIONS',
    vary: 'Accept',
    'content-type': 'application/json',
    'retry-after': '1',
    'x-request-id': expect.any(String),
  });
  const graphql = await fetch(`${base}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"query":"{ __typename }"}',
  });
  expect(graphql.status).toBe(503);
  expect(graphql.headers.get('retry-after')).toBe('1');
  const message = 'The service is busy, try again later.';
  expect(await graphql.json()).toEqual({
    errors: [{ message, extensions: { code: 'SERVICE_UNAVAILABLE' } }],
  });
  expect((await fetch(`${base}/health/live`)).status).not.toBe(503);
  await unlock();
  expect((await running).status).toBe(200);
});

test('a client that sends its request too slowly is cut off', async () => {
  const server = runServer(environment);
  const { host, port } = addressOf(await baseOf(server));
  const socket = connect({ host, port });
  const received: string[] = [];
  socket.setEncoding('utf8').on('data', (chunk: string) => received.push(chunk));
  socket.write('GET /api/outfits/ HTTP/1.1\r\n');
  const drip = setInterval(() => socket.write('x'), 500);
  await once(socket, 'close');
  clearInterval(drip);
  expect(received.join('')).toMatch(/^HTTP\/1\.1 408 /);
});

// Who takes a place, and who waits for one: what has left, is not there yet or reads nothing holds none, and a burst waits
// its turn.
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { baseOf, demoEnvironment, runServer } from '../support/cli/process.ts';
import { connectTo, databaseUrlOf } from '../support/databases/connections.ts';
import {
  addressOf,
  countBlocked,
  lockOutfits,
  readNothing,
  sendPart,
} from '../support/faults/clients.ts';
import { send } from '../support/faults/load.ts';
import { buildObserved, openForTest } from '../support/gateway.ts';
import { baseOfApp } from '../support/http/event-stream.ts';
import { closeServer, listen } from '../support/http/listen.ts';
import { secret, signIn } from '../support/http/tokens.ts';

const rows = [...generateOutfits({ outfits: 1_000, users: 9 })];

/** A gateway that listens, and what it says of places. */
async function open(settings: Record<string, string>) {
  const opened = await openForTest('PostgreSQL', rows, settings);
  const { app, metrics } = await buildObserved(opened);
  const base = await baseOfApp(app);
  const url = databaseUrlOf(opened.database.pool);
  const watcher = await connectTo(url);
  onTestFinished(() => watcher.end());
  const isIn = async (line: string) => (await metrics()).includes(`\n${line}\n`);
  return {
    base,
    lock: async () => {
      const unlock = await lockOutfits(url);
      onTestFinished(unlock);
      return unlock;
    },
    blocked: () => countBlocked(watcher),
    untilBlocked: () => expect.poll(() => countBlocked(watcher)).toBe(1),
    untilWaiting: (count: number) =>
      expect.poll(() => isIn(`gateway_requests_waiting ${count}`)).toBe(true),
    read: async (query = '', signal?: AbortSignal) => {
      const response = await fetch(`${base}/api/outfits/${query}`, signal ? { signal } : {});
      await response.arrayBuffer();
      return response.status;
    },
  };
}

test('a place is not held by who sends or reads nothing more, who has left, or by made-up tokens', async () => {
  const keys = createServer(() => {});
  const port = await listen(keys);
  onTestFinished(() => closeServer(keys));
  const { base, read } = await open({
    AUTH_JWKS_URL: `http://127.0.0.1:${port}/`,
    MAX_CONCURRENT_REQUESTS: '2',
    PAGE_SIZE: '1000',
  });
  const address = addressOf(base);
  const sockets: Socket[] = [];
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
  });
  const expectRoom = async () => {
    await sleep(300);
    for (let time = 0; time < 3; time += 1) {
      expect(await read(`?ordering=id&time=${sockets.length}${time}`)).toBe(200);
    }
  };
  /** Five times each. */
  const sendParts = async (...texts: string[]) => {
    const sending = Array.from({ length: 5 }, () => texts.map((text) => sendPart(address, text)));
    sockets.push(...(await Promise.all(sending.flat())));
  };

  const host = 'HTTP/1.1\r\nHost: shop.test\r\n';
  const half = `${host}Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{`;
  await sendParts(`POST /graphql ${half}`, `POST /api/outfits/ ${half}`);
  await expectRoom();

  sockets.push(...(await Promise.all([1, 2, 3, 4, 5].map(() => readNothing(address)))));
  await expectRoom();

  for (let time = 0; time < 20; time += 1) {
    for (const target of ['/api/outfits/', '/graphql?query={outfits{count}}', '/graphql?query={']) {
      (await sendPart(address, `GET ${target} ${host}\r\n`)).destroy();
    }
  }
  await expectRoom();

  const header = Buffer.from('{"alg":"RS256","kid":"made-up"}').toString('base64url');
  const head = `${host}Authorization: Bearer ${header}.e30.AAAA\r\n`;
  const body = '{"query":"{ __typename }"}';
  const length = `Content-Type: application/json\r\nContent-Length: ${body.length}`;
  await sendParts(`GET /api/outfits/ ${head}\r\n`, `POST /graphql ${head}${length}\r\n\r\n${body}`);
  await expectRoom();
});

/** By their number alone, not by their time on a busy machine, some are told that it is in vain. */
const onePlace = {
  AUTH_JWT_SECRET: secret,
  MAX_CONCURRENT_REQUESTS: '1',
  REQUEST_TIMEOUT: '10m',
};

test.each([
  ['/api/outfits/', { image_key: 'outfits/2b1d3c4e-0000-4000-8000-000000000001.png' }],
  ['/graphql', { query: '{ outfits { count } }' }],
])(
  'a POST to %s holds its place while it is worked on: others wait their turn, or are told that it is in vain',
  async (path, content) => {
    const { base, lock, blocked, untilBlocked, untilWaiting, read } = await open(onePlace);
    expect(await read('?page=2')).toBe(200);
    const unlock = await lock();
    const headers = { 'content-type': 'application/json', ...(await signIn(1)) };
    const body = JSON.stringify(content);
    const running = fetch(`${base}${path}`, { method: 'POST', headers, body });
    await untilBlocked();
    const waiting = Promise.all(Array.from({ length: 8 }, (_, page) => read(`?page=${3 + page}`)));
    await untilWaiting(8);
    expect(await blocked()).toBe(1);

    const message = 'The service is busy, try again later.';
    const rest = await fetch(`${base}/api/outfits/`);
    expect(rest.status).toBe(503);
    expect(await rest.json()).toEqual({ detail: message });
    expect(Object.fromEntries(rest.headers)).toMatchObject({
      allow: 'GET, POST, HEAD, OPTIONS',
      vary: 'Accept',
      'content-type': 'application/json',
      'retry-after': '1',
      'x-request-id': expect.any(String),
    });
    const graphql = await send(base, '{ outfits(page: 2) { count } }');
    expect(graphql).toMatchObject({ status: 503, retryAfter: '1' });
    expect(JSON.parse(graphql.body)).toEqual({
      errors: [{ message, extensions: { code: 'SERVICE_UNAVAILABLE' } }],
    });
    // Neither a health check, nor OPTIONS, nor an answer from memory needs a place.
    expect((await fetch(`${base}/health/live`)).status).toBe(200);
    for (const free of ['/api/outfits/', '/graphql']) {
      expect((await fetch(`${base}${free}`, { method: 'OPTIONS' })).ok).toBe(true);
    }
    expect(await read('?page=2')).toBe(200);

    await unlock();
    expect((await running).ok).toBe(true);
    expect(new Set(await waiting)).toEqual(new Set([200]));
    expect(await read()).toBe(200);
  },
);

test('who has left has left the queue too', async () => {
  const { lock, untilBlocked, untilWaiting, read } = await open(onePlace);
  const unlock = await lock();
  const running = read();
  await untilBlocked();
  for (let round = 0; round < 3; round++) {
    const client = new AbortController();
    const left = Array.from({ length: 8 }, (_, page) =>
      read(`?page=${2 + page}`, client.signal).catch(() => 'left'),
    );
    await untilWaiting(8);
    client.abort();
    expect(new Set(await Promise.all(left))).toEqual(new Set(['left']));
    await untilWaiting(0);
  }
  const waiting = read('?page=2');
  await untilWaiting(1);
  await unlock();
  expect(await running).toBe(200);
  expect(await waiting).toBe(200);
});

test('a queue for connections that is longer than the connect timeout does not count as an outage', async () => {
  const settings = { CACHE_MAX_SIZE: '0', DATABASE_POOL_MAX: '1', REQUEST_TIMEOUT: '60s' };
  const { lock, read } = await open(settings);
  const unlock = await lock();
  const waiting = Array.from({ length: 20 }, () => read());
  await sleep(6_000);
  await unlock();
  for (const status of await Promise.all(waiting)) expect(status).toBe(200);
});

const limitFile = '/proc/sys/net/core/somaxconn';
/** Connections that the system itself lets wait to be accepted; macOS: 128. */
const systemLimit = existsSync(limitFile) ? Number(readFileSync(limitFile, 'utf8')) : 128;

test('a burst of 1,000 requests for different pages is answered whole', async () => {
  // Nobody is told that it is in vain, however busy the machine is.
  const { base } = await open({ PAGE_SIZE: '1', REQUEST_TIMEOUT: '120s' });
  const paths = rows.map((_, page) => `/api/outfits/?page=${1 + page}`);
  const answers = await Promise.all(paths.map((path) => send(base, path)));
  expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
});

test.skipIf(systemLimit < 2_000)(
  'a burst is let in while the process cannot look at it yet',
  async () => {
    const server = runServer({ ...(await demoEnvironment()), HOST: '127.0.0.1' });
    const address = addressOf(await baseOf(server));
    server.child.kill('SIGSTOP');
    const request = 'GET /api/outfits/ HTTP/1.1\r\nHost: shop.test\r\nConnection: close\r\n\r\n';
    let letIn = 0;
    const clients = Array.from({ length: 2_000 }, async () => {
      const socket = await sendPart(address, request);
      letIn += 1;
      return socket;
    });
    // A connection beyond the backlog is retried by the system for as long as the process is stopped.
    await expect.poll(() => letIn).toBe(2_000);
    server.child.kill('SIGCONT');
    const answers = clients.map(async (client) => {
      const socket = await client;
      const [first] = await once(socket, 'data');
      socket.resume();
      return String(first).slice(0, 15);
    });
    expect(new Set(await Promise.all(answers))).toEqual(new Set(['HTTP/1.1 200 OK']));
  },
);

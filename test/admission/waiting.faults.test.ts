// Who takes a place, and who waits for one: what has left, is not there yet or reads nothing holds none, and a burst waits
// its turn.
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import {
  baseOf,
  demoEnvironment,
  metricsOf,
  migratedEnvironmentOf,
  type Run,
  runServer,
} from '../support/cli/process.ts';
import { connectTo } from '../support/databases/connections.ts';
import {
  addressOf,
  countBlocked,
  lockOutfits,
  readNothing,
  sendPart,
} from '../support/faults/clients.ts';
import { send } from '../support/faults/load.ts';
import { databaseKinds } from '../support/gateway.ts';
import { closeServer, listen } from '../support/http/listen.ts';
import { secret, signIn } from '../support/http/tokens.ts';

let environment: Record<string, string>;

beforeEach(async () => {
  environment = { ...(await demoEnvironment()), HOST: '127.0.0.1' };
});

test('a place is not held by who sends or reads nothing more, who has left, or by made-up tokens', async () => {
  const keys = createServer(() => {});
  const port = await listen(keys);
  onTestFinished(() => closeServer(keys));
  const base = await baseOf(
    runServer({
      ...environment,
      AUTH_JWKS_URL: `http://127.0.0.1:${port}/`,
      MAX_CONCURRENT_REQUESTS: '2',
      PAGE_SIZE: '1000',
    }),
  );
  const address = addressOf(base);
  const sockets: Socket[] = [];
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
  });
  const expectRoom = async () => {
    await sleep(300);
    for (let time = 0; time < 3; time += 1) {
      const response = await fetch(
        `${base}/api/outfits/?ordering=id&time=${sockets.length}${time}`,
      );
      expect(response.status).toBe(200);
      await response.arrayBuffer();
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

describe('with one place, which is taken', () => {
  let server: Run;
  let base: string;
  let unlock: () => Promise<void>;
  let watcher: pg.Client;

  beforeEach(async () => {
    watcher = await connectTo(environment['DATABASE_URL']);
    const settings = {
      AUTH_JWT_SECRET: secret,
      CACHE_MAX_SIZE: '0',
      MAX_CONCURRENT_REQUESTS: '1',
      METRICS_PORT: '0',
      // By their number alone, not by their time on a busy machine, some are told that it is in vain.
      REQUEST_TIMEOUT: '10m',
    };
    server = runServer({ ...environment, ...settings });
    base = await baseOf(server);
    unlock = await lockOutfits(environment['DATABASE_URL'] ?? '');
  });
  afterEach(async () => {
    await unlock();
    await watcher.end();
  });

  const untilTaken = () => expect.poll(() => countBlocked(watcher)).toBe(1);
  const untilWaiting = async (count: number) =>
    expect.poll(await metricsOf(server)).toContain(`\ngateway_requests_waiting ${count}\n`);
  const read = async (signal?: AbortSignal) => {
    const response = await fetch(`${base}/api/outfits/`, signal ? { signal } : {});
    await response.arrayBuffer();
    return response.status;
  };

  test.each([
    ['/api/outfits/', { image_key: 'outfits/2b1d3c4e-0000-4000-8000-000000000001.png' }],
    ['/graphql', { query: '{ outfits { count } }' }],
  ])(
    'a POST to %s holds it while it is worked on: others wait their turn, or are told that it is in vain',
    async (path, content) => {
      const headers = { 'content-type': 'application/json', ...(await signIn(1)) };
      const body = JSON.stringify(content);
      const running = fetch(`${base}${path}`, { method: 'POST', headers, body });
      await untilTaken();
      const waiting = Promise.all(Array.from({ length: 8 }, () => read()));
      await untilWaiting(8);
      expect(await countBlocked(watcher)).toBe(1);

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
      const graphql = await send(base, '{ outfits { count } }');
      expect(graphql).toMatchObject({ status: 503, retryAfter: '1' });
      expect(JSON.parse(graphql.body)).toEqual({
        errors: [{ message, extensions: { code: 'SERVICE_UNAVAILABLE' } }],
      });
      expect((await fetch(`${base}/health/live`)).status).toBe(200);
      for (const free of ['/api/outfits/', '/graphql']) {
        expect((await fetch(`${base}${free}`, { method: 'OPTIONS' })).ok).toBe(true);
      }

      await unlock();
      expect((await running).ok).toBe(true);
      expect(new Set(await waiting)).toEqual(new Set([200]));
      expect(await read()).toBe(200);
    },
  );

  test('who has left has left the queue too', async () => {
    const running = read();
    await untilTaken();
    for (let round = 0; round < 3; round++) {
      const client = new AbortController();
      const left = Array.from({ length: 8 }, () => read(client.signal).catch(() => 'left'));
      await untilWaiting(8);
      client.abort();
      expect(new Set(await Promise.all(left))).toEqual(new Set(['left']));
      await untilWaiting(0);
    }
    const waiting = read();
    await untilWaiting(1);
    await unlock();
    expect(await running).toBe(200);
    expect(await waiting).toBe(200);
  });
});

test('a queue for connections that is longer than the connect timeout does not count as an outage', async () => {
  const settings = { CACHE_MAX_SIZE: '0', DATABASE_POOL_MAX: '1', REQUEST_TIMEOUT: '60s' };
  const base = await baseOf(runServer({ ...environment, ...settings }));
  const unlock = await lockOutfits(environment['DATABASE_URL'] ?? '');
  const waiting = Array.from({ length: 20 }, () => send(base, '/api/outfits/'));
  await sleep(6_000);
  await unlock();
  for (const { status } of await Promise.all(waiting)) expect(status).toBe(200);
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

const limitFile = '/proc/sys/net/core/somaxconn';
/** Connections that the system itself lets wait to be accepted; macOS: 128. */
const systemLimit = existsSync(limitFile) ? Number(readFileSync(limitFile, 'utf8')) : 128;

const orderings = ['id', 'like_count', 'created', 'modified'].flatMap((name) => [name, `-${name}`]);

test.each(databaseKinds)(
  'a burst of 2,000 requests for the first page, and of 1,000 for different pages, is answered whole: %s',
  async (kind) => {
    const own = kind === 'embedded' ? await migratedEnvironmentOf(kind) : environment;
    // 125 pages in each order, which the demonstration set has.
    // Nobody is told that it is in vain, however busy the machine is.
    const settings = { HOST: '127.0.0.1', PAGE_SIZE: '4', REQUEST_TIMEOUT: '120s' };
    const base = await baseOf(runServer({ ...own, ...settings }));
    const pages = Array.from({ length: 125 }, (_, page) => `page=${1 + page}`);
    for (const paths of [
      Array<string>(2_000).fill('/api/outfits/'),
      orderings.flatMap((by) => pages.map((page) => `/api/outfits/?ordering=${by}&${page}`)),
    ]) {
      const answers = await Promise.all(paths.map((path) => send(base, path)));
      expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
    }
  },
);

test.skipIf(systemLimit < 2_000)(
  'a burst is let in while the process cannot look at it yet',
  async () => {
    const server = runServer({ ...environment, HOST: '127.0.0.1' });
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

test('a burst after a time without requests is answered whole', async () => {
  const settings = { PAGE_SIZE: '1', REQUEST_TIMEOUT: '20s' };
  const base = await baseOf(runServer({ ...environment, ...settings }));
  // More than half of REQUEST_TIMEOUT: nothing has ended for so long since nothing was asked.
  await sleep(11_000);
  const paths = Array.from({ length: 500 }, (_, page) => `/api/outfits/?page=${1 + page}`);
  const answers = await Promise.all(paths.map((path) => send(base, path)));
  expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
});

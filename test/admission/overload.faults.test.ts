// More clients than there is room for: a burst waits its turn; in an overload, who is let in is served
// as ever, and the others are told at once. Answers from memory need no room.
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, expect, test } from 'vitest';
import { baseOf, migratedEnvironmentOf, runServer } from '../support/cli/process.ts';
import {
  type Address,
  type Answer,
  addressOf,
  keepBusy,
  sendPart,
} from '../support/faults/clients.ts';
import { send } from '../support/faults/load.ts';
import { makeOutfits } from '../support/faults/outfits.ts';
import { databaseKinds } from '../support/gateway.ts';

let environment: Record<string, string>;

beforeEach(async () => {
  environment = await makeOutfits();
});

/** The time below which `share` of the answers were. */
function quantile(answers: readonly Answer[], share: number): number {
  const times = answers.map(({ milliseconds }) => milliseconds).sort((a, b) => a - b);
  return times[Math.floor(times.length * share)] ?? Number.POSITIVE_INFINITY;
}

async function load(address: Address, clients: number, milliseconds: number) {
  const over = AbortSignal.timeout(milliseconds);
  const { answers } = await keepBusy(address, clients, '/api/outfits/', over);
  return {
    taken: answers.filter(({ status }) => status === 200),
    refused: answers.filter(({ status }) => status === 503),
    count: answers.length,
  };
}

const capacity = 32;

const limitFile = '/proc/sys/net/core/somaxconn';
/** Connections that the system itself lets wait to be accepted; macOS: 128. */
const systemLimit = existsSync(limitFile) ? Number(readFileSync(limitFile, 'utf8')) : 128;

test('answers from memory are given to all at ten times capacity', async () => {
  const settings = { MAX_CONCURRENT_REQUESTS: String(capacity) };
  const base = await baseOf(runServer({ ...environment, ...settings }));
  const flooded = await load(addressOf(base), 10 * capacity, 2_500);
  expect(flooded.taken.length).toBeGreaterThan(9 * capacity);
  expect(flooded.taken).toHaveLength(flooded.count);
});

test('at ten times capacity, answers take at most three times as long as usual, and the excess gets 503 quickly', async () => {
  const settings = { CACHE_MAX_SIZE: '0', MAX_CONCURRENT_REQUESTS: String(capacity) };
  const server = runServer({ ...environment, ...settings });
  const base = await baseOf(server);
  const address = addressOf(base);
  await load(address, capacity, 1_000);
  // Three rounds of each, since whatever else the machine does slows one or the other.
  const begin = performance.now();
  const usual: number[] = [];
  const overloaded: number[] = [];
  const refused: Answer[] = [];
  for (let round = 0; round < 3; round += 1) {
    const calm = await load(address, capacity, 1_500);
    expect(calm.refused).toEqual([]);
    usual.push(quantile(calm.taken, 0.5));
    const flooded = await load(address, 10 * capacity, 4_000);
    expect(flooded.taken.length + flooded.refused.length).toBe(flooded.count);
    expect(flooded.taken.length).toBeGreaterThan(100);
    // It begins as a burst, which waits its turn.
    overloaded.push(quantile(flooded.taken.slice(flooded.taken.length / 2), 0.5));
    refused.push(...flooded.refused);
  }
  expect(Math.min(...overloaded)).toBeLessThan(3 * Math.max(...usual));
  expect(refused.length).toBeGreaterThan(9 * capacity);
  // Not after having waited in vain: half of REQUEST_TIMEOUT is the longest that anyone waits.
  expect(quantile(refused, 0.99)).toBeLessThan(5_000);
  for (const { head } of refused) expect(head).toMatch(/^retry-after: 1\r$/im);
  // The log has a line a second, not one for each.
  const seconds = (performance.now() - begin) / 1_000;
  expect(server.output().match(/"status":503/g)?.length).toBeLessThan(seconds + 2);

  expect(await send(base, '/api/outfits/')).toMatchObject({ status: 200 });
});

const orderings = ['id', 'like_count', 'created', 'modified'].flatMap((name) => [name, `-${name}`]);

test.each(databaseKinds)(
  'a burst of 2,000 requests for the first page, and of 1,000 for different pages, is answered whole: %s',
  async (kind) => {
    const own = kind === 'embedded' ? await migratedEnvironmentOf(kind) : environment;
    // 125 pages in each order: of 500 outfits, and of more than 500 in the demonstration set.
    const base = await baseOf(runServer({ ...own, HOST: '127.0.0.1', PAGE_SIZE: '4' }));
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
  const base = await baseOf(runServer({ ...environment, PAGE_SIZE: '1' }));
  // More than half of REQUEST_TIMEOUT: nothing has ended for so long since nothing was asked.
  await sleep(6_000);
  const paths = Array.from({ length: 500 }, (_, page) => `/api/outfits/?page=${1 + page}`);
  const answers = await Promise.all(paths.map((path) => send(base, path)));
  expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
});

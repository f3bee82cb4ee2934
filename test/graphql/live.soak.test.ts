// Thousands of streams on few lists: idle they cost next to nothing, and a change reaches them all.
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from 'graphql-ws';
import pg from 'pg';
import { expect, test } from 'vitest';
import { type CloseEvent, WebSocket } from 'ws';
import { baseOf, demoEnvironment, findFreePort, runServer, stop } from '../support/cli/process.ts';
import { openAcknowledged } from '../support/http/socket.ts';
import { secret, signIn } from '../support/http/tokens.ts';

const streams = 5_000;
const lists = 20;
/** Clock ticks of Linux in a second, in which it counts the time of a process. */
const ticks = 100;

interface Reader {
  readonly socket: Socket;
  events: number;
  /** What has come since the last round began. */
  text: string;
}

async function subscribe(
  port: number,
  page: number,
  fields = 'databaseId title likes',
  headers: Record<string, string> = {},
  accept = 'text/event-stream',
): Promise<Reader> {
  const query = `subscription { outfits(page: ${page}) { count results { ${fields} } } }`;
  const target = `/graphql?query=${encodeURIComponent(query)}`;
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const socket = connect(port, '127.0.0.1');
  const reader: Reader = { socket, events: 0, text: '' };
  socket.write(
    `GET ${target} HTTP/1.1\r\nHost: a.test\r\nAccept: ${accept}\r\n${lines.join('')}\r\n`,
  );
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    reader.events += chunk.split('event: next').length - 1;
    reader.text += chunk;
  });
  socket.on('error', () => {});
  await new Promise<void>((settle, reject) => {
    socket.once('data', () => settle());
    socket.once('close', () => reject(new Error(`closed: ${reader.text}`)));
  });
  return reader;
}

/** Seconds of work that a process has done. */
function workOf(pid: number | undefined): number {
  const [, rest = ''] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ');
  const fields = rest.split(' ');
  return (Number(fields[11]) + Number(fields[12])) / ticks;
}

/** MiB that a process has. */
function memoryOf(pid: number | undefined): number {
  const [, kib] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Math.round(Number(kib) / 1024);
}

/** Milliseconds until all readers have what says `text`. */
const countLate = (readers: readonly Reader[], text: string) =>
  readers.filter((reader) => !reader.text.includes(text)).length;

async function untilAllRead(readers: readonly Reader[], text: string): Promise<number> {
  const start = performance.now();
  const late = () => countLate(readers, text);
  while (late() > 0 && performance.now() - start < 60_000) await sleep(10);
  expect(late()).toBe(0);
  return Math.round(performance.now() - start);
}

test(`a change reaches ${streams} streams of ${lists} lists, each once`, async () => {
  const environment = await demoEnvironment();
  const server = runServer({ ...environment, HOST: '127.0.0.1' });
  const base = await baseOf(server);
  const port = Number(new URL(base).port);
  const client = new pg.Client(environment['DATABASE_URL']);
  await client.connect();

  const readers: Reader[] = [];
  const opening = performance.now();
  for (let index = 0; index < streams; index += 100) {
    const some = Array.from({ length: 100 }, (_, other) =>
      subscribe(port, ((index + other) % lists) + 1),
    );
    readers.push(...(await Promise.all(some)));
  }
  console.log(`${streams} streams opened in ${Math.round(performance.now() - opening)} ms`);
  await sleep(1_000);
  const work = workOf(server.child.pid);
  await sleep(4_000);
  console.log(`idle for 4 s: ${(workOf(server.child.pid) - work).toFixed(2)} s of work`);
  console.log(`memory: ${memoryOf(server.child.pid)} MiB`);
  expect(readers.filter(({ events }) => events !== 1)).toHaveLength(0);

  const rounds: number[] = [];
  for (let round = 1; round <= 3; round++) {
    const before = new Map(readers.map((reader) => [reader, reader.events]));
    for (const reader of readers) reader.text = '';
    await client.query('UPDATE outfits SET title = $1', [`Round ${round} ends`]);
    rounds.push(await untilAllRead(readers, `Round ${round} ends`));
    // One event for one commit, and none again for what others commit.
    await sleep(1_000);
    const wrong = readers.filter((reader) => reader.events !== (before.get(reader) ?? 0) + 1);
    expect(wrong).toHaveLength(0);
  }
  console.log(`milliseconds from a commit to the last reader: ${rounds.join(', ')}`);
  expect(await stop(server)).toBe(0);
  await client.end();
  for (const { socket } of readers) socket.destroy();
}, 300_000);

const viewers = 1_000;
test(`a change reaches ${viewers} viewers with answers of their own, and delays no other client`, async () => {
  const environment = await demoEnvironment();
  const settings = { ...environment, HOST: '127.0.0.1', AUTH_JWT_SECRET: secret };
  const server = runServer(settings);
  const base = await baseOf(server);
  const port = Number(new URL(base).port);
  const client = new pg.Client(environment['DATABASE_URL']);
  await client.connect();

  const own: Reader[] = [];
  for (let index = 0; index < viewers; index += 50) {
    const some = Array.from({ length: 50 }, async (_, other) =>
      subscribe(port, 1, 'title likes viewerHasLiked', await signIn(index + other + 1)),
    );
    own.push(...(await Promise.all(some)));
  }
  // They come last, and so stand behind all the others.
  const shared = await Promise.all(
    Array.from({ length: lists }, (_, page) => subscribe(port, page + 1)),
  );
  const before = memoryOf(server.child.pid);
  const work = workOf(server.child.pid);
  const rounds: object[] = [];
  for (let round = 1; round <= 3; round++) {
    for (const reader of [...own, ...shared]) reader.text = '';
    await client.query('UPDATE outfits SET title = $1', [`Round ${round} ends`]);
    const reached = {
      own: untilAllRead(own, `Round ${round} ends`),
      shared: untilAllRead(shared, `Round ${round} ends`),
    };
    const ownThen = reached.shared.then(() => countLate(own, `Round ${round} ends`));
    const slowest = await askUntil(base, reached.own);
    rounds.push({ own: await reached.own, shared: await reached.shared, slowest });
    // What is for all does not wait for what is for each.
    expect(await ownThen).toBeGreaterThan(0);
    await sleep(500);
  }
  console.log(
    'milliseconds from a commit to the last reader, and of the slowest request meanwhile:',
    rounds,
  );
  console.log(`work: ${(workOf(server.child.pid) - work).toFixed(1)} s`);
  console.log(`memory: ${before} MiB before, ${memoryOf(server.child.pid)} MiB after`);
  expect(await stop(server)).toBe(0);
  await client.end();
  for (const { socket } of [...own, ...shared]) socket.destroy();
}, 300_000);

/** Asks for pages, one after the other, until something has happened; milliseconds of the slowest. */
async function askUntil(base: string, end: Promise<unknown>): Promise<number> {
  let isOver = false;
  end.finally(() => {
    isOver = true;
  });
  let slowest = 0;
  while (!isOver) {
    const start = performance.now();
    const response = await fetch(`${base}/api/outfits/?page=${1 + (Math.round(start) % 50)}`);
    expect(response.status).toBe(200);
    await response.text();
    slowest = Math.max(slowest, Math.round(performance.now() - start));
  }
  return slowest;
}

const perTransport = 1_000;
test(`${3 * perTransport} subscriptions over three transports: none gets what is older, none misses the last, none is left`, async () => {
  const metricsPort = await findFreePort();
  const environment = await demoEnvironment();
  const server = runServer({
    ...environment,
    ...{ HOST: '127.0.0.1', WORKERS: '2', METRICS_PORT: String(metricsPort) },
  });
  const base = await baseOf(server);
  const port = Number(new URL(base).port);
  const client = new pg.Client(environment['DATABASE_URL']);
  await client.connect();
  const commit = (round: number) =>
    client.query('UPDATE outfits SET title = $1', [`Round ${round} ends`]);
  await commit(0);

  const fields = 'title';
  const parts = 'multipart/mixed;subscriptionSpec=1.0';
  const readers: Reader[] = [];
  for (let index = 0; index < perTransport; index += 50) {
    const page = (index / 50) % lists;
    const some = Array.from({ length: 50 }, () => [
      subscribe(port, page + 1, fields),
      subscribe(port, page + 1, fields, {}, parts),
    ]);
    readers.push(...(await Promise.all(some.flat())));
  }
  const sockets = await Promise.all(Array.from({ length: 20 }, () => openAcknowledged(base)));
  const operations = perTransport / sockets.length;
  for (const { subscribe: send } of sockets) {
    for (let index = 0; index < operations; index++) {
      send(`${index}`, `subscription { outfits(page: ${index + 1}) { results { title } } }`);
    }
  }
  const open = async () => {
    const text = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
    return [...text.matchAll(/^gateway_streams_open\{transport="\w+"\} (\d+)$/gm)].map(toNumber);
  };
  await expect.poll(open, { timeout: 30_000 }).toEqual(Array(3).fill(perTransport));

  const rounds = 30;
  for (let round = 1; round <= rounds; round++) {
    await commit(round);
    await sleep(Math.random() * 400);
  }
  const roundsIn = (text: string) =>
    [...text.matchAll(/"results":\[\{"title":"Round (\d+) /g)].map(toNumber);
  const seen = () => [
    ...readers.map(({ text }) => roundsIn(text)),
    ...sockets.flatMap(({ messages }) =>
      Array.from({ length: operations }, (_, index) =>
        roundsIn(JSON.stringify(messages.filter(({ id }) => id === `${index}`))),
      ),
    ),
  ];
  const late = () => seen().filter((list) => list.at(-1) !== rounds).length;
  await expect.poll(late, { timeout: 60_000, interval: 1_000 }).toBe(0);
  const isRising = (list: number[]) =>
    list.every((round, at) => at === 0 || round > Number(list[at - 1]));
  expect(seen().filter((list) => !isRising(list))).toEqual([]);
  console.log(
    `${readers.length + perTransport} readers, memory: ${memoryOf(server.child.pid)} MiB`,
  );

  for (const { socket } of readers) socket.destroy();
  for (const [at, { socket }] of sockets.entries()) at % 2 ? socket.terminate() : socket.close();
  await expect.poll(open, { timeout: 30_000 }).toEqual([0, 0, 0]);
  expect(await stop(server)).toBe(0);
  await client.end();
}, 300_000);

test('a rolling restart closes WebSockets, whose subscriptions go on', async () => {
  const environment = await demoEnvironment();
  const server = runServer({ ...environment, WORKERS: '2' });
  const { port } = new URL(await baseOf(server));
  const client = new pg.Client(environment['DATABASE_URL']);
  await client.connect();
  const readers = [1, 2, 3, 4].map(() => {
    const closed: number[] = [];
    const titles: unknown[] = [];
    const socket = createClient({
      url: `ws://127.0.0.1:${port}/graphql`,
      webSocketImpl: WebSocket,
      shouldRetry: () => true,
      on: { closed: (event) => closed.push((event as CloseEvent).code) },
    });
    const query = 'subscription { outfits { results { title } } }';
    const next = ({ data }: { data?: unknown }) =>
      titles.push(
        (data as { outfits: { results: { title: string }[] } }).outfits.results[0]?.title,
      );
    socket.subscribe({ query }, { next, error: (error) => titles.push(error), complete: () => {} });
    return { socket, closed, titles };
  });
  const lastTitles = () => readers.map(({ titles }) => titles.at(-1));
  await expect.poll(lastTitles, { timeout: 20_000 }).not.toContain(undefined);
  server.child.kill('SIGHUP');
  const codes = () => readers.map(({ closed }) => closed[0]);
  await expect.poll(codes, { timeout: 60_000 }).not.toContain(undefined);
  for (const code of codes()) expect([1012, 1013]).toContain(code);
  await client.query("UPDATE outfits SET title = 'Afterwards'");
  await expect.poll(lastTitles, { timeout: 60_000 }).toEqual(Array(4).fill('Afterwards'));
  for (const { socket } of readers) await socket.dispose();
  expect(await stop(server)).toBe(0);
  await client.end();
}, 300_000);

const toNumber = ([, number]: RegExpMatchArray) => Number(number);

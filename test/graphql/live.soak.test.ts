// Thousands of streams on few lists: a change reaches them all, and delays nobody else.
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { baseOf, demoEnvironment, metricsOf, runServer, stop } from '../support/cli/process.ts';
import { connectForTest, execute } from '../support/databases/connections.ts';
import { openStream, type Stream } from '../support/http/event-stream.ts';
import { type Message, openAcknowledged } from '../support/http/socket.ts';
import { secret, signIn } from '../support/http/tokens.ts';

const lists = 20;

/** A server with the demonstration set, all of whose titles are set to `Round 1`, say. */
async function start(settings: Record<string, string>) {
  const environment = await demoEnvironment();
  const server = runServer({ ...environment, HOST: '127.0.0.1', ...settings });
  const base = await baseOf(server);
  const { DATABASE_URL = '' } = environment;
  const commit = (round: number) =>
    execute(DATABASE_URL, `UPDATE outfits SET title = 'Round ${round}'`);
  return { server, base, commit, url: DATABASE_URL };
}

const subscribe = (
  base: string,
  page: number,
  headers: Record<string, string> = {},
  fields = 'title',
) => {
  const query = `subscription { outfits(page: ${page}) { results { ${fields} } } }`;
  return openStream(base, query, { headers, method: 'GET' });
};

/** Opens many, 50 at a time. */
async function openMany<Opened>(count: number, open: (index: number) => Promise<Opened>) {
  const opened: Opened[] = [];
  while (opened.length < count) {
    const some = Array.from({ length: 50 }, (_, index) => open(opened.length + index));
    opened.push(...(await Promise.all(some)));
  }
  return opened;
}

const viewers = 300;
test(`a change reaches ${viewers} viewers with answers of their own, and delays no other client`, async () => {
  const { server, base, commit, url } = await start({
    AUTH_JWT_SECRET: secret,
    REQUEST_TIMEOUT: '120s',
  });
  const own = await openMany(viewers, async (index) =>
    subscribe(base, 1, await signIn(index + 1), 'title viewerHasLiked'),
  );
  // They come last, and so stand behind all the others.
  const shared = await Promise.all(
    Array.from({ length: lists }, (_, page) => subscribe(base, page + 1)),
  );
  const blocker = await connectForTest(url);
  for (let round = 1; round <= 2; round++) {
    const late = (streams: readonly Stream[]) =>
      streams.filter(({ text }) => !text().includes(`Round ${round}`)).length;
    await blocker.query('BEGIN; LOCK TABLE outfit_likes IN ACCESS EXCLUSIVE MODE');
    await commit(round);
    // What is for all does not wait for what is for each.
    await expect.poll(() => late(shared)).toBe(0);
    expect(late(own)).toBe(viewers);
    await blocker.query('ROLLBACK');
    for (let page = 1; late(own) > 0; page++) {
      const response = await fetch(`${base}/api/outfits/?page=${1 + (page % 50)}`);
      expect(response.status).toBe(200);
      await response.text();
    }
  }
  expect(await stop(server)).toBe(0);
}, 300_000);

const perTransport = 500;
test(`${2 * perTransport} subscriptions over both transports: none gets what is older, none misses the last, none is left`, async () => {
  const { server, base, commit } = await start({ METRICS_PORT: '0' });
  const metrics = await metricsOf(server);
  await commit(0);
  const readers = await openMany(perTransport, (index) => subscribe(base, (index % lists) + 1));
  const sockets = await Promise.all(Array.from({ length: 20 }, () => openAcknowledged(base)));
  const operations = perTransport / sockets.length;
  for (const { subscribe: send } of sockets) {
    for (let index = 0; index < operations; index++) {
      send(`${index}`, `subscription { outfits(page: ${index + 1}) { results { title } } }`);
    }
  }
  const open = async () => {
    const text = await metrics();
    return [...text.matchAll(/^gateway_streams_open\{transport="\w+"\} (\d+)$/gm)].map(toNumber);
  };
  await expect.poll(open, { timeout: 30_000 }).toEqual([perTransport, perTransport]);

  const rounds = 20;
  for (let round = 1; round <= rounds; round++) {
    await commit(round);
    await sleep(Math.random() * 400);
  }
  const roundsIn = (text: string) =>
    [...text.matchAll(/"results":\[\{"title":"Round (\d+)"/g)].map(toNumber);
  const seen = () => [
    ...readers.map(({ text }) => roundsIn(text())),
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

  for (const { close } of readers) close();
  const [kept, ...others] = sockets;
  for (const [at, { socket }] of others.entries()) at % 2 ? socket.terminate() : socket.close();
  await expect.poll(open, { timeout: 30_000 }).toEqual([0, operations]);
  // A restart tells clients to come back.
  const stopped = stop(server);
  expect([1012, 1013]).toContain((await kept?.closed)?.[0]);
  expect(await stopped).toBe(0);
}, 300_000);

test('a heap of 128 MB outlives 300 live answers whose requests have a megabyte of other variables', async () => {
  const settings = { NODE_OPTIONS: '--max-old-space-size=128' };
  const { server, base } = await start(settings);
  const query = 'subscription { outfits(page: 1) { count } }';
  const variables = { big: 'x'.repeat(1_000_000) };
  for (let at = 0; at < 150; at++) await openStream(base, query, { variables });
  const sockets = await Promise.all(Array.from({ length: 10 }, () => openAcknowledged(base)));
  const codeOf = (answer: Message['payload']) => (answer.errors ?? answer)[0]?.extensions.code;
  for (let at = 0; at < 15; at++) {
    const asking = sockets.map(async ({ subscribe: send, next }) => {
      const ask = async () => {
        send(`${at}`, query, { variables });
        let message = await next();
        while (message.type === 'complete') message = await next();
        return message.payload;
      };
      let answer = await ask();
      // A process on a machine that is busy takes its database for a lost one.
      while (codeOf(answer) === 'SERVICE_UNAVAILABLE') answer = await ask();
      expect(answer).toEqual({ data: { outfits: { count: 2400 } } });
    });
    await Promise.all(asking);
  }
  expect((await fetch(`${base}/api/outfits/`)).status).toBe(200);
  expect(await stop(server)).toBe(0);
}, 300_000);

const toNumber = ([, number]: RegExpMatchArray) => Number(number);

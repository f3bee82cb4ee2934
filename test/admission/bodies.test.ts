// Bodies that wait: their bytes are counted by sender, and the largest holder makes room.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { getHeapStatistics } from 'node:v8';
import { expect, onTestFinished, test } from 'vitest';
import { connectTo, databaseUrlOf } from '../support/databases/connections.ts';
import { addressOf, countBlocked, lockOutfits } from '../support/faults/clients.ts';
import { openForTest } from '../support/gateway.ts';
import { baseOfApp } from '../support/http/event-stream.ts';
import { sendRaw } from '../support/http/raw-http.ts';
import { secret, signIn } from '../support/http/tokens.ts';

/** Bodies of 1 MB that fit into their share of the heap. */
const most = Math.floor(getHeapStatistics().heap_size_limit / 8 / 16 / 1_000_000);

test.each([
  ['arrives', '/graphql', 1],
  ['arrives', '/api/outfits/', 1],
  ['waits for the database', '/graphql', 0],
])(
  'a 503 ends the newest request of the largest holder when a body that %s leaves no room: %s',
  async (_name, path, lacking) => {
    const gateway = await openForTest('PostgreSQL', [], { AUTH_JWT_SECRET: secret });
    const address = addressOf(await baseOfApp(gateway.app));
    const url = databaseUrlOf(gateway.database.pool);
    const [watcher, unlock] = [await connectTo(url), await lockOutfits(url)];
    onTestFinished(() => void watcher.end());
    const size = 1_000_000;
    const open = async (from: number, number: number) => {
      const begin = `{"query":"{ outfits { count } }","extensions":{"number":"${number} `;
      const body = `${begin.padEnd(size - 3, 'x')}"}}`;
      const { authorization } = (await signIn(from)) as { authorization: string };
      const socket = connect({ ...address, localAddress: `127.0.0.${from}` });
      onTestFinished(() => void socket.destroy());
      await once(socket.on('error', () => {}).setEncoding('utf8'), 'connect');
      socket.write(
        `POST ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: ${authorization}\r\nContent-Type: application/json\r\nContent-Length: ${size}\r\n\r\n`,
      );
      socket.write(body.slice(0, size - lacking));
      return socket;
    };
    const sockets: Socket[] = [];
    for (let number = 0; number < most - 1; number += 1) {
      sockets.push(await open(2, number));
    }
    if (!lacking) await expect.poll(() => countBlocked(watcher)).toBeGreaterThan(0);
    const newest = sockets.at(-1) as Socket;
    const refused = once(newest, 'data');
    const others = [await open(3, 1), await open(3, 2)];
    expect(String(await refused)).toMatch(/^HTTP\/1\.1 503 [^{]*connection: close[\s\S]*busy/i);
    await unlock();
    for (const socket of [...others, ...sockets.slice(0, 1)]) {
      socket.write('}'.repeat(lacking));
      expect(String(await once(socket, 'data'))).toMatch(/^HTTP\/1\.1 (?:200|400) /);
    }
  },
);

test('a body of more than 16,384 pieces is a 413', async () => {
  const { app } = await openForTest('PostgreSQL');
  const head = 'POST /graphql HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n';
  const body = (pieces: number) =>
    `${'1\r\n \r\n'.repeat(pieces)}f\r\n{"query":"{a}"}\r\n0\r\n\r\n`;
  const statusOf = async (pieces: number) =>
    (
      await sendRaw(
        app,
        `${head}Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n${body(pieces)}`,
      )
    ).slice(9, 12);
  expect(await statusOf(16_382)).toBe('200');
  expect(await statusOf(16_384)).toBe('413');
});

test('the body of a GET, which nobody reads, takes no memory, and ends nothing', async () => {
  const { app, database } = await openForTest('PostgreSQL');
  const base = await baseOfApp(app);
  const url = databaseUrlOf(database.pool);
  const [watcher, unlock] = [await connectTo(url), await lockOutfits(url)];
  onTestFinished(() => void watcher.end());
  const size = (most + 1) * 1_000_000;
  const socket = connect(addressOf(base));
  onTestFinished(() => void socket.destroy());
  const answered = once(socket.on('error', () => {}).setEncoding('utf8'), 'data');
  socket.write(
    `GET /graphql?query={outfits{count}} HTTP/1.1\r\nHost: a\r\nContent-Length: ${size}\r\n\r\n`,
  );
  socket.write('x'.repeat(size));
  await expect.poll(() => countBlocked(watcher)).toBeGreaterThan(0);
  // Turns in which the body would arrive.
  for (let turn = 0; turn < 50; turn += 1) {
    expect((await fetch(`${base}/health/ready`)).status).toBe(200);
  }
  await unlock();
  expect(String(await answered)).toMatch(/^HTTP\/1\.1 200 /);
});

// SIGTERM: the service says so first, finishes what it has begun, and is gone within five seconds.
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import {
  baseOf,
  demoEnvironment,
  type Run,
  runServer,
  slowness,
  stop,
} from '../support/cli/process.ts';
import { connectForTest } from '../support/databases/connections.ts';
import {
  addressOf,
  countBlocked,
  keepBusy,
  lockOutfits,
  readNothing,
  sendPart,
} from '../support/faults/clients.ts';
import { send } from '../support/faults/load.ts';
import { startWebhook } from '../support/http/webhook.ts';

/** A server on PostgreSQL whose lists answer only while they are not locked. */
async function startServer(settings: Record<string, string> = {}) {
  const environment = await demoEnvironment();
  const server = runServer({ ...environment, HOST: '127.0.0.1', ...settings });
  const base = await baseOf(server);
  /** Until a list waits for the lock. */
  const blocked = async () => {
    const watcher = await connectForTest(environment['DATABASE_URL']);
    await expect.poll(() => countBlocked(watcher)).toBe(1);
  };
  return { server, base, lock: () => lockOutfits(environment['DATABASE_URL'] ?? ''), blocked };
}

/** Sends SIGTERM: five seconds are promised; a busy machine gets twice as long. */
async function terminate(server: Run): Promise<void> {
  const start = performance.now();
  expect(await stop(server)).toBe(0);
  expect(performance.now() - start).toBeLessThan(10_000 * slowness);
}

test('under load, readiness turns first, and every request that was taken is answered', async () => {
  const { server, base } = await startServer();
  const load = keepBusy(addressOf(base), 20, '/api/outfits/', new AbortController().signal);
  const probes: number[] = [];
  const probing = (async () => {
    for (let status = 200; status > 0; await sleep(20)) {
      ({ status } = await send(base, '/health/ready'));
      if (status > 0) probes.push(status);
    }
  })();
  // By then, each client has had several answers.
  await expect.poll(() => probes.length).toBeGreaterThan(20);
  await terminate(server);
  const { answers, broken } = await load;
  await probing;
  expect(probes[0]).toBe(200);
  expect(probes.at(-1)).toBe(503);
  expect(answers.length).toBeGreaterThan(100);
  expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
  expect(broken).toBe(0);
  // Requests are taken while readiness already says no, each on a connection of its own.
  expect(answers.filter(({ head }) => /connection: close/i.test(head)).length).toBeGreaterThan(20);
});

test('a running request is finished', async () => {
  const { server, base, lock, blocked } = await startServer();
  const unlock = await lock();
  const running = fetch(`${base}/graphql?query={outfits{count}}`);
  await blocked();
  const ended = terminate(server);
  // Until it takes no other.
  await expect.poll(async () => (await send(base, '/health/live')).status).toBe(0);
  await unlock();
  const response = await running;
  expect(await response.json()).toEqual({ data: { outfits: { count: 2400 } } });
  expect(response.headers.get('connection')).toBe('close');
  await ended;
});

test('clients that are slow, read nothing or wait for a stuck database do not hold it up', async () => {
  const { server, base, lock, blocked } = await startServer({ PAGE_SIZE: '1000' });
  const address = addressOf(base);
  const kept = await fetch(`${base}/api/outfits/`, { headers: { connection: 'keep-alive' } });
  await kept.text();
  const sockets = await Promise.all([
    sendPart(address, ''),
    sendPart(address, 'GET /api/outfits/ HT'),
    sendPart(address, 'GET /api/outfits/ HTTP/1.1\r\nHost: shop.test\r\nX-Slow: '),
    sendPart(
      address,
      'POST /graphql HTTP/1.1\r\nHost: shop.test\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"query"',
    ),
    readNothing(address),
  ]);
  const unlock = await lock();
  const stuck = await sendPart(
    address,
    'GET /graphql?query={outfits{count}} HTTP/1.1\r\nHost: shop.test\r\nAccept: text/event-stream\r\n\r\n',
  );
  await blocked();
  try {
    await terminate(server);
  } finally {
    for (const socket of [...sockets, stuck]) socket.destroy();
    await unlock();
  }
});

test('answers requests that wait for a webhook which hangs', async () => {
  const webhook = await startWebhook();
  onTestFinished(webhook.close);
  webhook.answer = () => {};
  const { server, base } = await startServer({ AUTH_WEBHOOK_URL: webhook.url });
  const ask = (token: string) =>
    fetch(`${base}/api/outfits/`, { headers: { authorization: `Bearer ${token}` } });
  // More than one sender may ask at once: some wait for their turn.
  const running = Array.from({ length: 12 }, (_, number) => ask(`token-${number}`));
  await expect.poll(() => webhook.underWay.now).toBe(8);
  const ended = terminate(server);
  const statuses = (await Promise.all(running)).map(({ status }) => status);
  expect(statuses).toEqual(Array(12).fill(503));
  await ended;
});

test('a second signal ends it at once', async () => {
  const { server, base, lock, blocked } = await startServer();
  const unlock = await lock();
  const stuck = await sendPart(
    addressOf(base),
    'GET /graphql?query={outfits{count}} HTTP/1.1\r\nHost: shop.test\r\n\r\n',
  );
  await blocked();
  server.child.kill('SIGTERM');
  await server.until(/SIGTERM: closing/);
  server.child.kill('SIGINT');
  // The end of the notice and the grace that it cuts short would be 0.
  expect(await server.ended).toBe(1);
  stuck.destroy();
  await unlock();
});

// localhost has two addresses, and each is a server of its own: all rules hold on both.
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, expect, test } from 'vitest';
import { listen } from '../../src/http/server/server.ts';
import { connectForTest } from '../support/databases/connections.ts';
import { countBlocked, lockOutfits } from '../support/faults/clients.ts';
import { useGateway } from '../support/gateway.ts';
import { portOf } from '../support/http/listen.ts';
import { sendBytes } from '../support/http/raw-http.ts';

const hosts = ['127.0.0.1', '::1'];
const gateway = useGateway('PostgreSQL', [], { REQUEST_TIMEOUT: '60s' });
let port: number;
beforeAll(async () => {
  // The addresses of localhost on this machine.
  const addresses = hosts.map((address, index) => ({ address, family: 4 + 2 * index }));
  await listen(gateway.app, { host: 'localhost', port: 0 }, async () => addresses);
  port = portOf(gateway.app.server);
});

const send = (host: string, text: string) => sendBytes({ host, port }, text).catch(() => '');

const head = 'GET /api/outfits/ HTTP/1.1\r\nHost: shop.test\r\nConnection: close\r\n';
const upgrade = (path: string, name: string) =>
  `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: close, upgrade\r\nUpgrade: ${name}\r\n\r\n`;
const hidden = `${'a:\r\n'.repeat(2_100)}Authorization: Bearer x\r\n`;

test.each(hosts)('%s answers requests, handshakes, and bytes that are neither', async (host) => {
  for (const [text, answer] of [
    [`${head}\r\n`, /^HTTP\/1\.1 200 /],
    [`${head}Expect: x\r\n\r\n`, /^HTTP\/1\.1 200 /],
    [`${head}${hidden}\r\n`, /^HTTP\/1\.1 401 /],
    [`${head.replace('Host: shop.test\r\n', '')}\r\n`, /{"detail":"Invalid Host header\."}/],
    ['GARBAGE\r\n\r\n', /^HTTP\/1\.1 400 .*x-request-id: .*"The request is not valid HTTP\."/s],
    [upgrade('/graphql', 'websocket'), /^HTTP\/1\.1 400 .*subprotocol graphql-transport-ws/s],
    [upgrade('/api/outfits/', 'websocket'), /^HTTP\/1\.1 200 /],
    [upgrade('/api/outfits/', 'h2c'), /^HTTP\/1\.1 200 /],
  ] as const) {
    expect(await send(host, text)).toMatch(answer);
  }
});

test('closing waits for a request on the second one, and neither has a listener then', async () => {
  const url = gateway.config.databaseUrl ?? '';
  const unlock = await lockOutfits(url);
  const watcher = await connectForTest(url);
  // Of an ordering that nobody has asked for.
  const answer = send('::1', `${head.replace('/ ', '/?ordering=id ')}\r\n`);
  await expect.poll(() => countBlocked(watcher)).toBe(1);
  let isClosed = false;
  const mainClosed = once(gateway.app.server, 'close');
  const closed = gateway.app.close().then(() => {
    isClosed = true;
  });
  await mainClosed;
  // It has nothing to wait for, but this request.
  await sleep(100);
  expect(isClosed).toBe(false);
  await unlock();
  expect(await answer).toMatch(/^HTTP\/1\.1 200 /);
  await closed;
  for (const host of hosts) expect(await send(host, `${head}\r\n`)).toBe('');
});

// localhost has two addresses, and each is a server of its own: all rules hold on both.
import { connect } from 'node:net';
import { beforeAll, expect, test } from 'vitest';
import { listen } from '../../src/http/server/server.ts';
import { useGateway } from '../support/gateway.ts';
import { portOf } from '../support/http/listen.ts';

const hosts = ['127.0.0.1', '::1'];
const gateway = useGateway('PostgreSQL');
let port: number;
beforeAll(async () => {
  // The addresses of localhost on this machine.
  const addresses = hosts.map((address, index) => ({ address, family: 4 + 2 * index }));
  await listen(gateway.app, { host: 'localhost', port: 0 }, async () => addresses);
  port = portOf(gateway.app.server);
});

/** All that is answered; nothing without a listener. */
async function send(host: string, text: string): Promise<string> {
  return new Promise((settle) => {
    let answer = '';
    const socket = connect(port, host, () => socket.write(text));
    socket.setEncoding('utf8').on('data', (chunk) => {
      answer += chunk;
    });
    socket.on('error', () => {}).on('close', () => settle(answer));
  });
}

const head = 'GET /api/outfits/ HTTP/1.1\r\nHost: shop.test\r\nConnection: close\r\n';

test.each(hosts)('%s answers requests, and bytes that are none', async (host) => {
  expect(await send(host, `${head}\r\n`)).toMatch(/^HTTP\/1\.1 200 /);
  expect(await send(host, `${head}Expect: x\r\n\r\n`)).toMatch(/^HTTP\/1\.1 200 /);
  const hidden = `${'a:\r\n'.repeat(2_100)}Authorization: Bearer x\r\n\r\n`;
  expect(await send(host, head + hidden)).toMatch(/^HTTP\/1\.1 401 /);
  const withoutHost = 'GET /api/outfits/ HTTP/1.1\r\nConnection: close\r\n\r\n';
  expect(await send(host, withoutHost)).toContain('{"detail":"Invalid Host header."}');
  const unreadable = await send(host, 'GARBAGE\r\n\r\n');
  expect(unreadable).toMatch(/^HTTP\/1\.1 400 /);
  expect(unreadable).toContain('\r\nx-request-id: ');
  expect(unreadable).toContain('{"detail":"The request is not valid HTTP."}');
});

test.each(hosts)(
  '%s takes handshakes, and answers other upgrades as plain requests',
  async (host) => {
    const ask = (path: string, name: string) =>
      send(
        host,
        `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: close, upgrade\r\nUpgrade: ${name}\r\n\r\n`,
      );
    const refused = await ask('/graphql', 'websocket');
    expect(refused).toMatch(/^HTTP\/1\.1 400 [\s\S]*subprotocol graphql-transport-ws/);
    for (const name of ['h2c', 'websocket']) {
      expect(await ask('/api/outfits/', name)).toMatch(/^HTTP\/1\.1 200 /);
    }
  },
);

test('neither has a listener when the service has closed', async () => {
  await gateway.app.close();
  for (const host of hosts) expect(await send(host, `${head}\r\n`)).toBe('');
});

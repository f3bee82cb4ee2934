// Address, host and scheme of the client: of the connection, or as the trusted proxies have seen them.
import { describe, expect, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { keepLog, openForTest, useGateway } from '../support/gateway.ts';
import { portOf } from '../support/http/listen.ts';
import { sendRaw } from '../support/http/raw-http.ts';
import { openSocket } from '../support/http/socket.ts';

const rows = [...generateOutfits({ outfits: 45, users: 9 })];

describe('behind two trusted proxies', () => {
  const gateway = useGateway('PostgreSQL', rows, { TRUST_PROXY: '127.0.0.1,10.0.0.5,fd00::/8' });
  const client = '198.51.100.7';
  const chain = `${client}, 10.0.0.5`;

  test.each([
    // Appended to by both, as Apache and Envoy do.
    [chain, 'https, http', 'shop.test, inner.local', 'https://shop.test'],
    [chain, 'https,http', 'shop.test,inner.local', 'https://shop.test'],
    [`${client}, [fd00::1]:4433`, 'https, http', 'shop.test, inner.local', 'https://shop.test'],
    [`${client}, 10.0.0.5:50001`, 'https, http', 'shop.test, inner.local', 'https://shop.test'],
    // What the client itself sent stands before what the first proxy saw.
    [`1.1.1.1, ${chain}`, 'https, http, http', 'evil.test, shop.test, a', 'http://shop.test'],
    // The first proxy was not used, or is not named: only the entry of the last one counts.
    [client, 'https, http', 'evil.test, shop.test', 'http://shop.test'],
    [`${client}, 10.0.0.6`, 'https, http', 'evil.test, shop.test', 'http://shop.test'],
    // Set by one proxy alone, and passed on by the other.
    [chain, 'https', 'shop.test', 'https://shop.test'],
    [undefined, 'https', 'shop.test', 'https://shop.test'],
    ['10.0.0.5', 'https, http', 'shop.test, inner.local', 'https://shop.test'],
    // Schemes are case-insensitive; Traefik writes wss for a handshake.
    [client, 'HTTPS', 'shop.test', 'https://shop.test'],
    [client, 'WSS', 'shop.test', 'https://shop.test'],
    [client, 'ftp', 'shop.test', 'http://shop.test'],
    // Without an entry, the request itself counts.
    [client, undefined, undefined, 'http://own.test'],
    [client, '', ' , ', 'http://own.test'],
  ])(
    'links for X-Forwarded-For: %s, -Proto: %s, -Host: %s begin with those of the client',
    async (...given) => {
      const [addresses, schemes, hosts, base] = given;
      const lines = [
        ['X-Forwarded-For', addresses],
        ['X-Forwarded-Proto', schemes],
        ['X-Forwarded-Host', hosts],
      ].flatMap(([name, list]) => (list === undefined ? [] : [[name, list] as const]));
      const request = (sent: readonly (readonly [unknown, string])[]) => {
        const head = sent.map(([name, value]) => `${name}: ${value}\r\n`).join('');
        return sendRaw(
          gateway.app,
          `GET /api/outfits/ HTTP/1.1\r\nHost: own.test\r\nConnection: close\r\n${head}\r\n`,
        );
      };
      const next = `"next":"${base}/api/outfits/?page=2"`;
      expect(await request(lines)).toContain(next);
      // Several lines are one list.
      const split = lines.flatMap(([name, list]) =>
        list.split(',').map((one) => [name, one] as const),
      );
      expect(await request(split)).toContain(next);
    },
  );

  test('a page of the public address may open a WebSocket', async () => {
    await sendRaw(gateway.app, 'GET / HTTP/1.0\r\n\r\n');
    const base = `http://127.0.0.1:${portOf(gateway.app.server)}`;
    const open = (origin: string) =>
      openSocket(base, {
        ...{ origin, 'x-forwarded-for': chain, 'x-forwarded-proto': 'wss, http' },
        'x-forwarded-host': 'shop.test, inner.local',
      });
    expect((await open('https://shop.test')).socket.readyState).toBe(1);
    for (const origin of ['http://shop.test', 'https://inner.local']) {
      await expect(open(origin)).rejects.toThrow(/^403 /);
    }
  });
});

const gateway = useGateway('PostgreSQL', rows);
const send = (method: string, path: string, version: string, lines = '') =>
  sendRaw(gateway.app, `${method} ${path} HTTP/${version}\r\n${lines}Connection: close\r\n\r\n`);

test.each([
  ...['/', '/outfits/', '/outfits/7', '/users/5', '/api/outfits/', '/api/outfits/7/'],
  ...['/api/outfits', '/api/openapi.json', '/graphql?query={__typename}', '/health/ready'],
  ...['/graphql/schema.graphql'],
])(
  '%s without Host is answered to HTTP/1.0, by address and port of the connection',
  async (path) => {
    const known = await send('GET', path, '1.1', 'Host: a\r\n');
    const status = known.slice('HTTP/1.1 '.length, 12);
    expect(status).toMatch(/^(?:200|301|404)$/);
    const port = portOf(gateway.app.server);
    for (const method of ['GET', 'HEAD']) {
      for (const lines of ['', 'Host:\r\n', 'Host: b\r\n']) {
        const answer = await send(method, path, '1.0', lines);
        expect(answer).toContain(`HTTP/1.1 ${status}`);
        const links = [...answer.matchAll(/"next":"([^"]*)\/api/g)].map(([, base]) => base);
        const host = lines.includes('b') ? 'b' : `127.0.0.1:${port}`;
        if (path === '/api/outfits/' && method === 'GET') expect(links).toEqual([`http://${host}`]);
      }
    }
    if (path === '/health/ready') return;
    const refused = await send('GET', path, '1.1');
    expect(refused).toMatch(/^HTTP\/1\.1 400 [\s\S]*"Invalid Host header\."/);
  },
);

test('the address and port of a client are told apart, wherever clients are counted', async () => {
  const { logger, lines } = keepLog();
  const settings = { TRUST_PROXY: '10.0.0.0/8', RATE_LIMIT: '1/hour' };
  const gateway = await openForTest('PostgreSQL', rows, settings, { logger });
  const statusFor = async (address: string, remoteAddress = '10.0.0.1') => {
    const headers = { 'x-forwarded-for': address };
    return (await gateway.app.inject({ url: '/api/outfits/', headers, remoteAddress })).statusCode;
  };
  const spellings = [
    ['203.0.113.1', '203.0.113.1:50001', '"203.0.113.1:443"', ' 203.0.113.1: '],
    ['192.0.2.1', '::ffff:192.0.2.1', '0:0:0:0:0:FFFF:c000:201', '[::ffff:192.0.2.1]:9'],
    ['::ffff:192.0.2.2'],
    ['2001:db8::7', '[2001:db8::7]', '[2001:db8::8]:443', '"[2001:db8::7]:443"'],
    ['2001:db8:1:2::1', '2001:db8:1:2:ffff::', '2001:0DB8:0001:0002:1:2:3:4'],
    ['2001:db8:1:3::1'],
    ['2001:db8:0:1::'],
    ['::192.0.2.1', '::1', '::2'],
    ['fe80::1%eth0', 'fe80::2', '[fe80::1%eth0]:1'],
    // What a client put there itself stands before what a proxy saw.
    [
      '203.0.113.2:50001',
      '203.0.113.2, 10.0.0.9:1',
      '203.0.113.1, 203.0.113.2, [::ffff:10.0.0.9]:1',
    ],
    ['unknown', '_hidden', '1.2.3:4', '[]:4', 'a:4', '"', 'a'.repeat(5_000)],
  ];
  for (const [first = '', ...others] of spellings) {
    expect([first, await statusFor(first)]).toEqual([first, 200]);
    for (const other of others) expect([other, await statusFor(other)]).toEqual([other, 429]);
  }
  // Longer than any chain of proxies, and cut.
  expect(await statusFor(`203.0.113.3, ${'10.0.0.1,'.repeat(1_500)}10.0.0.1`)).toBe(200);
  // A slow machine logs slow answers too.
  const peers = () => lines().filter(({ msg }) => /TRUST_PROXY does not name/.test(String(msg)));
  expect(peers()).toEqual([]);
  // Of a peer that is not trusted, its own address counts.
  for (const status of [200, 429]) {
    expect(await statusFor(`198.51.100.${status % 255}`, '192.0.2.9')).toBe(status);
  }
  await statusFor('203.0.113.4', '192.0.2.10');
  expect(peers()).toMatchObject([{ level: 'warn', peer: '192.0.2.9' }]);
});

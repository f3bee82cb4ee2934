// What DATABASE_URL may say: what is not followed is refused in one sentence, and no password is repeated.
import { once } from 'node:events';
import { createServer } from 'node:net';
import { expect, test, vi } from 'vitest';
import * as check from '../../src/commands/check.ts';
import { readServerUrl } from '../../src/database/connection/server-url.ts';
import { createSession, Sockets } from '../../src/database/connection/session.ts';
import { callCommand } from '../support/cli/commands.ts';
import { listen } from '../support/http/listen.ts';

const said = async (DATABASE_URL: string) => {
  const { code, stderr } = await callCommand(check, [], { DATABASE_URL });
  expect(code).toBe(2);
  expect(stderr).toMatch(/^[^\n]+\.\n$/);
  return stderr;
};

test.each([
  ['schema=Odd&pgbouncer=true', 'ALTER ROLE gw IN DATABASE s1 SET search_path = "Odd"'],
  ['schema=a&pgbouncer=true&user=Gw', 'ALTER ROLE "Gw" IN DATABASE s1 SET search_path = "a"'],
  [
    'connection_limit=1',
    'has connection_limit, which the gateway does not know: set DATABASE_POOL',
  ],
  ['pool_timeout=10', 'has pool_timeout, which the gateway does not know: leave it out'],
  ['connect_timeout=soon', 'has connect_timeout=soon, which'],
  ['hostaddr=10.0.0.1', 'has hostaddr, which'],
  ['tls=true', 'has tls, which'],
  ['constructor=1', 'has constructor, which'],
  ['SSLMODE=require', 'has SSLMODE: write it as sslmode'],
  ['sslmode=require&sslmode=disable', 'has sslmode twice: keep one of them'],
  ['sslmode=disable&ssl=true', 'has ssl=true with sslmode=disable: keep one of them'],
  ['sslmode=REQUIRE', 'has sslmode=REQUIRE: use one of disable, require'],
  ['ssl=1', 'says something of TLS, but not sslmode'],
  ['channel_binding=require', 'has channel_binding=require, which the gateway cannot do'],
  ['gssencmode=require', 'has gssencmode=require, which'],
  ['target_session_attrs=standby', 'has target_session_attrs=standby, which'],
  ['ssl_min_protocol_version=TLSv1.3', 'has ssl_min_protocol_version=TLSv1.3, which'],
  ['load_balance_hosts=random', 'has load_balance_hosts=random, which'],
  ['client_encoding=latin1', 'has client_encoding=latin1, which'],
  ['host=a,b', 'names several hosts: name one'],
  [
    'sslmode=prefer',
    'has sslmode=prefer, which anyone on the way can turn into no TLS: use one of',
  ],
  ['sslmode=allow', 'has sslmode=allow, which'],
  [
    'sslmode=no-verify',
    'has sslmode=no-verify: use one of disable, require, verify-ca, verify-full',
  ],
  ['sslmode=verify-ca', 'has sslmode=verify-ca without sslrootcert: name the file'],
  ['sslrootcert=ca.crt', 'says something of TLS, but not sslmode: add one of'],
  ['sslnegotiation=direct', 'says something of TLS, but not sslmode: add one of'],
  ['sslmode=disable&sslnegotiation=direct', 'has sslnegotiation=direct with sslmode=disable'],
  ['sslmode=require&sslnegotiation=soon', 'has sslnegotiation=soon, which the gateway cannot do'],
  ['sslmode=require&sslrootcert=system', 'has sslrootcert=system with sslmode=require: use'],
  [
    'sslmode=verify-full&sslrootcert=/no/ca.crt',
    'names a file that cannot be read (ENOENT: no such',
  ],
  ['sslmode=require&sslcert=client.crt', 'has one of sslcert and sslkey: they go together'],
  ['sslmode=require&sslcrl=crl.pem', 'has sslcrl, which the gateway does not know: leave it out'],
])('refuses ?%s in one sentence', async (query, sentence) => {
  expect(await said(`postgresql://gw@localhost/s1?${query}`)).toContain(sentence);
});

test.each([
  ['postgresql://a:5432,b:5432/s1', 'names several hosts'],
  ['postgresql://gw:pw@a,b/s1', 'names several hosts'],
  ['postgresql://gw@localhost:99999/s1', 'is not a URL such as'],
])('refuses %s in one sentence', async (url, sentence) => {
  expect(await said(url)).toContain(sentence);
});

const secret = 's3cret';
test.each([
  ...[`12/34${secret}`, `12?34${secret}`, `12#34${secret}`, `12/3/4${secret}`, `p@s/${secret}`],
  ...[`p@s?${secret}`, `p@s?x=${secret}`, `p@s?host=${secret}`, `p@s#${secret}`, `a/b${secret}`],
  ...[`${secret}%zz`, `${secret}%`, `1?${secret}=x`, `/${secret}`, `:/${secret}`],
])('the password %s, which is not escaped, is refused without being repeated', async (password) => {
  for (const name of ['DATABASE_URL', 'DATABASE_READ_URLS']) {
    const url = `postgresql://u:${password}@localhost:5432/c6`;
    const urls = name === 'DATABASE_URL' ? {} : { DATABASE_URL: 'postgresql://localhost/c6' };
    const { stdout, stderr, code } = await callCommand(check, [], { ...urls, [name]: url });
    expect(code).toBe(2);
    expect(stderr).toMatch(new RegExp(`^${name} is cut short by a character of its user or pass`));
    expect(stdout + stderr).not.toContain(secret);
  }
});

test('names no database where the URL has none', () => {
  expect(readServerUrl('postgresql://u:pw@h').description).toBe('PostgreSQL database on h');
});

test.each([
  [
    'postgresql://u:pw@/db?host=/cloudsql/p:r:i',
    { host: '/cloudsql/p:r:i', name: '/cloudsql/p:r:i' },
  ],
  [
    'postgresql://u:pw@localhost/db?host=/run/pg&port=6',
    { host: '/run/pg', name: '/run/pg:6', port: 6 },
  ],
  ['postgresql://u:pw@%2Frun%2Fpg/db', { host: '/run/pg', name: '/run/pg' }],
  ['postgresql://u:pw@[::1]:7/db', { host: '::1', name: '[::1]:7', port: 7 }],
  ['postgresql:///db?user=u&password=pw', { host: '', name: 'localhost' }],
  ['postgresql://u:pw@/db', { host: '', name: 'localhost' }],
  ['postgresql://u:pw@h/db?schema=public&pgbouncer=true', { host: 'h', name: 'h' }],
  ['postgresql://u:pw@h?dbname=db', { host: 'h', name: 'h' }],
])('follows %s', (url, { name, ...config }) => {
  const found = readServerUrl(url);
  expect(found.config).toMatchObject({ ...config, user: 'u', password: 'pw', database: 'db' });
  expect(found.description).toBe(`PostgreSQL database db on ${name}`);
});

test.each([
  'connect_timeout=10&tcp_user_timeout=3000&fallback_application_name=psql',
  'keepalives=1&keepalives_idle=30&keepalives_interval=10&keepalives_count=3',
  'target_session_attrs=read-write&load_balance_hosts=disable&client_encoding=UTF8',
  'gssencmode=disable&channel_binding=prefer&krbsrvname=postgres',
  'ssl_min_protocol_version=TLSv1.2&sslsni=1&sslcompression=0',
])('takes ?%s of libpq, which changes nothing', (query) => {
  const plain = 'postgresql://u:pw@h/db';
  expect(readServerUrl(`${plain}?${query}`)).toEqual(readServerUrl(plain));
});

test('decodes what is escaped, and takes further parameters', () => {
  const url =
    'postgresql://a%40b:p%2F%3F%23%25@h/d%2Fb?application_name=x%40y&options=-c%20jit%3Doff';
  expect(readServerUrl(url).config).toEqual({
    ...{ host: 'h', user: 'a@b', password: 'p/?#%', database: 'd/b' },
    ...{ application_name: 'x@y', options: '-c jit=off', ssl: false },
  });
});

test('a connection is kept alive, and while the server is away its name is not looked up', async () => {
  const sockets = new Sockets();
  const server = createServer((socket) => socket.resume());
  const { Client } = createSession({ host: '127.0.0.1', port: await listen(server) }, 'session', 1);
  const open = sockets.open();
  const kept = vi.spyOn(open, 'setKeepAlive');
  const connecting = new Client({ stream: () => open }).connect();
  await expect.poll(() => kept.mock.calls).toEqual([[true, 30_000]]);
  sockets.refuse(new Error('away'));
  await expect(connecting).rejects.toThrow('away');
  server.close();
  const lookup = vi.fn();
  const refused = sockets.open().connect({ host: 'database.test', port: 1, lookup });
  await expect(once(refused, 'connect')).rejects.toThrow('away');
  expect(lookup).not.toHaveBeenCalled();
});

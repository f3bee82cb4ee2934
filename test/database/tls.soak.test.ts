// TLS between the gateway and PostgreSQL, with certificates of every kind.
import { chmodSync, chownSync, copyFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { readConfig } from '../../src/config/config.ts';
import { openDatabase } from '../../src/database/database.ts';
import { makeFolder } from '../support/cli/folder.ts';
import { baseOf, runServer } from '../support/cli/process.ts';
import { execute } from '../support/databases/connections.ts';
import { startDemoPostgres } from '../support/databases/demo-postgres.ts';
import { send } from '../support/faults/load.ts';
import { hasOpenSsl, makeCertificate } from '../support/http/certificates.ts';

let server: Awaited<ReturnType<typeof startDemoPostgres>>;
const folder = makeFolder(afterAll);
const fileOf = (name: string) => join(folder, name);

/** Puts the server's certificate where it looks, and lets the role `certified` in by its own only. */
async function switchOn(): Promise<void> {
  const { rows } = await execute(server.url, 'SHOW data_directory');
  const data: string = rows[0].data_directory;
  const { uid, gid } = statSync(data);
  for (const [from, name] of [
    ['server.crt', 'server.crt'],
    ['server.key', 'server.key'],
    ['authority.crt', 'root.crt'],
  ] as const) {
    copyFileSync(fileOf(from), join(data, name));
    chmodSync(join(data, name), 0o600);
    chownSync(join(data, name), uid, gid);
  }
  const rules = ['hostssl all certified all cert', 'host all postgres all password'];
  writeFileSync(join(data, 'pg_hba.conf'), `${rules.join('\n')}\n`);
  for (const statement of [
    'CREATE ROLE certified SUPERUSER LOGIN',
    `ALTER SYSTEM SET ssl_ca_file = 'root.crt'`,
    'ALTER SYSTEM SET ssl = on',
    'SELECT pg_reload_conf()',
  ]) {
    await execute(server.url, statement);
  }
}

beforeAll(async () => {
  if (!hasOpenSsl) return;
  const authority = 'authority';
  makeCertificate(folder, authority, { subject: 'Authority of the tests' });
  makeCertificate(folder, 'other', { subject: 'Another authority' });
  makeCertificate(folder, 'server', { subject: 'localhost', hosts: ['localhost'], authority });
  makeCertificate(folder, 'client', { subject: 'certified', authority });
  server = await startDemoPostgres();
  await switchOn();
});

afterAll(async () => {
  if (!hasOpenSsl) return;
  await server.close();
});

/** The URL, with what it says of TLS; `AUTHORITY` and the like are paths of certificates. */
function urlOf(query: string, host = 'localhost', user = 'postgres'): string {
  const url = new URL(server.url);
  url.hostname = host;
  url.username = user;
  url.search = query.replaceAll(/=(\w+\.(?:crt|key))/g, (_, name) => `=${fileOf(name)}`);
  return url.href;
}

/** Whether the connection is encrypted; rejects when there is none. */
async function isEncrypted(query: string, host?: string, user?: string): Promise<boolean> {
  const database = await openDatabase(readConfig({ DATABASE_URL: urlOf(query, host, user) }));
  onTestFinished(() => database.close());
  const { rows } = await database.pool.query(
    'SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()',
  );
  return rows[0].ssl;
}

const byName = 'sslmode=verify-full&sslrootcert=authority.crt';

describe.skipIf(!hasOpenSsl)('TLS', () => {
  test.each([
    ['sslmode=require', '127.0.0.1'],
    ['ssl=true', '127.0.0.1'],
    ['sslmode=require&sslrootcert=authority.crt', '127.0.0.1'],
    ['sslmode=verify-ca&sslrootcert=authority.crt', '127.0.0.1'],
    [byName, 'localhost'],
    ['sslmode=require&sslnegotiation=direct', '127.0.0.1'],
    [`${byName}&sslnegotiation=direct`, 'localhost'],
    ['sslmode=require&uselibpqcompat=true', '127.0.0.1'],
  ])('TLS is used with %s at %s', async (query, host) => {
    expect(await isEncrypted(query, host)).toBe(true);
  });

  test.each(['', 'sslmode=disable'])('TLS is not used with "%s"', async (query) => {
    vi.stubEnv('PGSSLMODE', 'require');
    onTestFinished(() => void vi.unstubAllEnvs());
    expect(await isEncrypted(query)).toBe(false);
  });

  test.each([
    ['a certificate of an unknown authority', 'sslmode=verify-full', 'localhost', /certificate/],
    ['another name', byName, '127.0.0.1', /IP: 127.0.0.1 is not in the cert/],
    ['another authority', 'sslmode=require&sslrootcert=other.crt', 'localhost', /certificate/],
    ['another authority', 'sslmode=verify-ca&sslrootcert=other.crt', 'localhost', /certificate/],
    ['another name, directly', `${byName}&sslnegotiation=direct`, '127.0.0.1', /IP: 127.0.0.1/],
  ])('TLS does not accept %s with %s', async (_kind, query, host, reason) => {
    await expect(isEncrypted(query, host)).rejects.toThrow(reason);
  });

  test('admits a client with a certificate', async () => {
    const own = `${byName}&sslcert=client.crt&sslkey=client.key`;
    expect(await isEncrypted(own, 'localhost', 'certified')).toBe(true);
    await expect(isEncrypted(byName, 'localhost', 'certified')).rejects.toThrow(/certificate/);
  });

  test('a wrong certificate is one sentence, and the gateway waits', async () => {
    const gateway = runServer({ DATABASE_URL: urlOf(byName, '127.0.0.1'), LOG_FORMAT: 'json' });
    const base = await baseOf(gateway);
    expect((await send(base, '/health/ready')).status).toBe(503);
    expect(gateway.output()).toMatch(
      /"msg":"The PostgreSQL database [^\n]* cannot be reached \([^\n]*not in the cert[^\n]*\): start it, or correct DATABASE_URL\."/,
    );
    expect(gateway.errors()).toBe('');
  });
});

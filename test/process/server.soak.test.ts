// The process as an operator meets it: starting, stopping, being killed, and saying what is wrong.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { readConfig } from '../../src/config/config.ts';
import { openDatabase } from '../../src/database/database.ts';
import { makeFolder } from '../support/cli/folder.ts';
import {
  baseOf,
  dist,
  environmentOf,
  failure,
  listing,
  migratedEnvironmentOf,
  run,
  runServer,
  stop,
} from '../support/cli/process.ts';
import { migrationList } from '../support/databases/schema-engine.ts';
import { findFreePort } from '../support/http/free-port.js';
import { listen } from '../support/http/listen.ts';
import { secret, signIn } from '../support/http/tokens.ts';

const migrations = migrationList().migrationDirectories.map(({ path }) => path);

/** What readiness and a request answer. */
async function statuses(base: string): Promise<number[]> {
  const paths = ['/health/live', '/health/ready', '/api/outfits/'];
  return Promise.all(paths.map(async (path) => (await fetch(base + path)).status));
}

test('PostgreSQL that is not migrated is waited for, until npm run migrate has been run', async () => {
  const environment = await environmentOf('PostgreSQL');
  const { host, pathname } = new URL(environment['DATABASE_URL'] ?? '');
  const name = `PostgreSQL database ${pathname.slice(1)} on ${host}`;
  const server = runServer(environment);
  const base = await baseOf(server);
  const sentence = `The ${name} lacks ${migrations.length} migration(s) (${migrations.join(', ')}): run \\"outfit-gateway migrate\\" (in a checkout \\"npm run migrate\\") first.`;
  expect(server.output().split(sentence)).toHaveLength(2);
  expect(await statuses(base)).toEqual([200, 503, 503]);

  const command = [`${dist}commands/cli.js`, 'migrate'];
  const migrating = run(command, environment);
  expect(await migrating.ended).toBe(0);
  expect(migrating.output()).toContain(
    `${name}: ${migrations.length} migration(s) applied, up to date.`,
  );
  const again = run(command, environment);
  expect(await again.ended).toBe(0);
  expect(again.output()).toContain('0 migration(s) applied');

  await expect.poll(() => statuses(base)).toEqual([200, 200, 200]);
  expect((await listing(base)).count).toBe(0);
  await server.until(new RegExp(`${name}, 0 outfits`));
  expect(server.output()).not.toContain('postgres:postgres');
  expect(await stop(server)).toBe(0);
});

test('PostgreSQL that is away is named in one sentence, without its password', async () => {
  const DATABASE_URL = `postgresql://shop:s3cret@127.0.0.1:${await findFreePort()}/shop`;
  const sentence =
    /The PostgreSQL database shop on 127\.0\.0\.1:\d+ cannot be reached \(.+\): start it, or correct DATABASE_URL\./;
  const message = await failure(run([`${dist}commands/cli.js`, 'migrate'], { DATABASE_URL }));
  expect(message).toMatch(sentence);

  const server = runServer({ DATABASE_URL });
  const base = await baseOf(server);
  expect(server.output()).toMatch(sentence);
  expect(await statuses(base)).toEqual([200, 503, 503]);
  expect(await stop(server)).toBe(0);
  expect(message + server.output() + server.errors()).not.toContain('s3cret');
});

test.each(['/proc/x', '/dev/null/x'])('a DATA_DIR that is %s is told', async (folder) => {
  await expect(openDatabase(readConfig({ DATA_DIR: folder }))).rejects.toThrow(
    /^DATA_DIR is ".*", but that folder cannot be made \(.*\): set it to one that can be written\.$/,
  );
});

const inUse =
  /^The gateway cannot listen there \(.*EADDRINUSE.*\): set HOST and PORT \(and METRICS_PORT\) to addresses that are free\.$/;

test.each([
  ['on a full disk, as standard error', '"$@" >/dev/full 2>/dev/full'],
  ['in a file that is as large as may be', 'ulimit -f 1; "$@" >log'],
  ['for a reader that has stopped', 'mkfifo pipe; exec 9<>pipe; "$@" >pipe'],
])('a log %s stops neither requests nor SIGTERM', async (_name, script) => {
  const environment = { ...(await migratedEnvironmentOf('PostgreSQL')), LOG_LEVEL: 'debug' };
  const folder = makeFolder(onTestFinished);
  const port = String(await findFreePort());
  const child = spawn(
    'sh',
    ['-c', `set -e; ${script}`, 'sh', process.execPath, `${dist}server.js`],
    {
      cwd: folder,
      env: { ...process.env, ...environment, PORT: port },
      stdio: 'ignore',
    },
  );
  const ended = once(child, 'exit');
  const base = `http://localhost:${port}`;
  await expect.poll(() => statuses(base).catch(() => [])).toEqual([200, 200, 200]);
  for (let request = 0; request < 300; request++) {
    expect((await fetch(`${base}/api/outfits/?x=${request}`)).status).toBe(200);
  }
  for (const pid of childrenOf(child.pid)) process.kill(pid, 'SIGTERM');
  expect(await ended).toEqual([0, null]);
});

const childrenOf = (pid = 0) =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').map(Number);

test('an import of a FIFO without a writer ends on SIGTERM', async () => {
  const environment = await migratedEnvironmentOf('PostgreSQL');
  const folder = makeFolder(onTestFinished);
  execFileSync('mkfifo', ['pipe'], { cwd: folder });
  const { PATH } = process.env;
  const importing = run(
    [`${dist}commands/cli.js`, 'import', 'pipe'],
    { ...environment, ...(PATH ? { PATH } : {}) },
    folder,
  );
  const descriptors = () => readdirSync(`/proc/${importing.child.pid}/task`).length;
  await expect.poll(descriptors).toBeGreaterThan(5);
  await new Promise((settle) => setTimeout(settle, 2_000));
  importing.child.kill('SIGTERM');
  expect(await importing.ended).toBe(130);
});

test.each<[string, (port: string) => Record<string, string>, RegExp, number]>([
  ['a port that is in use', (PORT) => ({ PORT }), inUse, 1],
  ['a port of metrics that is in use', (METRICS_PORT) => ({ METRICS_PORT }), inUse, 1],
  [
    'a file of documents that cannot be read',
    () => ({ TRUSTED_DOCUMENTS: '/nonexistent/documents.json' }),
    /^TRUSTED_DOCUMENTS is "\/nonexistent\/documents.json", but it cannot be read/,
    2,
  ],
])('%s is named before a first database is made', async (_what, settings, sentence, code) => {
  const environment = await environmentOf('embedded');
  const other = createServer();
  onTestFinished(() => void other.close());
  const port = String(await listen(other));
  const server = runServer({ ...environment, HOST: '127.0.0.1', ...settings(port) });
  expect(await failure(server, code)).toMatch(sentence);
  expect(readdirSync(environment['DATA_DIR'] ?? '')).toEqual([]);
});

test.each<[string, Record<string, string>]>([
  ['a secret', { AUTH_JWT_SECRET: secret }],
  ['a key set', { AUTH_JWKS_URL: 'http://127.0.0.1:9/' }],
])('the log says with %s that writing is possible, and no token or secret', async (_name, auth) => {
  const environment = { ...(await migratedEnvironmentOf('PostgreSQL')), LOG_LEVEL: 'debug' };
  const server = runServer({ ...environment, ...auth });
  const base = await baseOf(server);
  expect(server.output()).toContain('writing is possible with a bearer token');
  const { authorization = '' } = await signIn(7);
  for (const given of [`${authorization}x`, `Bearer ${'x'.repeat(10_000)}`]) {
    const { status } = await fetch(`${base}/api/outfits/`, { headers: { authorization: given } });
    expect([401, 503]).toContain(status);
  }
  expect(await stop(server)).toBe(0);
  const said = server.output() + server.errors();
  for (const word of [authorization.slice('Bearer '.length), secret]) {
    expect(said).not.toContain(word);
  }
});

test('a line says that all file descriptors are in use, and the next client after that is answered', async () => {
  const server = runServer(await migratedEnvironmentOf('PostgreSQL'));
  const base = await baseOf(server);
  const { hostname: host, port } = new URL(base);
  execFileSync('prlimit', ['--pid', `${server.child.pid}`, '--nofile=100:100']);
  const sockets = Array.from({ length: 120 }, () =>
    connect({ host, port: Number(port) }).on('error', () => {}),
  );
  await server.until(/"code":"EMFILE","msg":"no file descriptor is free: .*\(ulimit -n\)"/);
  for (const socket of sockets) socket.destroy();
  await expect.poll(() => statuses(base).catch(() => [])).toEqual([200, 200, 200]);
});

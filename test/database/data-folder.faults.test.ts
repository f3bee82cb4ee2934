// The folder of the embedded database: when it goes away, lacks a part, or holds what is left of others.
import {
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import {
  baseOf,
  failure,
  listing,
  newEnvironment,
  publish,
  runServer,
  stop,
} from '../support/cli/process.ts';
import { makeDatabaseFolder } from '../support/databases/database-folder.js';

/** A folder with the demonstration set, to be copied. */
let prepared: string;

beforeAll(async () => {
  prepared = makeDatabaseFolder('prepared');
  const server = runServer({ DATA_DIR: prepared });
  await baseOf(server);
  expect(await stop(server)).toBe(0);
});
afterAll(() => rmSync(prepared, { recursive: true }));

/** A gateway on an embedded database of its own. */
async function runPrepared(settings: Record<string, string> = {}) {
  const environment = { ...(await newEnvironment('embedded')), ...settings };
  const folder = environment['DATA_DIR'] ?? '';
  cpSync(prepared, folder, { recursive: true });
  const server = runServer(environment);
  return { environment, folder, server, base: await baseOf(server) };
}

const removed = (folder: string) =>
  `The folder ${folder} of the embedded database was removed or replaced while it was in use: put it back if you can, then start again.`;

test.each<[string, (folder: string) => void]>([
  ['moved away', (folder) => renameSync(folder, `${folder}-moved`)],
  [
    'replaced by a copy',
    (folder) => {
      renameSync(folder, `${folder}-moved`);
      mkdirSync(folder);
      cpSync(join(`${folder}-moved`, 'pgdata'), join(folder, 'pgdata'), { recursive: true });
    },
  ],
  [
    'emptied and filled from a copy',
    (folder) => {
      rmSync(join(folder, 'pgdata'), { recursive: true });
      cpSync(inject('embeddedTemplate'), join(folder, 'pgdata'), { recursive: true });
    },
  ],
])(
  'the folder of the embedded database that is %s ends the process with one sentence',
  async (_what, change) => {
    const { folder, server, base, environment } = await runPrepared();
    expect((await publish(base)).status).toBe(201);
    change(folder);
    expect(await failure(server)).toBe(removed(folder));
    rmSync(`${folder}-moved`, { recursive: true, force: true });
    expect(readdirSync(environment['TMPDIR'] ?? '')).toEqual([]);
  },
);

test('the end of a process whose folder was replaced leaves the socket of the process that uses the new folder', async () => {
  const { folder, server, environment } = await runPrepared();
  // It notices only when the other one listens.
  server.child.kill('SIGSTOP');
  renameSync(folder, `${folder}-moved`);
  cpSync(prepared, folder, { recursive: true });
  const next = runServer(environment);
  const base = await baseOf(next);
  server.child.kill('SIGCONT');
  expect(await failure(server)).toBe(removed(folder));
  rmSync(`${folder}-moved`, { recursive: true });
  const sockets = [folder, environment['TMPDIR'] ?? '']
    .flatMap((path) => readdirSync(path, { recursive: true, encoding: 'utf8' }))
    .filter((path) => path.endsWith('.s.PGSQL.5432'));
  expect(sockets).toHaveLength(1);
  expect((await publish(base)).status).toBe(201);
  expect(await stop(next)).toBe(0);
});

test('a folder of the embedded database with a path of 98 bytes is opened, and the socket of a PostgreSQL in it is left', async () => {
  const { DATA_DIR = '', ...environment } = await newEnvironment('embedded');
  const folder = join(DATA_DIR, 'x'.repeat(98 - DATA_DIR.length - 1));
  cpSync(prepared, folder, { recursive: true });
  const socket = join(folder, '.s.PGSQL.5432');
  writeFileSync(socket, 'of another server');
  const server = runServer({ ...environment, DATA_DIR: folder });
  expect((await publish(await baseOf(server))).status).toBe(201);
  expect(await stop(server)).toBe(0);
  expect(readFileSync(socket, 'utf8')).toBe('of another server');
});

test('the folder of the embedded database that is removed takes nothing more, and ends the process, too', async () => {
  const { folder, server, base } = await runPrepared();
  rmSync(folder, { recursive: true });
  // A 503, or no answer at all when the process is faster.
  const taken = publish(base).then(({ status }) => status);
  expect(await taken.catch(() => 503)).toBe(503);
  expect(await failure(server)).toBe(removed(folder));
});

test('the folder of the embedded database without a part is refused, and left as it is', async () => {
  const { environment, folder, server, base } = await runPrepared();
  expect((await publish(base)).status).toBe(201);
  expect(await stop(server)).toBe(0);
  for (const part of ['PG_VERSION', 'base', 'global/pg_control', 'pg_wal', 'pg_xact']) {
    const path = join(folder, 'pgdata', part);
    renameSync(path, join(folder, 'aside'));
    expect(await failure(runServer(environment))).toBe(
      `The database in ${join(folder, 'pgdata')} is not complete (${part} missing): restore the folder from a backup, or set DATA_DIR to another one.`,
    );
    renameSync(join(folder, 'aside'), path);
  }
  const again = runServer(environment);
  expect(await listing(await baseOf(again))).toMatchObject({ count: 2_401 });
  expect(await stop(again)).toBe(0);
});

test('the folder of the embedded database is cleared of what a killed process has left, and living ones keep theirs', async () => {
  const living = await runPrepared();
  const TMPDIR = living.environment['TMPDIR'] ?? '';
  const [own = ''] = readdirSync(TMPDIR);
  const { environment, server } = await runPrepared({ TMPDIR });
  server.child.kill('SIGKILL');
  await server.ended;
  const [dead = ''] = readdirSync(TMPDIR).filter((name) => name !== own);
  mkdirSync(join(TMPDIR, 'outfit-gateway-notes1'));

  const next = runServer(environment);
  await baseOf(next);
  const found = readdirSync(TMPDIR);
  expect(found).toEqual(expect.arrayContaining([own, 'outfit-gateway-notes1']));
  // Its own comes in addition.
  expect(found.length).toBe(3);
  expect(found).not.toContain(dead);
  expect(readdirSync(environment['DATA_DIR'] ?? '').sort()).toEqual(['lock', 'pgdata']);
  expect((await publish(living.base)).status).toBe(201);
  expect(await stop(next)).toBe(0);
  expect(await stop(living.server)).toBe(0);
  expect(readdirSync(TMPDIR)).toEqual(['outfit-gateway-notes1']);
});

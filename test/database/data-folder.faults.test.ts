// The folder of the embedded database: when it goes away, lacks a part, or holds what is left of others.
import { cpSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import * as check from '../../src/commands/check.ts';
import { callCommand } from '../support/cli/commands.ts';
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
async function runPrepared() {
  const environment = await newEnvironment('embedded');
  const folder = environment['DATA_DIR'] ?? '';
  cpSync(prepared, folder, { recursive: true });
  const server = runServer(environment);
  return { environment, folder, server, base: await baseOf(server) };
}

const removed = (folder: string) =>
  `The folder ${folder} of the embedded database was removed or replaced while it was in use: put it back if you can, then start again.`;

test.each<[string, (folder: string) => void]>([
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
    const { folder, server, base } = await runPrepared();
    expect((await publish(base)).status).toBe(201);
    change(folder);
    expect(await failure(server)).toBe(removed(folder));
    rmSync(`${folder}-moved`, { recursive: true, force: true });
  },
);

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
  for (const part of ['PG_VERSION', 'global/pg_control', 'pg_wal', 'pg_xact', 'base']) {
    const path = join(folder, 'pgdata', part);
    renameSync(path, join(folder, 'aside'));
    const sentence = `The database in ${join(folder, 'pgdata')} is not complete (${part} missing): restore the folder from a backup, or set DATA_DIR to another one.`;
    const { stdout } = await callCommand(check, [], { DATA_DIR: folder });
    expect(stdout).toContain(`wrong: DATA_DIR: ${sentence}`);
    if (part === 'base') expect(await failure(runServer(environment))).toBe(sentence);
    renameSync(join(folder, 'aside'), path);
  }
  const again = runServer(environment);
  expect(await listing(await baseOf(again))).toMatchObject({ count: 2_401 });
  expect(await stop(again)).toBe(0);
});

test('the folder of the embedded database that a killed process has left is used again, and has nothing of it at the end', async () => {
  const { environment, folder, server } = await runPrepared();
  server.child.kill('SIGKILL');
  await server.ended;
  expect(readdirSync(folder).sort()).toEqual(['.s.PGSQL.5432', 'lock', 'pgdata']);
  const next = runServer(environment);
  expect((await publish(await baseOf(next))).status).toBe(201);
  expect(await stop(next)).toBe(0);
  expect(readdirSync(folder)).toEqual(['pgdata']);
});

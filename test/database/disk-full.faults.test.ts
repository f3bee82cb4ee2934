// The disk of the embedded database is full: a small file system really is.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, statfsSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import * as counts from '../../src/commands/counts.ts';
import { readConfig } from '../../src/config/config.ts';
import { openDatabase } from '../../src/database/database.ts';
import { httpErrorFor } from '../../src/database/errors.ts';
import { migrate } from '../../src/database/migrations.ts';
import { saveOutfits } from '../../src/outfits/writes/bulk.ts';
import { callCommand } from '../support/cli/commands.ts';
import { baseOf, failure, listing, runServer, stop } from '../support/cli/process.ts';

function mount(folder: string): void {
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=90m', 'tmpfs', folder], { stdio: 'ignore' });
}

function canMount(): boolean {
  const folder = mkdtempSync(join(tmpdir(), 'outfit-gateway-test-'));
  try {
    mount(folder);
    execFileSync('umount', [folder]);
    return true;
  } catch {
    return false;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'outfit-gateway-test-'));
  mount(folder);
});

afterEach(() => {
  // Lazily: a process that failed its test may still be open.
  execFileSync('umount', ['-l', folder]);
  rmSync(folder, { recursive: true, force: true });
});

/** Leaves so many bytes free, at most. */
function fillDisk(free: number): void {
  const { bavail, bsize } = statfsSync(folder);
  try {
    writeFileSync(join(folder, 'filler'), Buffer.alloc(Math.max(0, bavail * bsize - free)));
  } catch (error) {
    if (!(error instanceof Error && error.message.startsWith('ENOSPC'))) throw error;
  }
}

function freeDisk(): void {
  truncateSync(join(folder, 'filler'));
}

describe.skipIf(!canMount())('a full disk under the embedded database', () => {
  test('fails the write that needs room with a clear 503, while reads go on; when its log cannot grow it ends with one sentence; all answered is kept', async () => {
    const DATA_DIR = join(folder, 'data');
    const database = await openDatabase(readConfig({ DATA_DIR }));
    const { pool, failed } = database;
    const failureOf = (work: Promise<unknown>) =>
      work.then(
        () => undefined,
        (error) => `${httpErrorFor(error)?.status} ${error.message}`,
      );
    await migrate(pool, () => {});
    const rows = [...generateOutfits({ outfits: 10_000, users: 50 })];
    let saved = 100;
    const saveNext = () => failureOf(saveOutfits(pool, rows.slice(saved, saved + 1000)));
    await saveOutfits(pool, rows.slice(0, saved));
    fillDisk(2_000_000);
    let refused = await saveNext();
    for (; refused === undefined; refused = await saveNext()) saved += 1000;
    const noSpace = /^503 .*No space left on device/;
    expect(refused).toMatch(noSpace);
    expect((await pool.query('SELECT FROM outfits LIMIT 20')).rowCount).toBe(20);
    await pool.query('SELECT pg_switch_wal()');
    // It needs room in the log alone: a write of rows may fail for the file of its table before.
    const inLog = pool.query("SELECT setval('outfits_id_seq', 20000)");
    expect(await failureOf(inLog)).toMatch(noSpace);
    expect((await failed).message).toMatch(/^The embedded database in .* has stopped: make room /);
    await database.close();

    freeDisk();
    const environment = { DATA_DIR, SEED: 'none' };
    expect(await callCommand(counts, ['check'], environment)).toMatchObject({ code: 0 });
    const server = runServer(environment);
    expect((await listing(await baseOf(server))).count).toBe(saved);
    expect(await stop(server)).toBe(0);
  });

  test.each([0, 20_000_000])(
    'lets the gateway end with one sentence when it cannot even start with %i bytes',
    async (free) => {
      fillDisk(free);
      const environment = { DATA_DIR: join(folder, 'data') };
      expect(await failure(runServer(environment))).toBe(
        `The embedded database in ${join(folder, 'data')} cannot be opened (its disk is full): make room, or set DATA_DIR to a folder on another disk.`,
      );
      freeDisk();
      expect(await baseOf(runServer(environment))).toMatch(/^http/);
    },
  );

  test('a folder of the embedded database that is read-only is named with the lock that a killed process has left in it', async () => {
    const environment = { DATA_DIR: join(folder, 'data'), SEED: 'none' };
    const killed = runServer(environment);
    await baseOf(killed);
    killed.child.kill('SIGKILL');
    await killed.ended;
    execFileSync('mount', ['-o', 'remount,ro', folder]);
    expect(await failure(runServer(environment))).toMatch(
      /^DATA_DIR is ".*", but the lock that an ended process has left there cannot be removed \(EROFS: read-only file system, .*\): make the folder writable, or set DATA_DIR to another one\.$/,
    );
    execFileSync('mount', ['-o', 'remount,rw', folder]);
    const next = runServer(environment);
    await baseOf(next);
    expect(await stop(next)).toBe(0);
  });
});

// The disk of the embedded database is full: a small file system really is.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, renameSync, rmSync, statfsSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { baseOf, dist, failure, listing, run, runServer, stop } from '../support/cli/process.ts';

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

const src = fileURLToPath(new URL('../../src/', import.meta.url));

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
    writeFileSync(join(folder, 'filling'), Buffer.alloc(Math.max(0, bavail * bsize - free)));
  } catch (error) {
    if (!(error instanceof Error && error.message.startsWith('ENOSPC'))) throw error;
  }
  // The writer waits for this name.
  renameSync(join(folder, 'filling'), join(folder, 'filler'));
}

function freeDisk(): void {
  truncateSync(join(folder, 'filler'));
}

/** Saves 100 outfits, waits until its folder is full, and says what becomes of writes and reads. */
const writer = `
  import { setTimeout } from 'node:timers/promises';
  import { existsSync } from 'node:fs';
  import { openDatabase } from '${src}database/database.ts';
  import { migrate } from '${src}database/migrations.ts';
  import { httpErrorFor } from '${src}database/errors.ts';
  import { generateOutfits } from '${src}../bench/outfits/generate.ts';
  import { saveOutfits } from '${src}outfits/writes/bulk.ts';
  const database = await openDatabase({ dataDir: process.env.DATA_DIR, databasePoolMax: 1 });
  database.failed.then((error) => console.log('failed: ' + error.message));
  const { pool } = database;
  const attempt = (name, work) => work.then(
    () => { console.log(name + ' done'); return true; },
    (error) => console.log(name + ' ' + httpErrorFor(error)?.status + ' ' + error.message),
  );
  await migrate(pool, () => {});
  const rows = [...generateOutfits({ outfits: 10_000, users: 50 })];
  let saved = 100;
  await saveOutfits(pool, rows.slice(0, saved));
  console.log('ready');
  while (!existsSync(process.env.DATA_DIR + '/../filler')) await setTimeout(20);
  while (await attempt('write', saveOutfits(pool, rows.slice(saved, saved + 1000)))) saved += 1000;
  await attempt('read', pool.query('SELECT * FROM outfits ORDER BY created LIMIT 20'));
  console.log('saved ' + saved);
  await attempt('switch', pool.query('SELECT pg_switch_wal()'));
  // It needs room in the log alone: a write of rows may fail for the file of its table before.
  await attempt('last write', pool.query("SELECT setval('outfits_id_seq', 20000)"));
  await Promise.race([database.failed, setTimeout(20_000)]);
  console.log('end');
  await setTimeout(60_000);`;

describe.skipIf(!canMount())('a full disk under the embedded database', () => {
  test('fails the write that needs room with a clear 503, while reads go on; when its log cannot grow it ends with one sentence; all answered is kept', async () => {
    const environment = { DATA_DIR: join(folder, 'data'), SEED: 'none' };
    const script = join(tmpdir(), `outfit-gateway-${process.pid}-writer.mjs`);
    writeFileSync(script, writer);
    const writing = run(['--import', 'tsx', script], environment);
    await writing.until(/ready/);
    fillDisk(2_000_000);
    await writing.until(/^end$/m);
    const noSpace = '503 .*No space left on device';
    expect(writing.output()).toMatch(
      new RegExp(
        `^write ${noSpace}$\nread done\nsaved \\d+\nswitch done\nlast write ${noSpace}$`,
        'm',
      ),
    );
    expect(writing.output()).toMatch(
      /^failed: The embedded database in .* has stopped: make room /m,
    );
    writing.child.kill('SIGKILL');
    await writing.ended;
    rmSync(script);

    freeDisk();
    const checking = run([`${dist}commands/cli.js`, 'counts', 'check'], environment);
    expect(await checking.ended, checking.output() + checking.errors()).toBe(0);
    const server = runServer(environment);
    const [, saved] = await writing.until(/^saved (\d+)$/m);
    expect((await listing(await baseOf(server))).count).toBe(Number(saved));
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
});

describe.skipIf(!canMount())('a folder of the embedded database that is read-only', () => {
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

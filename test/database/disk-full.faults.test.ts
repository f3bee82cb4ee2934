// The disk of the embedded database is full: a small file system really is.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, renameSync, rmSync, statfsSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { baseOf, dist, failure, type Run, run, runServer, stop } from '../support/cli/process.ts';
import { send } from '../support/faults/load.ts';

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

/**
 * A process on the database that first saves 100 outfits, then waits until its folder is full, runs
 * the given steps, and says what became of each.
 */
function startWriter(steps: string): Run {
  const script = join(tmpdir(), `outfit-gateway-${process.pid}-writer.mjs`);
  writeFileSync(
    script,
    `
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
    const say = (work, name) => work.then(
      () => console.log(name + ' done'),
      (error) => console.log(name + ' ' + httpErrorFor(error)?.status + ' ' + error.message),
    );
    await migrate(pool, () => {});
    const rows = [...generateOutfits({ outfits: 30_000, users: 50 })];
    await saveOutfits(pool, rows.slice(0, 100));
    console.log('ready');
    while (!existsSync(process.env.DATA_DIR + '/../filler')) await setTimeout(20);
    ${steps}
    console.log('end');
    await setTimeout(60_000);`,
  );
  return run(['--import', 'tsx', script], { DATA_DIR: join(folder, 'data') });
}

/** What a gateway finds there, with room again. */
async function count(): Promise<number> {
  const environment = { DATA_DIR: join(folder, 'data'), SEED: 'none' };
  const checking = run([`${dist}commands/cli.js`, 'counts', 'check'], environment);
  expect(await checking.ended, checking.output() + checking.errors()).toBe(0);
  const server = runServer(environment);
  const { status, body } = await send(await baseOf(server), '/api/outfits/');
  expect(status).toBe(200);
  expect(await stop(server)).toBe(0);
  return JSON.parse(body).count;
}

describe.skipIf(!canMount())('a full disk under the embedded database', () => {
  test('fails the write that needs room with a clear 503; reads go on, and all answered is kept', async () => {
    const writer = startWriter(`
      for (let from = 100; ; from += 1000) {
        const saved = await saveOutfits(pool, rows.slice(from, from + 1000)).catch((error) => error);
        if (saved instanceof Error) { await say(Promise.reject(saved), 'write'); break; }
        console.log('saved up to ' + (from + 1000));
      }
      await say(pool.query('SELECT * FROM outfits ORDER BY created LIMIT 20'), 'read');`);
    await writer.until(/ready/);
    fillDisk(2_000_000);
    await writer.until(/^end$/m);
    expect(writer.output()).toMatch(/^write 503 .*No space left on device$/m);
    expect(writer.output()).toMatch(/^read done$/m);
    writer.child.kill('SIGKILL');
    await writer.ended;
    const saved = [...writer.output().matchAll(/saved up to (\d+)/g)].map(([, to]) => Number(to));
    freeDisk();
    expect(await count()).toBe(saved.at(-1) ?? 100);
  });

  test('ends it with one sentence when its log cannot grow, and the data opens again', async () => {
    const writer = startWriter(`
      await say(pool.query('UPDATE outfit_like_counts SET likes = 4242 WHERE id = 1'), 'small write');
      await pool.query('SELECT pg_switch_wal()');
      await say(pool.query('UPDATE outfit_like_counts SET likes = 4343 WHERE id = 1'), 'write');
      await Promise.race([database.failed, setTimeout(20_000)]);`);
    await writer.until(/ready/);
    fillDisk(0);
    await writer.until(/^end$/m);
    expect(writer.output()).toMatch(/^small write done$/m);
    expect(writer.output()).toMatch(/^write 503 .*No space left on device$/m);
    expect(writer.output()).toMatch(
      /^failed: The embedded database in .* has stopped: make room /m,
    );
    writer.child.kill('SIGKILL');
    await writer.ended;
    freeDisk();
    expect(await count()).toBe(100);
  });

  test.each([0, 1_000_000, 20_000_000])(
    'lets the gateway end with one sentence when it cannot even start with %i bytes',
    async (free) => {
      fillDisk(free);
      const server = runServer({ DATA_DIR: join(folder, 'data') });
      expect(await server.ended).toBe(1);
      expect(server.errors()).toBe(
        `The embedded database in ${join(folder, 'data')} cannot be opened (its disk is full): make room, or set DATA_DIR to a folder on another disk.\n`,
      );
      freeDisk();
      expect(await baseOf(runServer({ DATA_DIR: join(folder, 'data') }))).toMatch(/^http/);
    },
  );
});

describe.skipIf(!canMount())('a folder of the embedded database that is read-only', () => {
  test('is named with the lock that a killed process has left in it', async () => {
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

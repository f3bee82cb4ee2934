// Where the databases of tests are made: in memory, if there is room for them. On a disk, making one of PostgreSQL
// takes ten times as long, and there are hundreds. JavaScript, because the benchmark runs without a build (on the
// disk: it does not ask for memory).
import { mkdtempSync, statfsSync } from 'node:fs';
import { freemem, tmpdir } from 'node:os';
import { join } from 'node:path';

/** Bytes: what all databases of a lane take at a time, and as much again for the processes. */
const room = 8 * 2 ** 30;

/** A folder for the databases of a run of tests: that of Linux in memory, or the temporary one. */
export function findDatabaseFolder() {
  const inMemory = '/dev/shm';
  try {
    const { bavail, bsize } = statfsSync(inMemory);
    return Math.min(bavail * bsize, freemem()) >= room ? inMemory : tmpdir();
  } catch {
    return tmpdir();
  }
}

/**
 * A new folder for one database.
 * @param {string} name
 */
export function makeDatabaseFolder(name) {
  const parent = process.env['TEST_DATABASE_FOLDER'] ?? tmpdir();
  return mkdtempSync(join(parent, `outfit-gateway-${name}-`));
}

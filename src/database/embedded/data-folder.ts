// Data folder of the embedded database: created, locked, and checked before anything is written to it.
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { messageOf, OperatorError } from '../../errors.ts';
import { askHolder, LockedError, StaleLockError, takeLock } from './lock.ts';

/** The embedded database cannot be opened. The message is one sentence that says what to change. */
export class EmbeddedDatabaseError extends OperatorError {
  override readonly name = 'EmbeddedDatabaseError';
}

export interface DataFolder {
  /** Folder of the files of PostgreSQL. */
  readonly database: string;
  /** Path of the lock, which this process holds while it exists. */
  readonly lock: string;
  /** Beginning of the path of the temporary folder of its socket. */
  readonly socketPrefix: string;
  /** Marker file in `database`, to be removed when all its files are written. */
  readonly unfinished: string;
  release(): Promise<void>;
}

/** Creates the folder if it does not exist, and locks it. @throws EmbeddedDatabaseError */
export async function takeDataFolder(dataDir: string): Promise<DataFolder> {
  const folder = resolve(dataDir);
  checkPaths(dataDir);
  try {
    makeFolder(folder);
  } catch (error) {
    throw new EmbeddedDatabaseError(
      `DATA_DIR is ${JSON.stringify(dataDir)}, but that folder cannot be made (${messageOf(error)}): set it to one that can be written.`,
    );
  }
  const lock = join(folder, 'lock');
  const release = await lockFolder(lockPathOf(folder), dataDir);
  const database = join(folder, 'pgdata');
  const unfinished = join(database, 'unfinished');
  try {
    const socketPrefix = prefixOf(folder);
    removeLeft(socketPrefix);
    prepare(database, unfinished);
    return { database, lock, socketPrefix, unfinished, release };
  } catch (error) {
    await release();
    throw error instanceof EmbeddedDatabaseError ? error : cannotOpen(dataDir, error);
  }
}

/** Bytes of the path of a Unix socket: Linux has 107, macOS 103. Node.js 20 cuts a longer one without a word. */
const maxSocketPath = 103;
/** Absolute: `pg` takes another host for the name of a server. */
const temporaryFolder = () => resolve(tmpdir());
const socketName = '.s.PGSQL.5432';

/** @throws EmbeddedDatabaseError when a socket cannot be made in one of the folders */
function checkPaths(dataDir: string): void {
  const temporary = temporaryFolder();
  const fits = (path: string) => Buffer.byteLength(path) <= maxSocketPath;
  if (!fits(lockPathOf(resolve(dataDir)))) {
    throw new EmbeddedDatabaseError(
      `DATA_DIR is ${JSON.stringify(dataDir)}, but its path is too long for a lock: set it to one with a path of up to ${maxSocketPath - 5} bytes.`,
    );
  }
  let problem = fits(join(temporary, `outfit-gateway-${'x'.repeat(30)}`, socketName))
    ? undefined
    : 'its path is too long for a socket';
  try {
    accessSync(temporary, constants.W_OK | constants.X_OK);
  } catch (error) {
    problem = messageOf(error);
  }
  if (problem === undefined) return;
  throw new EmbeddedDatabaseError(
    `The folder for temporary files is ${JSON.stringify(temporary)}, but ${problem}: set TMPDIR to one that can be written, with a short path.`,
  );
}

/** A relative path is often shorter. */
function lockPathOf(folder: string): string {
  const path = join(folder, 'lock');
  const fromHere = relative('.', path);
  return fromHere.length < path.length ? fromHere : path;
}

/** By its inode: no copy of the folder has the same. */
function prefixOf(folder: string): string {
  const { dev, ino } = statSync(folder);
  return join(temporaryFolder(), `outfit-gateway-${dev.toString(36)}-${ino.toString(36)}-`);
}

/** Removes the sockets of killed processes: of those that live, this one alone has the lock of the folder. */
function removeLeft(prefix: string): void {
  for (const name of readdirSync(temporaryFolder())) {
    const path = join(temporaryFolder(), name);
    if (path.startsWith(prefix)) rmSync(path, { recursive: true, force: true });
  }
}

/** ENOSPC in WASI: the errors of PGlite's file system have this number and no message. */
const noSpace = 51;

export function cannotOpen(dataDir: string, error: unknown): EmbeddedDatabaseError {
  const { code, errno } = error as { readonly code?: unknown; readonly errno?: unknown };
  const isFull = code === 'ENOSPC' || errno === noSpace;
  const why = error instanceof Error ? error.message : `error ${errno}`;
  return new EmbeddedDatabaseError(
    isFull
      ? `The embedded database in ${dataDir} cannot be opened (its disk is full): make room, or set DATA_DIR to a folder on another disk.`
      : `The embedded database in ${dataDir} cannot be opened (${why}): check the folder, or set DATA_DIR to another one.`,
    { cause: error },
  );
}

/** Replaces the recursive `mkdirSync` of Node.js, which never returns where it cannot create one, such as in /proc. */
export function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'EEXIST' && statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return;
    const parent = dirname(folder);
    if (code !== 'ENOENT' || existsSync(parent)) throw error;
    makeFolder(parent);
    mkdirSync(folder, { mode: 0o700 });
  }
}

async function lockFolder(path: string, dataDir: string): Promise<() => Promise<void>> {
  try {
    return await takeLock(path);
  } catch (error) {
    if (error instanceof LockedError) {
      throw new EmbeddedDatabaseError(
        `The embedded database in ${dataDir} is in use by process ${error.holder}: stop that process, or set DATA_DIR to another folder.`,
      );
    }
    if (error instanceof StaleLockError) {
      throw new EmbeddedDatabaseError(
        `DATA_DIR is ${JSON.stringify(dataDir)}, but the lock that an ended process has left there cannot be removed (${error.message}): make the folder writable, or set DATA_DIR to another one.`,
      );
    }
    throw new EmbeddedDatabaseError(
      `DATA_DIR is ${JSON.stringify(dataDir)}, but it cannot be locked (${messageOf(error)}): set it to a writable local folder with a short path.`,
    );
  }
}

/** Files of every database. Without PG_VERSION, PGlite overwrites a folder; without others it fails with no reason. */
const parts = ['PG_VERSION', 'base', 'global/pg_control', 'pg_wal', 'pg_xact'];

function prepare(database: string, unfinished: string): void {
  if (!existsSync(database)) mkdirSync(database, { mode: 0o700 });
  if (existsSync(unfinished)) {
    // The first start was interrupted, and the database never used. The marker is removed last.
    for (const name of readdirSync(database)) {
      const path = join(database, name);
      if (path !== unfinished) rmSync(path, { recursive: true, force: true });
    }
    return;
  }
  if (readdirSync(database).length === 0) {
    writeFileSync(unfinished, 'The first start has not ended: this is not a database yet.\n');
    return;
  }
  checkParts(database);
}

function checkParts(database: string): void {
  const missing = parts.filter((part) => !existsSync(join(database, part)));
  if (missing.length > 0) {
    throw new EmbeddedDatabaseError(
      `The database in ${database} is not complete (${missing.join(', ')} missing): restore the folder from a backup, or set DATA_DIR to another one.`,
    );
  }
}

/** What a start will find or make there; opening it would write to it. @throws EmbeddedDatabaseError, Error */
export async function describeDataFolder(dataDir: string): Promise<string> {
  let folder = resolve(dataDir);
  const database = join(folder, 'pgdata');
  checkPaths(dataDir);
  const isNew = !existsSync(database) || existsSync(join(database, 'unfinished'));
  if (!isNew) checkParts(database);
  const holder = await askHolder(lockPathOf(folder));
  if (holder !== undefined)
    return `the embedded database in ${dataDir} is in use by process ${holder}`;
  while (!existsSync(folder)) folder = dirname(folder);
  // A file has no such entry.
  accessSync(`${folder}/.`, constants.W_OK);
  return isNew
    ? `the start makes the embedded database in ${dataDir}`
    : `the embedded database in ${dataDir} is there; the start applies migrations that it lacks`;
}

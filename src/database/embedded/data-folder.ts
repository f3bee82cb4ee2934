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
import { dirname, join, relative, resolve } from 'node:path';
import { messageOf } from '../../errors.ts';
import { askHolder, EmbeddedDatabaseError, takeLock } from './lock.ts';

export interface DataFolder {
  /** Folder of the files of PostgreSQL. */
  readonly database: string;
  /** Path of the lock, which this process holds while it exists. */
  readonly lock: string;
  /** Path of the socket that it listens on. */
  readonly socket: string;
  /** Marker file in `database`, to be removed when all its files are written. */
  readonly unfinished: string;
  release(): Promise<void>;
}

/** Creates the folder if it does not exist, and locks it. @throws EmbeddedDatabaseError */
export async function takeDataFolder(dataDir: string): Promise<DataFolder> {
  const folder = resolve(dataDir);
  checkPath(dataDir);
  try {
    makeFolder(folder);
  } catch (error) {
    throw new EmbeddedDatabaseError(
      `DATA_DIR is ${JSON.stringify(dataDir)}, but that folder cannot be made (${messageOf(error)}): set it to one that can be written.`,
    );
  }
  const lock = join(folder, 'lock');
  const release = await takeLock(shortest(lock), dataDir);
  const database = join(folder, 'pgdata');
  const unfinished = join(database, 'unfinished');
  try {
    const socket = shortest(join(folder, socketName));
    // Of a killed process: the lock is held by this one.
    rmSync(socket, { force: true });
    prepare(database, unfinished);
    return { database, lock, socket, unfinished, release };
  } catch (error) {
    await release();
    throw error instanceof EmbeddedDatabaseError ? error : cannotOpen(dataDir, error);
  }
}

/** Bytes of the path of a Unix socket: Linux has 107, macOS 103. Node.js 20 cuts a longer one without a word. */
const maxSocketPath = 103;
const socketName = '.s.PGSQL.5432';

/** @throws EmbeddedDatabaseError when no socket can be made in the folder */
function checkPath(dataDir: string): void {
  if (Buffer.byteLength(shortest(join(resolve(dataDir), socketName))) <= maxSocketPath) return;
  throw new EmbeddedDatabaseError(
    `DATA_DIR is ${JSON.stringify(dataDir)}, but its path is too long for a socket: set it to one with a path of up to ${maxSocketPath - socketName.length - 1} bytes.`,
  );
}

/** A relative path is often shorter. */
function shortest(path: string): string {
  const fromHere = relative('.', path);
  return fromHere.length < path.length ? fromHere : path;
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
  checkPath(dataDir);
  const isNew = !existsSync(database) || existsSync(join(database, 'unfinished'));
  if (!isNew) checkParts(database);
  const holder = await askHolder(shortest(join(folder, 'lock')));
  if (holder !== undefined)
    return `the embedded database in ${dataDir} is in use by process ${holder}`;
  while (!existsSync(folder)) folder = dirname(folder);
  accessSync(folder, constants.W_OK);
  return isNew
    ? `the start makes the embedded database in ${dataDir}`
    : `the embedded database in ${dataDir} is there; the start applies migrations that it lacks`;
}

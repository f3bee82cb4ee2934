// One process per data folder.
import { once } from 'node:events';
import { renameSync, rmSync, statSync } from 'node:fs';
import { createConnection, createServer, type Server } from 'node:net';
import { messageOf } from '../errors.ts';

/** Another process holds the lock. */
export class LockedError extends Error {
  override readonly name = 'LockedError';
  constructor(
    /** Its process id. */
    readonly holder: string,
  ) {
    super(`Locked by process ${holder}.`);
  }
}

/** The process that held the lock has ended, but the lock cannot be removed: its folder is read-only, say. */
export class LeftLockError extends Error {
  override readonly name = 'LeftLockError';
}

/**
 * Takes the lock at `path`: a Unix socket that this process listens on. The kernel closes it with
 * the process, however that ends, so nobody has to guess whether a process id in a file is alive
 * (ids are reused, and in containers they are all 1).
 * @returns a function that gives the lock back
 * @throws LockedError while another process holds it
 * @throws LeftLockError when the lock of an ended process cannot be removed
 */
export async function takeLock(path: string): Promise<() => Promise<void>> {
  const server = createServer((socket) => socket.end(String(process.pid)));
  for (let attempt = 0; !(await tryListen(server, path)); attempt++) {
    const found = identify(path);
    const holder = await askHolder(path);
    if (holder !== undefined || attempt === 5) throw new LockedError(holder ?? 'unknown');
    if (found !== undefined) removeStale(path, found);
  }
  server.unref();
  const taken = identify(path);
  return async () => {
    // Closing removes what lies at the path, be it the lock of another process in another folder.
    if (identify(path) !== taken) return;
    server.close();
    await once(server, 'close');
  };
}

async function tryListen(server: Server, path: string): Promise<boolean> {
  try {
    server.listen(path);
    await once(server, 'listening');
    return true;
  } catch (error) {
    if (codeOf(error) === 'EADDRINUSE') return false;
    throw error;
  }
}

/** The holder's process id, or undefined when nobody listens at `path` any more. */
async function askHolder(path: string): Promise<string | undefined> {
  try {
    let holder = '';
    for await (const chunk of createConnection(path).setEncoding('utf8')) holder += chunk;
    return holder;
  } catch {
    return undefined;
  }
}

/** Whether there is a socket at `path` that no process listens on any more. */
export async function isAbandoned(path: string): Promise<boolean> {
  const socket = createConnection(path);
  try {
    await once(socket, 'connect');
    return false;
  } catch (error) {
    return codeOf(error) === 'ECONNREFUSED';
  } finally {
    socket.destroy();
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}

/** Inode numbers are reused at once, so the time of creation is part of a socket's identity. */
function identify(path: string): string | undefined {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stat && `${stat.ino} ${stat.mtimeNs}`;
}

/**
 * Two processes can find the same stale socket, and a plain unlink by the slower one would remove
 * the faster one's fresh lock: so it is moved aside first, and put back if it is not the stale one.
 */
function removeStale(path: string, stale: string): void {
  const aside = `${path}.${process.pid}`;
  try {
    renameSync(path, aside);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return; // the other process was faster
    throw new LeftLockError(messageOf(error), { cause: error });
  }
  const found = identify(aside);
  if (found === stale) rmSync(aside, { force: true });
  else if (found !== undefined) renameSync(aside, path);
}

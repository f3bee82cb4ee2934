// Lock of the data folder: one process at a time.
import { once } from 'node:events';
import { renameSync, rmSync, statSync } from 'node:fs';
import { createConnection, createServer, type Server } from 'node:net';
import { messageOf } from '../../errors.ts';

export class LockedError extends Error {
  override readonly name = 'LockedError';
  constructor(readonly holder: string) {
    super(`Locked by process ${holder}.`);
  }
}

/** The process that held the lock has ended, but the lock cannot be removed: the folder may be read-only. */
export class StaleLockError extends Error {
  override readonly name = 'StaleLockError';
}

/** Listens on a Unix socket, which the kernel closes when the process dies. Returns the release. @throws LockedError */
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
    // Closing unlinks the path, even when it is the lock of another process in a replaced folder by now.
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

/** Process id of the holder; undefined for a stale lock, on which no process listens. */
export async function askHolder(path: string): Promise<string | undefined> {
  try {
    let holder = '';
    for await (const chunk of createConnection(path).setEncoding('utf8')) holder += chunk;
    return holder;
  } catch {
    return undefined;
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}

/** With the modification time, since inode numbers are reused at once. */
function identify(path: string): string | undefined {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stat && `${stat.ino} ${stat.mtimeNs}`;
}

/** Moves the lock aside and checks it before unlinking: another process may have replaced it with a fresh one. */
function removeStale(path: string, stale: string): void {
  const aside = `${path}.${process.pid}`;
  try {
    renameSync(path, aside);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return; // the other process was faster
    throw new StaleLockError(messageOf(error), { cause: error });
  }
  const found = identify(aside);
  if (found === stale) rmSync(aside, { force: true });
  else if (found !== undefined) renameSync(aside, path);
}

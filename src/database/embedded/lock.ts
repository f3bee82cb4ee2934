// Lock of the data folder: one process at a time.
import { once } from 'node:events';
import { renameSync, rmSync, statSync } from 'node:fs';
import { createConnection, createServer, type Server } from 'node:net';
import { messageOf, OperatorError } from '../../errors.ts';

/** The embedded database cannot be opened. The message is one sentence that says what to change. */
export class EmbeddedDatabaseError extends OperatorError {
  override readonly name = 'EmbeddedDatabaseError';
}

/**
 * Listens on a Unix socket, which the kernel closes when the process dies. Returns the release.
 * @param dataDir for the error @throws EmbeddedDatabaseError
 */
export async function takeLock(path: string, dataDir: string): Promise<() => Promise<void>> {
  const server = createServer((socket) => socket.end(String(process.pid)));
  for (let attempt = 0; !(await tryListen(server, path, dataDir)); attempt++) {
    const found = identify(path);
    const holder = await askHolder(path);
    if (holder !== undefined || attempt === 5) {
      throw new EmbeddedDatabaseError(
        `The embedded database in ${dataDir} is in use by process ${holder ?? 'unknown'}: stop that process, or set DATA_DIR to another folder.`,
      );
    }
    if (found !== undefined) removeStale(path, found, dataDir);
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

async function tryListen(server: Server, path: string, dataDir: string): Promise<boolean> {
  try {
    server.listen(path);
    await once(server, 'listening');
    return true;
  } catch (error) {
    if (codeOf(error) === 'EADDRINUSE') return false;
    throw new EmbeddedDatabaseError(
      `DATA_DIR is ${JSON.stringify(dataDir)}, but it cannot be locked (${messageOf(error)}): set it to a writable local folder with a short path.`,
    );
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
function removeStale(path: string, stale: string, dataDir: string): void {
  const aside = `${path}.${process.pid}`;
  try {
    renameSync(path, aside);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return; // the other process was faster
    throw new EmbeddedDatabaseError(
      `DATA_DIR is ${JSON.stringify(dataDir)}, but the lock that an ended process has left there cannot be removed (${messageOf(error)}): make the folder writable, or set DATA_DIR to another one.`,
    );
  }
  const found = identify(aside);
  if (found === stale) rmSync(aside, { force: true });
  else if (found !== undefined) renameSync(aside, path);
}

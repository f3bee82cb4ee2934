import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { Worker } from 'node:worker_threads';
import { LockedError, takeLock } from './lock.ts';

/** A running embedded database. */
export interface EmbeddedDatabase {
  /** Folder that holds its Unix socket, to be given to `pg` as the host. */
  readonly socketFolder: string;
  /** Resolves when the database has stopped by itself, which it only does by failing. */
  readonly failed: Promise<Error>;
  close(): Promise<void>;
}

/** The embedded database cannot be opened; the message is one sentence that says what to change. */
export class EmbeddedDatabaseError extends Error {
  override readonly name = 'EmbeddedDatabaseError';
}

/**
 * Opens (and on first use creates) the embedded PostgreSQL in `dataDir`, in a thread of its own.
 * @throws EmbeddedDatabaseError when the folder is in use by another process or cannot be written
 */
export async function openEmbedded(dataDir: string): Promise<EmbeddedDatabase> {
  const folder = resolve(dataDir);
  makeFolder(folder, dataDir);
  const unlock = await lockFolder(folder, dataDir);
  const socketFolder = mkdtempSync(join(tmpdir(), 'outfit-gateway-'));
  chmodSync(socketFolder, 0o700);
  const release = async () => {
    rmSync(socketFolder, { recursive: true, force: true });
    await unlock();
  };

  const worker = new Worker(new URL('./embedded-worker.js', import.meta.url), {
    workerData: {
      dataDir: join(folder, 'pgdata'),
      socketPath: join(socketFolder, '.s.PGSQL.5432'),
    },
  });
  const exited = once(worker, 'exit').catch(() => {});
  let isClosing = false;
  const failed = new Promise<Error>((settle) => {
    worker.once('error', settle);
    // PostgreSQL's PANIC, when it cannot write its log, ends the thread without an error.
    worker.once('exit', () => {
      if (isClosing) return;
      settle(
        new EmbeddedDatabaseError(
          `The embedded database in ${dataDir} has stopped: make room if its disk is full, then start again. What was answered is saved.`,
        ),
      );
    });
  });
  const opened = await Promise.race([once(worker, 'message').then(() => undefined), failed]);
  if (opened) {
    await release();
    throw new EmbeddedDatabaseError(
      `The embedded database in ${dataDir} cannot be opened (${opened.message}): check the folder, or set DATA_DIR to another one.`,
      { cause: opened },
    );
  }

  return {
    socketFolder,
    failed,
    async close() {
      isClosing = true;
      worker.postMessage('close');
      await exited;
      await release();
    },
  };
}

function makeFolder(folder: string, shown: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new EmbeddedDatabaseError(
      `DATA_DIR is ${JSON.stringify(shown)}, but that folder cannot be made (${reason}): set it to one that can be written.`,
    );
  }
}

async function lockFolder(folder: string, shown: string): Promise<() => Promise<void>> {
  // A socket's path may have about 100 bytes; from the working folder it is often shorter.
  const absolute = join(folder, 'lock');
  const fromHere = relative('.', absolute);
  try {
    return await takeLock(fromHere.length < absolute.length ? fromHere : absolute);
  } catch (error) {
    if (error instanceof LockedError) {
      throw new EmbeddedDatabaseError(
        `The embedded database in ${shown} is in use by process ${error.holder}: stop that process, or set DATA_DIR to another folder.`,
      );
    }
    const reason = error instanceof Error ? error.message : String(error);
    throw new EmbeddedDatabaseError(
      `DATA_DIR is ${JSON.stringify(shown)}, but it cannot be locked (${reason}): set it to a writable local folder with a short path.`,
    );
  }
}

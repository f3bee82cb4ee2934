import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { packageFolder } from '../../package.ts';
import { readMigrations } from '../migrations.ts';
import { cannotOpen, EmbeddedDatabaseError, takeDataFolder } from './data-folder.ts';
import { removeLeftOvers } from './lock.ts';

export interface EmbeddedDatabase {
  /** Folder that holds its Unix socket, to be given to `pg` as the host. */
  readonly socketFolder: string;
  /** Resolves when the database has stopped by itself, which it only does by failing. */
  readonly failed: Promise<Error>;
  close(): Promise<void>;
}

/** The thread's exit code when it finds that its files are not there any more. */
const filesGone = 2;

/** The path of the template: a digest of the migrations names it, so that one that was made with others is not found. */
export function findTemplate(): string {
  const digest = createHash('sha256');
  for (const { name, checksum } of readMigrations()) digest.update(`${name} ${checksum}\n`);
  const name = `template-${digest.digest('hex').slice(0, 16)}.br`;
  return fileURLToPath(new URL(`dist/database/${name}`, packageFolder));
}

/** Opens (and on first use creates) the embedded PostgreSQL, in a thread of its own. @throws EmbeddedDatabaseError */
export async function openEmbedded(dataDir: string): Promise<EmbeddedDatabase> {
  const { release, ...folder } = await takeDataFolder(dataDir);
  await removeLeftOvers(folder.lock);

  const worker = new Worker(new URL('dist/database/embedded-worker.js', packageFolder), {
    workerData: { ...folder, template: findTemplate(), filesGone },
  });
  const exited = once(worker, 'exit').catch(() => {});
  let isClosing = false;
  const failed = new Promise<Error>((settle) => {
    worker.once('error', settle);
    // PostgreSQL's PANIC, when it cannot write its log, ends the thread without an error.
    worker.once('exit', (code) => {
      if (isClosing) return;
      settle(
        new EmbeddedDatabaseError(
          code === filesGone
            ? `The folder ${dataDir} of the embedded database was removed or replaced while it was in use: put it back if you can, then start again.`
            : `The embedded database in ${dataDir} has stopped: make room if its disk is full, then start again. What was answered is saved.`,
        ),
      );
    });
  });
  const listening = new Promise<{ socketFolder: string }>((settle) => {
    worker.once('message', (socketFolder) => settle({ socketFolder }));
  });
  const opened = await Promise.race([listening, failed.then((error) => ({ error }))]);
  if ('error' in opened) {
    await release();
    throw cannotOpen(dataDir, opened.error);
  }

  const { socketFolder } = opened;
  worker.once('exit', () => rmSync(socketFolder, { recursive: true, force: true }));
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

// Embedded database: PGlite in a worker thread, behind a Unix socket that the connection pool connects to.
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { packageFolder } from '../../config/package.ts';
import { readMigrations } from '../migrations.ts';
import { cannotOpen, EmbeddedDatabaseError, takeDataFolder } from './data-folder.ts';

export interface EmbeddedDatabase {
  /** Folder of its Unix socket: the option `host` of `pg`. */
  readonly socketFolder: string;
  /** Resolves when the database has failed. */
  readonly failed: Promise<Error>;
  close(): Promise<void>;
}

/** Exit code of the thread when its files were deleted or replaced. */
const filesGone = 2;

/** Path of the template. Its name is a digest of the migrations, so that one with other migrations is not used. */
export function findTemplate(): string {
  const digest = createHash('sha256');
  for (const { name, checksum } of readMigrations()) digest.update(`${name} ${checksum}\n`);
  const name = `template-${digest.digest('hex').slice(0, 16)}.br`;
  return fileURLToPath(new URL(`dist/database/${name}`, packageFolder));
}

/** Opens the embedded database, and creates it on first use. @throws EmbeddedDatabaseError */
export async function openEmbedded(dataDir: string): Promise<EmbeddedDatabase> {
  const { release, ...folder } = await takeDataFolder(dataDir);
  const worker = new Worker(new URL('dist/database/embedded-worker.js', packageFolder), {
    workerData: { ...folder, template: findTemplate(), filesGone },
  });
  const exited = once(worker, 'exit').catch(() => {});
  let isClosing = false;
  const failed = new Promise<Error>((settle) => {
    worker.once('error', settle);
    // A PANIC of PostgreSQL ends the thread without an error.
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

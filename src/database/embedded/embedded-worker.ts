// The thread of the embedded database, reached over a Unix socket: PGlite blocks its thread for the whole of a query.
import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { PGlite } from '@electric-sql/pglite';
import { PGLiteSocketServer } from '@electric-sql/pglite-socket';
import type { DataFolder } from './data-folder.ts';
import { unpackTemplate } from './template.ts';

const { database, lock, unfinished, template, filesGone } = workerData as Omit<
  DataFolder,
  'release'
> & {
  readonly template: string;
  readonly filesGone: number;
};

// Without the template PGlite runs initdb.
if (existsSync(unfinished) && existsSync(template)) unpackTemplate(template, database);
const db = await PGlite.create(database);
rmSync(unfinished, { force: true });

// PostgreSQL goes on with deleted files, and loses what it saves. Where one of these two is another, so is the folder.
const identify = () =>
  [lock, join(database, 'PG_VERSION')]
    .map((path) => statSync(path, { bigint: true }))
    .map(({ dev, ino, mtimeNs }) => `${dev} ${ino} ${mtimeNs}`)
    .join();
const identity = identify();
const checkFiles = () => {
  try {
    if (identify() === identity) return;
  } catch {}
  process.exit(filesGone);
};
const timer = setInterval(checkFiles, 1_000);

// PostgreSQL ends itself with a PANIC when it cannot write its log. Here that ends nothing: what comes next would hang.
const panic = Buffer.from('\0VPANIC\0');
const execute = db.execProtocolRawStream.bind(db);
db.execProtocolRawStream = (message, options) =>
  execute(message, {
    ...options,
    onRawData: (data) => {
      // Nothing is acknowledged that was written into the void.
      checkFiles();
      options.onRawData(data);
      const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
      // Not before the client has been told.
      if (bytes.includes(panic)) setTimeout(() => process.exit(1), 100);
    },
  });

// The pool has one connection, but the next one may be made before the end of the last is noticed.
const socketFolder = mkdtempSync(join(tmpdir(), 'outfit-gateway-'));
const server = new PGLiteSocketServer({
  db,
  path: join(socketFolder, '.s.PGSQL.5432'),
  maxConnections: 5,
});
await server.start();
parentPort?.postMessage(socketFolder);

parentPort?.once('message', async () => {
  clearInterval(timer);
  await server.stop();
  await db.close();
  parentPort?.close();
});

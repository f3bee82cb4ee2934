// Worker thread of the embedded database, which listens on a Unix socket: PGlite blocks its thread during a query.
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

// PostgreSQL would continue with deleted files, and lose what it saves. These two files identify the folder.
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

// A PANIC (the log cannot be written) ends the process of PostgreSQL. PGlite has none: the next query would hang.
const panic = Buffer.from('\0VPANIC\0');
const execute = db.execProtocolRawStream.bind(db);
db.execProtocolRawStream = (message, options) =>
  execute(message, {
    ...options,
    onRawData: (data) => {
      // Before the response: a write to deleted files is not acknowledged.
      checkFiles();
      options.onRawData(data);
      const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
      // After the client has received the error.
      if (bytes.includes(panic)) setTimeout(() => process.exit(1), 100);
    },
  });

// The pool has one connection, but may open the next one before the end of the last is noticed here.
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

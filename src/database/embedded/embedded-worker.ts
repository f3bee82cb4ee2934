// Worker thread of the embedded database, which listens on a Unix socket: PGlite blocks its thread during a query.
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs';
import { join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { brotliDecompressSync } from 'node:zlib';
import { PGlite } from '@electric-sql/pglite';
import { PGLiteSocketServer } from '@electric-sql/pglite-socket';
import type { DataFolder } from './data-folder.ts';

const { database, lock, socketPrefix, unfinished, template, filesGone } = workerData as Omit<
  DataFolder,
  'release'
> & {
  readonly template: string;
  readonly filesGone: number;
};

const everything = { recursive: true, withFileTypes: true } as const;
// Without the template PGlite runs initdb.
const usesTemplate = existsSync(unfinished) && existsSync(template);
const db = await PGlite.create({
  dataDir: database,
  ...(usesTemplate
    ? { loadDataDir: new Blob([brotliDecompressSync(readFileSync(template))]) }
    : {}),
});
// PGlite gives the files of a template to all users.
for (const entry of usesTemplate ? readdirSync(database, everything) : []) {
  chmodSync(join(entry.parentPath, entry.name), entry.isDirectory() ? 0o700 : 0o600);
}
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
const socketFolder = mkdtempSync(socketPrefix);
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

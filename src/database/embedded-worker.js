// The thread of the embedded database. PGlite blocks the thread it runs in for the whole of a
// query, so it has one of its own and is reached over a Unix socket, like any PostgreSQL.
// JavaScript, because a worker is loaded by Node itself, from src in tests and from dist otherwise.
import { parentPort, workerData } from 'node:worker_threads';
import { PGlite } from '@electric-sql/pglite';
import { PGLiteSocketServer } from '@electric-sql/pglite-socket';

/** @type {{ dataDir: string, socketPath: string }} */
const { dataDir, socketPath } = workerData;

const db = await PGlite.create(dataDir);

// PostgreSQL ends itself with a PANIC when it cannot write its log: on a full disk, say. Here that
// ends nothing, and whatever came next would wait for ever.
const panic = Buffer.from('\0VPANIC\0');
const execute = db.execProtocolRawStream.bind(db);
db.execProtocolRawStream = (message, options) =>
  execute(message, {
    ...options,
    onRawData: (data) => {
      options.onRawData(data);
      const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
      // Not before the client has been told.
      if (bytes.includes(panic)) setTimeout(() => process.exit(1), 100);
    },
  });

// The pool has one connection, but the next one may be made before the end of the last is noticed.
const server = new PGLiteSocketServer({ db, path: socketPath, maxConnections: 5 });
await server.start();
parentPort?.postMessage('listening');

parentPort?.once('message', async () => {
  await server.stop();
  await db.close();
  parentPort?.close();
});

// The last step of npm run build: the template of the embedded database. .ci/bundle.js has removed the previous one, so
// that this database is created without a template.
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliCompressSync, constants } from 'node:zlib';
import { PGlite } from '@electric-sql/pglite';
import { readConfig } from '../src/config/config.ts';
import { openDatabase } from '../src/database/database.ts';
import { findTemplate } from '../src/database/embedded/embedded.ts';
import { migrate } from '../src/database/migrations.ts';

const folder = mkdtempSync(join(tmpdir(), 'outfit-gateway-template-'));
try {
  const database = await openDatabase(readConfig({ DATA_DIR: folder }));
  await migrate(database.pool, () => {});
  // Two thirds of its files: nobody makes databases there.
  for (const name of ['template0', 'template1']) {
    await database.pool.query(`ALTER DATABASE ${name} IS_TEMPLATE false`);
    await database.pool.query(`DROP DATABASE ${name}`);
  }
  await database.close();
  const closed = await PGlite.create(join(folder, 'pgdata'));
  const dump = await closed.dumpDataDir('none');
  await closed.close();
  const bytes = Buffer.from(await dump.arrayBuffer());
  const compressed = brotliCompressSync(bytes, {
    params: {
      // A higher quality takes seconds of the build and saves a tenth of the size.
      [constants.BROTLI_PARAM_QUALITY]: 5,
      [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
    },
  });
  // Atomic, since a gateway may start at this time.
  const template = findTemplate();
  writeFileSync(`${template}.new`, compressed);
  renameSync(`${template}.new`, template);
  console.log(`Template of the embedded database: ${(compressed.length / 1e6).toFixed(1)} MB`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

// The last step of npm run build: the template of the embedded database. .ci/bundle.js has removed the previous one, so
// that this database is created without a template.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readConfig } from '../src/config.ts';
import { openDatabase } from '../src/database/database.ts';
import { findTemplate } from '../src/database/embedded/embedded.ts';
import { packTemplate } from '../src/database/embedded/template.ts';
import { migrate } from '../src/database/migrations.ts';

const folder = mkdtempSync(join(tmpdir(), 'outfit-gateway-template-'));
try {
  const database = await openDatabase(readConfig({ DATA_DIR: folder }));
  await migrate(database.pool, () => {});
  await database.close();
  const bytes = packTemplate(join(folder, 'pgdata'), findTemplate());
  console.log(`Template of the embedded database: ${(bytes / 1e6).toFixed(1)} MB`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

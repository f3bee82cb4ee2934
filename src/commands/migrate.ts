// npm run migrate: brings the database that the environment names to the current migrations.
import '../node-version.ts';
import { readConfig } from '../config.ts';
import { openDatabase } from '../database/database.ts';
import { migrate } from '../database/migrations.ts';
import { checkServer } from '../database/prepare.ts';

try {
  const database = await openDatabase(readConfig(process.env));
  try {
    if (database.kind === 'PostgreSQL') await checkServer(database.pool, database.description);
    const applied = await migrate(database.pool, (name) => console.log(`applying ${name} ...`));
    console.log(`${database.description}: ${applied.length} migration(s) applied, up to date.`);
  } finally {
    await database.close();
  }
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}

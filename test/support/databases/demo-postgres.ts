// A PostgreSQL of a test alone, which it may stop, freeze and copy.
import { readConfig } from '../../../src/config.ts';
import { openDatabase } from '../../../src/database/database.ts';
import { migrate } from '../../../src/database/migrations.ts';
import { seedDemo } from '../../../src/process/seed.ts';
import { startEmbeddedPostgres } from './embedded-postgres.js';

/**
 * Starts one with the demonstration set.
 * @param flags further flags of `postgres`
 */
export async function startDemoPostgres(flags: readonly string[] = []) {
  const postgres = await startEmbeddedPostgres(flags);
  const database = await openDatabase(readConfig({ DATABASE_URL: postgres.url }));
  await migrate(database.pool, () => {});
  await seedDemo(database.pool, () => {});
  await database.close();
  return postgres;
}

/** A URL of the same database by way of another port: that of a proxy, say. */
export function throughPort(url: string, port: number): string {
  const through = new URL(url);
  through.port = String(port);
  return through.href;
}

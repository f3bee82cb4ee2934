// A PostgreSQL of a test alone, which it may stop, freeze and copy.
import { seedDemo } from '../../../src/process/demo/seed.ts';
import { startEmbeddedPostgres } from './embedded-postgres.js';
import { migrateDatabase } from './test-database.ts';

/**
 * Starts one with the demonstration set.
 * @param flags further flags of `postgres`
 */
export async function startDemoPostgres(flags: readonly string[] = []) {
  const postgres = await startEmbeddedPostgres(flags);
  await migrateDatabase({ DATABASE_URL: postgres.url }, seedDemo);
  return postgres;
}

/** A URL of the same database by way of another port: that of a proxy, say. */
export function throughPort(url: string, port: number): string {
  const through = new URL(url);
  through.port = String(port);
  return through.href;
}

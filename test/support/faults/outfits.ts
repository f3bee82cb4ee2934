// The database that a gateway of these tests begins with.

import { generateOutfits } from '../../../bench/outfits/generate.ts';
import { openDatabase } from '../../../src/database/database.ts';
import { raiseSequences, saveOutfits } from '../../../src/outfits/writes/bulk.ts';
import { migratedEnvironmentOf } from '../cli/process.ts';

/** Settings of a gateway on a PostgreSQL with 500 outfits, for the running test. */
export async function makeOutfits(): Promise<Record<string, string>> {
  const environment = await migratedEnvironmentOf('PostgreSQL');
  const databaseUrl = environment['DATABASE_URL'] ?? '';
  const database = await openDatabase({ databaseUrl, databasePoolMax: 1, dataDir: '' });
  await saveOutfits(database.pool, [...generateOutfits({ outfits: 500, users: 5 })]);
  await raiseSequences(database.pool);
  await database.close();
  return { ...environment, HOST: '127.0.0.1' };
}

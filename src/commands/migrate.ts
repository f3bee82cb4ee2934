// outfit-gateway migrate: brings the database that the environment names to the current migrations.
import { readConfig } from '../config/config.ts';
import { openDatabase } from '../database/database.ts';
import { migrate } from '../database/migrations.ts';
import { checkServer } from '../database/readiness.ts';
import { reserveIds } from '../outfits/writes/bulk.ts';
import { type Io, requireSession, untilAborted } from './command.ts';
import { createLine } from './options/command-line.ts';

export const line = () =>
  createLine('migrate').description(
    'Brings the database of DATABASE_URL, or the embedded one in DATA_DIR, to the current migrations. Those that are applied already are left alone. Each is one transaction, or one index, made without blocking writers. With FIRST_ID, ids of outfits made here begin there from then on.',
  );

export async function run({ env, stdout, signal }: Io): Promise<number> {
  const print = (line: string) => stdout.write(`${line}\n`);
  const config = readConfig(env);
  requireSession(config);
  const database = await openDatabase(config);
  try {
    const { kind, pool, description } = database;
    if (kind === 'PostgreSQL') await checkServer(pool, description);
    const migrating = migrate(pool, (name) => print(`applying ${name} ...`));
    const applied = await untilAborted(migrating, signal);
    // Before any gateway runs: one that waits for its database takes writes the moment it is there.
    if (config.firstId !== undefined) await reserveIds(pool, config.firstId);
    print(`${description}: ${applied.length} migration(s) applied, up to date.`);
    return 0;
  } finally {
    await database.close();
  }
}

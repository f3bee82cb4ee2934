// outfit-gateway migrate: brings the database that the environment names to the current migrations.
import { readConfig } from '../config.ts';
import { openDatabase } from '../database/database.ts';
import { migrate } from '../database/migrations.ts';
import { checkServer } from '../database/prepare.ts';
import { reserveIds } from '../outfits/bulk.ts';
import { readArgumentsAndSettings, settingsHelp } from './arguments.ts';
import { type Io, untilAborted } from './command.ts';
import { requireSession } from './database.ts';

export const help = `Usage: outfit-gateway migrate

Brings the database of DATABASE_URL, or the embedded one in DATA_DIR, to the current migrations.
Those that are applied already are left alone. Each is one transaction, or one index, made beside
writers. With FIRST_ID, ids of outfits made here begin there from then on.

${settingsHelp}
Exit code: 0 the database is up to date, 1 it failed, 130 it was interrupted.
`;

export const failureCode = 1;

export async function run(io: Io): Promise<number> {
  const { env } = readArgumentsAndSettings(io, {}, false);
  const print = (line: string) => io.stdout.write(`${line}\n`);
  const config = readConfig(env);
  requireSession(config);
  const database = await openDatabase(config);
  try {
    const { kind, pool, description } = database;
    if (kind === 'PostgreSQL') await checkServer(pool, description);
    const migrating = migrate(pool, (name) => print(`applying ${name} ...`));
    const applied = await untilAborted(migrating, io.signal);
    // Before any gateway runs: one that waits for its database takes writes the moment it is there.
    if (config.firstId !== undefined) await reserveIds(pool, config.firstId);
    print(`${description}: ${applied.length} migration(s) applied, up to date.`);
    return 0;
  } finally {
    await database.close();
  }
}

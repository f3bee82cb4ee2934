// npm run migrate: brings the database that the environment names to the current migrations.
import { readConfig } from '../config.ts';
import { openDatabase } from '../database/database.ts';
import { migrate } from '../database/migrations.ts';
import { checkServer } from '../database/prepare.ts';
import { type Io, readArguments, untilAborted } from './command.ts';

export const help = `Usage: npm run migrate

Brings the database of DATABASE_URL, or the embedded one in DATA_DIR, to the current migrations.
Those that are applied already are left alone. Each is one transaction.

Exit code: 0 the database is up to date, 1 it failed, 130 it was interrupted.
`;

export const failureCode = 1;

export async function run(io: Io): Promise<number> {
  readArguments(io, {}, false);
  const print = (line: string) => io.stdout.write(`${line}\n`);
  const database = await openDatabase(readConfig(io.env));
  try {
    const { kind, pool, description } = database;
    if (kind === 'PostgreSQL') await checkServer(pool, description);
    const migrating = migrate(pool, (name) => print(`applying ${name} ...`));
    const applied = await untilAborted(migrating, io.signal);
    print(`${description}: ${applied.length} migration(s) applied, up to date.`);
    return 0;
  } finally {
    await database.close();
  }
}

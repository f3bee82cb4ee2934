// Opens the configured database for a command.
import { type Config, ConfigError } from '../config/config.ts';
import { type Database, openDatabase } from '../database/database.ts';
import { migrate } from '../database/migrations.ts';
import { checkReady } from '../database/readiness.ts';

/** Migrates an embedded database first. @throws DatabaseNotReadyError, EmbeddedDatabaseError or MigrationError */
export async function withDatabase<Result>(
  config: Config,
  work: (database: Database) => Promise<Result>,
): Promise<Result> {
  const database = await openDatabase(config);
  const prepareAndWork = async () => {
    if (database.kind === 'embedded') await migrate(database.pool, () => {});
    else await checkReady(database.pool, database.description);
    return work(database);
  };
  try {
    // The embedded database may end by itself, such as when its folder is removed: its error explains it.
    const failed = database.failed.then((error) => Promise.reject(error));
    return await Promise.race([prepareAndWork(), failed]);
  } finally {
    await database.close();
  }
}

/** For session state and session locks, which a transaction pooler would lose. @throws ConfigError */
export function requireSession({ databasePooler }: Config): void {
  if (databasePooler === 'session') return;
  throw new ConfigError(
    `DATABASE_POOLER is "${databasePooler}", but this command needs a session: run it with DATABASE_POOLER=session and a DATABASE_URL that leads past the pooler.`,
  );
}

import pg from 'pg';
import { type Config, ConfigError } from '../config.ts';
import { type Database, openDatabase } from '../database/database.ts';
import { EmbeddedDatabaseError } from '../database/embedded.ts';
import { MigrationError, migrate } from '../database/migrations.ts';
import { checkPrepared, DatabaseNotReadyError } from '../database/prepare.ts';
import { SourceError } from '../import/batch.ts';

/**
 * Opens the configured database for a command: the embedded one is migrated, PostgreSQL must be.
 * @throws DatabaseNotReadyError, EmbeddedDatabaseError or MigrationError
 */
export async function openPreparedDatabase(config: Config): Promise<Database> {
  const database = await openDatabase(config);
  try {
    if (database.kind === 'embedded') await migrate(database.pool, () => {});
    else await checkPrepared(database.pool, database.description);
    return database;
  } catch (error) {
    await database.close();
    throw error;
  }
}

const meant = [
  ConfigError,
  DatabaseNotReadyError,
  EmbeddedDatabaseError,
  MigrationError,
  SourceError,
];

/** What a command prints for an error: a meant one's sentence, anything unexpected with its stack. */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (meant.some((kind) => error instanceof kind)) return error.message;
  // The server has gone away, or refuses: its own words say why, and a stack would add nothing.
  const isOfDatabase =
    error instanceof pg.DatabaseError ||
    /^(?:Connection terminated|timeout exceeded)/.test(error.message);
  if (isOfDatabase || 'syscall' in error) return `The database failed: ${error.message}.`;
  return error.stack ?? error.message;
}

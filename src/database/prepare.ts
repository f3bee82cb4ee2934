// What must be true of a database before it is used.

import type pg from 'pg';
import { typed } from '../command-line.ts';
import { findPendingMigrations, MigrationError } from './migrations.ts';

/** The database cannot be used as it is; the message is one sentence that says what to change. */
export class DatabaseNotReadyError extends Error {
  override readonly name = 'DatabaseNotReadyError';

  constructor(
    message: string,
    /** Whether it can come right while the gateway waits. */
    readonly mayPass: boolean,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

type Queryable = Pick<pg.Pool, 'query'>;

/**
 * @throws DatabaseNotReadyError when PostgreSQL is away, too old or not migrated
 * @throws MigrationError when an applied migration has been edited since
 */
export async function checkPrepared(queryable: Queryable, description: string): Promise<void> {
  await checkServer(queryable, description);
  const pending = await findPendingMigrations(queryable).catch((error) => {
    throw error instanceof MigrationError ? error : unreachable(description, error);
  });
  if (pending.length > 0) {
    throw new DatabaseNotReadyError(
      `The ${description} lacks ${pending.length} migration(s) (${pending.join(', ')}): run ${typed('migrate')} first.`,
      true,
    );
  }
}

/**
 * @throws DatabaseNotReadyError when the server is away or older than PostgreSQL 15
 */
export async function checkServer(queryable: Queryable, description: string): Promise<void> {
  let version: number;
  try {
    const { rows } = await queryable.query<{ version: number }>(
      `SELECT current_setting('server_version_num')::int AS version`,
    );
    version = rows[0]?.version ?? 0;
  } catch (error) {
    throw unreachable(description, error);
  }
  if (version < 150_000) {
    throw new DatabaseNotReadyError(
      `The ${description} is version ${Math.floor(version / 10_000)}: use PostgreSQL 15 or newer.`,
      false,
    );
  }
}

/** @param error what the connection or statement failed with */
export function unreachable(description: string, error: unknown): DatabaseNotReadyError {
  return new DatabaseNotReadyError(
    `The ${description} cannot be reached (${reasonOf(error)}): start it, or correct DATABASE_URL.`,
    true,
    { cause: error },
  );
}

/** Node tries all addresses of a host and gives an AggregateError without a message. */
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(reasonOf).join(', ');
  return error instanceof Error ? error.message || error.name : String(error);
}

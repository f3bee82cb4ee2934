// A database of its own for a test, on a PostgreSQL server.
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { readConfig } from '../../../src/config.ts';
import { openDatabase } from '../../../src/database/database.ts';
import { migrate } from '../../../src/database/migrations.ts';

/** A database of its own, or an empty folder for one; the environment is what a gateway needs to open it. */
export interface TestDatabase {
  readonly environment: Record<string, string>;
  remove(): Promise<void>;
}

/**
 * @param server URL of a PostgreSQL server
 * @param template name of the database to copy; an empty one if there is none
 */
export async function makeDatabase(
  server: string,
  template = 'template1',
): Promise<TestDatabase & { readonly name: string }> {
  const name = `test_${randomUUID().replaceAll('-', '')}`;
  await administer(server, `CREATE DATABASE ${name} TEMPLATE ${template}`);
  const url = new URL(server);
  url.pathname = `/${name}`;
  return {
    name,
    environment: { DATABASE_URL: url.href },
    remove: () => administer(server, `DROP DATABASE ${name} WITH (FORCE)`),
  };
}

/** Brings a database to the last migration, and fills it if that is wanted. */
export async function migrateDatabase(
  environment: TestDatabase['environment'],
  fill: (pool: pg.Pool) => Promise<unknown> = async () => {},
): Promise<void> {
  const database = await openDatabase(readConfig(environment));
  await migrate(database.pool, () => {});
  await fill(database.pool);
  await database.close();
}

async function administer(server: string, statement: string): Promise<void> {
  const client = new pg.Client(server);
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

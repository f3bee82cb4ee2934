// A database of its own for a test, on a PostgreSQL server.
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { migrate } from '../../../src/database/migrations.ts';
import { execute, withDatabase } from './connections.ts';

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
  await execute(server, `CREATE DATABASE ${name} TEMPLATE ${template}`);
  const url = new URL(server);
  url.pathname = `/${name}`;
  return {
    name,
    environment: { DATABASE_URL: url.href },
    remove: async () => {
      await execute(server, `DROP DATABASE ${name} WITH (FORCE)`);
    },
  };
}

/** Brings a database to the last migration, and fills it if that is wanted. */
export async function migrateDatabase(
  environment: TestDatabase['environment'],
  fill: (pool: pg.Pool) => Promise<unknown> = async () => {},
): Promise<void> {
  await withDatabase(environment, async ({ pool }) => {
    await migrate(pool, () => {});
    await fill(pool);
  });
}

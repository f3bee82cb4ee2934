// A role other than the owner of the tables, on a migrated database of its own.
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { inject, onTestFinished } from 'vitest';
import { migratedEnvironmentOf } from '../cli/process.ts';
import { connectForTest, connectTo } from './connections.ts';

export interface RoleDatabase {
  readonly role: string;
  readonly database: string;
  /** Of the role. */
  readonly url: string;
  readonly owner: pg.Client;
}

/** @param rights of the role on all tables; it may use all sequences */
export async function makeRole(rights: string): Promise<RoleDatabase> {
  const { DATABASE_URL = '' } = await migratedEnvironmentOf('PostgreSQL');
  const role = `gateway_${randomUUID().slice(0, 8)}`;
  const server = await connectTo(inject('postgresUrl'));
  await server.query(`CREATE ROLE ${role} LOGIN PASSWORD 'postgres'`);
  const owner = await connectForTest(DATABASE_URL);
  await owner.query(`GRANT ${rights} ON ALL TABLES IN SCHEMA public TO ${role};
    GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA public TO ${role};
    INSERT INTO users (id, username, avatar_key) VALUES (7, 'seven', '')`);
  const url = new URL(DATABASE_URL);
  onTestFinished(async () => {
    await server.query(`DROP ROLE ${role}`);
    await server.end();
  });
  url.username = role;
  url.password = 'postgres';
  return { role, database: url.pathname.slice(1), url: url.href, owner };
}

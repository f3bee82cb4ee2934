// Prisma's client on the connections of a pool, for the schema in which these find their tables.
import { PrismaPg } from '@prisma/adapter-pg';
import type { SqlDriverAdapterFactory } from '@prisma/driver-adapter-utils';
import type pg from 'pg';
import { PrismaClient } from '../generated/prisma/client.ts';
import { nameStatement } from './read.ts';
import { runOutsideTask } from './task.ts';

/** Connects, and asks for the schema, with its first query. */
export function createPrisma(pool: pg.Pool): PrismaClient {
  // The pool replaces a broken idle connection; without a listener, its error would end the process.
  pool.on('error', () => {});
  const adapter: SqlDriverAdapterFactory = {
    provider: 'postgres',
    adapterName: '@prisma/adapter-pg',
    connect: async () => {
      const schema = await runOutsideTask(() => findSchema(pool));
      const statementNameGenerator = ({ sql }: { readonly sql: string }) => nameStatement(sql);
      return new PrismaPg(pool, { schema, statementNameGenerator }).connect();
    },
  };
  return new PrismaClient({ adapter });
}

/** Prisma names a schema in each statement: `public`, if it is told none. Rejects, so that it asks again, without tables. */
async function findSchema(pool: pg.Pool): Promise<string> {
  const { rows } = await pool.query<{ schema: string }>(
    `SELECT nspname AS schema FROM pg_namespace n JOIN pg_class c ON c.relnamespace = n.oid WHERE c.oid = 'users'::regclass`,
  );
  // Prisma quotes the name, but not the quotes in it.
  return (rows as [{ schema: string }])[0].schema.replaceAll('"', '""');
}

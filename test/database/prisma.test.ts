// Prisma's client on the connections of the gateway: which tables it finds.
import { expect, inject, onTestFinished, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { readConfig } from '../../src/config.ts';
import { openDatabase } from '../../src/database/database.ts';
import { saveOutfits } from '../../src/outfits/writes/bulk.ts';
import { execute } from '../support/databases/connections.ts';
import { makeDatabase, migrateDatabase } from '../support/databases/test-database.ts';

test.each([
  ['of its own', 'ours', 'ours'],
  ['behind an empty one', 'ours', 'nothing, ours'],
  ['whose name must be quoted', '"Our ""own"" tables"', '"Our ""own"" tables"'],
])(
  'Prisma reads the tables in a schema %s, and not those of another program in public',
  async (_name, schema, path) => {
    const { environment, name, remove } = await makeDatabase(inject('postgresUrl'));
    onTestFinished(remove);
    const { DATABASE_URL = '' } = environment;
    await execute(
      DATABASE_URL,
      `CREATE SCHEMA nothing; CREATE SCHEMA ${schema};
     CREATE TABLE public.users (id int PRIMARY KEY, avatar_key text, username text, first_name text, last_name text);
     INSERT INTO public.users VALUES (1, '', 'decoy', '', '');
     ALTER DATABASE ${name} SET search_path = ${schema}, public`,
    );
    await migrateDatabase(environment, (pool) =>
      saveOutfits(pool, [...generateOutfits({ outfits: 3, users: 1 })]),
    );
    await execute(DATABASE_URL, `ALTER DATABASE ${name} SET search_path = ${path}, public`);
    const database = await openDatabase(readConfig(environment));
    onTestFinished(() => database.close());
    const { rows } = await database.pool.query(`SELECT username FROM users`);
    expect(rows.map(({ username }) => username)).not.toContain('decoy');
    const users = await database.prisma.user.findMany({ select: { username: true } });
    expect(users).toEqual(rows);
  },
);

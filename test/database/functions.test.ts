// The functions and triggers of the database: those of prisma/functions, in the migrations and in a migrated database.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { fillMigrations, readFunction, readFunctionNames } from '../../prisma/functions.ts';
import { outfitColumns, userColumns } from '../../src/outfits/row.ts';
import { migratedEnvironmentOf } from '../support/cli/process.ts';
import { connectForTest } from '../support/databases/connections.ts';

test('the migrations have the functions as npm run generate writes them', () => {
  for (const [path, text] of fillMigrations()) expect(readFileSync(path, 'utf8')).toBe(text);
});

/** Body, and settings that a function has for its duration. */
const installed = `
  SELECT proname AS name, prosrc AS body, coalesce(proconfig, '{}') AS settings, prosecdef AS "isDefiner"
  FROM pg_proc WHERE pronamespace = current_schema()::regnamespace ORDER BY proname`;

/** Chosen for the server when it is migrated. */
const ofServer = ['outfit_casefold'];

test.each(['public', 'a renamed schema'])(
  'a PostgreSQL database migrated in %s has these functions, and triggers that fire when they should',
  async (schema) => {
    const { DATABASE_URL } = await migratedEnvironmentOf('PostgreSQL');
    const client = await connectForTest(DATABASE_URL);
    if (schema !== 'public') {
      await client.query('ALTER SCHEMA public RENAME TO renamed');
      await client.query(`SET search_path = renamed`);
      await client.query('SELECT enable_outfit_triggers()');
    }
    const { rows } = await client.query(installed);
    const names = [...readFunctionNames(), ...ofServer].sort();
    expect(rows.map(({ name }) => name).sort()).toEqual(names);
    const home = schema === 'public' ? 'public' : 'renamed';
    for (const { name, body, settings, isDefiner } of rows) {
      if (ofServer.includes(name)) continue;
      expect(readFunction(name)).toContain(body);
      const paths = settings.filter((setting: string) => setting.startsWith('search_path='));
      expect({ name, paths }).toEqual({
        name,
        paths: isDefiner ? [`search_path=${home}, pg_temp`] : [],
      });
    }
    expect((await client.query('SELECT check_outfit_triggers()')).rows).toEqual([]);
    const triggers = `SELECT tgrelid::regclass::text AS table, tgname AS name FROM pg_trigger
      WHERE NOT tgisinternal AND tgrelid IN ('outfits'::regclass, 'outfit_like_counts'::regclass, 'users'::regclass)
      ORDER BY 1, 2`;
    const wanted =
      'SELECT table_name AS table, name FROM outfit_triggers() ORDER BY table_name::regclass::text, name';
    expect((await client.query(triggers)).rows).toEqual((await client.query(wanted)).rows);
  },
);

test('on PostgreSQL, writes of a session with another search path are counted, and cannot be diverted by temporary tables', async () => {
  const { DATABASE_URL } = await migratedEnvironmentOf('PostgreSQL');
  const client = await connectForTest(DATABASE_URL);
  await client.query(`CREATE TEMPORARY TABLE outfit_changes (LIKE public.outfit_changes);
    CREATE TEMPORARY TABLE outfit_like_counts (LIKE public.outfit_like_counts);
    SET search_path = pg_temp, pg_catalog;
    INSERT INTO public.users (id, username) VALUES (1, 'one');
    INSERT INTO public.outfits (image_key, image_original_key, user_id, created, modified) VALUES ('k', 'k', 1, 1, 1);
    SELECT public.apply_pending_outfit_changes(); DISCARD TEMP; RESET search_path`);
  expect((await client.query('SELECT count_outfits(true)::int AS count')).rows).toEqual([
    { count: 1 },
  ]);
  expect((await client.query('SELECT * FROM check_outfit_counts()')).rows).toEqual([]);
});

test('on PostgreSQL, what the first copy of a subscription adds is looked up by indexes, also after a plan for empty tables', async () => {
  const { DATABASE_URL } = await migratedEnvironmentOf('PostgreSQL');
  const client = await connectForTest(DATABASE_URL);
  await client.query('ANALYZE; SET session_replication_role = replica');
  for (const statements of [
    `INSERT INTO users (id, username) SELECT n, 'user ' || n FROM generate_series(1, 9) n`,
    `INSERT INTO outfits (id, image_key, image_original_key, user_id, created, modified)
     SELECT n, 'k', 'k', n, 1, 1 FROM generate_series(1, 9) n`,
  ]) {
    await client.query(`BEGIN; ${statements}`);
    const { rows } = await client.query(
      `SELECT relname, seq_scan::int FROM pg_stat_xact_user_tables
       WHERE relname IN ('outfits', 'outfit_like_counts') AND seq_scan > 0`,
    );
    await client.query('COMMIT');
    expect(rows).toEqual([]);
  }
});

test.each([
  ['outfits', outfitColumns, { id: 9, user_id: 1, image_key: 'k' }],
  ['users', userColumns, { id: 9, username: 'nine' }],
] as const)(
  'on PostgreSQL, saving a row of %s stores each column, and defaults for those that are not given',
  async (table, columns, least) => {
    const { DATABASE_URL } = await migratedEnvironmentOf('PostgreSQL');
    const client = await connectForTest(DATABASE_URL);
    await client.query(`INSERT INTO users (id, username) VALUES (1, 'one'), (2, 'two')`);
    const save = async (given: object) => {
      const sql = `SELECT save_${table.slice(0, -1)}($1)`;
      await client.query(sql, [given]);
      return (await client.query(`SELECT * FROM ${table} WHERE id = 9`)).rows[0];
    };
    expect(await save(least)).toMatchObject(least);
    const others = { boolean: false, int: 2, bigint: '7', text: 'other' } as Record<
      string,
      unknown
    >;
    for (const [column, type] of Object.values(columns)) {
      if (column !== 'id') {
        expect(await save({ id: 9, [column]: others[type] })).toHaveProperty(column, others[type]);
      }
    }
  },
);

test('PostgreSQL executes every statement of docs/counting.md', async () => {
  const { DATABASE_URL } = await migratedEnvironmentOf('PostgreSQL');
  const client = await connectForTest(DATABASE_URL);
  const page = readFileSync(new URL('../../docs/counting.md', import.meta.url), 'utf8');
  const statements = [...page.matchAll(/^```sql\n(.*?)^```$/gms)].map(([, text = '']) => text);
  expect(statements.length).toBeGreaterThan(8);
  for (const statement of statements) await client.query(statement);
  expect((await client.query('SELECT * FROM check_outfit_counts()')).rows).toEqual([]);
});

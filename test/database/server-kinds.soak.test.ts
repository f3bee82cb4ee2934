// Servers that speak the protocol of PostgreSQL, but are not what the gateway needs: played by a database
// whose search path leads to functions and tables of the test first.
import { expect, test } from 'vitest';
import { baseOf, failure, migratedEnvironmentOf, runServer } from '../support/cli/process.ts';
import { execute } from '../support/databases/connections.ts';

test.each([
  ['CockroachDB', 'version()', `'CockroachDB CCL v26.1.0 (x86_64-pc-linux-gnu)'`, 'triggers'],
  ['YugabyteDB', 'version()', `'PostgreSQL 15.12-YB-2025.2.0.0-b0 on x86_64'`, 'stale'],
  [
    'version 14',
    'current_setting(text)',
    `CASE $1 WHEN 'server_version_num' THEN '140018' ELSE pg_catalog.current_setting($1) END`,
    'use PostgreSQL 15 or newer',
  ],
])('%s is refused with one sentence', async (kind, functionOf, answer, why) => {
  const environment = await migratedEnvironmentOf('PostgreSQL');
  const { DATABASE_URL = '' } = environment;
  const name = new URL(DATABASE_URL).pathname.slice(1);
  await execute(
    DATABASE_URL,
    `CREATE SCHEMA played;
     CREATE FUNCTION played.${functionOf} RETURNS text LANGUAGE sql AS $body$ SELECT ${answer} $body$;
     ALTER DATABASE ${name} SET search_path = played, pg_catalog, public`,
  );
  const said = await failure(runServer(environment));
  expect(said).toMatch(/^The PostgreSQL database \S+ on \S+ is /);
  expect(said).toContain(`is ${kind}`);
  expect(said).toContain(why);
});

test('tables that Citus has distributed are not used, until they are one table again', async () => {
  const environment = await migratedEnvironmentOf('PostgreSQL');
  const { DATABASE_URL = '' } = environment;
  await execute(DATABASE_URL, 'CREATE TABLE pg_dist_partition (logicalrelid regclass)');
  const server = runServer(environment);
  const base = await baseOf(server);
  const ready = async () => (await fetch(`${base}/health/ready`)).status;
  for (const table of ['outfits', 'outfit_like_counts', 'users']) {
    await execute(DATABASE_URL, `INSERT INTO pg_dist_partition VALUES ('${table}')`);
    await server.until(new RegExp(`table ${table} distributed by Citus, .*undistribute_table`));
    expect(await ready()).toBe(503);
    await execute(DATABASE_URL, 'DELETE FROM pg_dist_partition');
    await expect.poll(ready).toBe(200);
  }
});

// Servers that speak the protocol of PostgreSQL, but are not what the gateway needs: played by a database
// whose search path leads to functions and tables of the test first.
import pg from 'pg';
import { expect, test } from 'vitest';
import { baseOf, failure, migratedEnvironmentOf, runServer } from '../support/cli/process.ts';

async function administer(url: string, ...statements: string[]): Promise<void> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    await client.end();
  }
}

/** A database in which a function answers as the test says. */
async function playing(functionOf: string, answer: string): Promise<Record<string, string>> {
  const environment = await migratedEnvironmentOf('PostgreSQL');
  const { DATABASE_URL: url = '' } = environment;
  await administer(
    url,
    'CREATE SCHEMA played',
    `CREATE FUNCTION played.${functionOf} RETURNS text LANGUAGE sql AS $$ SELECT '${answer}' $$`,
    `ALTER DATABASE ${new URL(url).pathname.slice(1)} SET search_path = played, pg_catalog, public`,
  );
  return environment;
}

test.each([
  ['CockroachDB', 'version()', 'CockroachDB CCL v26.1.0 (x86_64-pc-linux-gnu)', 'triggers'],
  ['YugabyteDB', 'version()', 'PostgreSQL 15.12-YB-2025.2.0.0-b0 on x86_64', 'stale'],
  ['version 14', 'current_setting(text)', '140018', 'use PostgreSQL 15 or newer'],
])('%s is refused with one sentence', async (kind, functionOf, answer, why) => {
  const said = await failure(runServer(await playing(functionOf, answer)));
  expect(said).toMatch(/^The PostgreSQL database \S+ on \S+ is /);
  expect(said).toContain(`is ${kind}`);
  expect(said).toContain(why);
});

test.each(['outfits', 'outfit_like_counts', 'users'])(
  '%s that Citus has distributed are not used, until they are one table again',
  async (table) => {
    const environment = await migratedEnvironmentOf('PostgreSQL');
    const { DATABASE_URL: url = '' } = environment;
    await administer(
      url,
      'CREATE TABLE pg_dist_partition (logicalrelid regclass)',
      `INSERT INTO pg_dist_partition VALUES ('${table}')`,
    );
    const server = runServer(environment);
    const base = await baseOf(server);
    expect((await fetch(`${base}/health/ready`)).status).toBe(503);
    expect(server.output()).toMatch(
      new RegExp(`table ${table} distributed by Citus, [^\\n]*undistribute_table`),
    );
    await administer(url, 'DELETE FROM pg_dist_partition');
    await server.until(/can be used/);
  },
);

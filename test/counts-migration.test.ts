// Counts of the versions before, taken over while others read and write; and counts that were restored
// in another cluster.
import { readFileSync } from 'node:fs';
import pg from 'pg';
import { afterEach, expect, test } from 'vitest';
import { makeMigratedPlace, makePlace } from './gateway.ts';
import type { TestPlace } from './places.ts';
import { migrationList } from './schema-engine.ts';

const names = migrationList().migrationDirectories.map(({ path }) => path);
const scriptOf = (name: string) =>
  readFileSync(new URL(`../prisma/migrations/${name}/migration.sql`, import.meta.url), 'utf8');

let place: TestPlace;
const clients: pg.Client[] = [];
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.end()));
  await place.remove();
});

async function connect(): Promise<pg.Client> {
  const client = new pg.Client(place.environment['DATABASE_URL']);
  await client.connect();
  clients.push(client);
  return client;
}

const addOutfits = (count: number) => `
  INSERT INTO users (id, username) VALUES (1, 'one') ON CONFLICT DO NOTHING;
  INSERT INTO outfits (image_key, image_original_key, likes, user_id, private, created, modified)
  SELECT 'k', 'k', CASE WHEN n % 7 = 0 THEN n * 500000 ELSE n % 30 END, 1, n % 10 = 0, n * 1000000000::bigint, 5
  FROM generate_series(1, ${count}) n`;

/** Wrong nodes; and how many outfits the version before counts, and how many there are. */
async function compare(client: pg.Client): Promise<void> {
  expect((await client.query('SELECT * FROM check_outfit_counts()')).rows).toEqual([]);
  const { rows } = await client.query(
    `SELECT (SELECT sum(public + private)::int FROM outfit_counts WHERE level = 20) AS counted,
       count(*)::int AS found FROM outfits`,
  );
  expect(rows[0].counted).toBe(rows[0].found);
}

test.each(['read committed', 'repeatable read'])(
  'a table is migrated at %s while others write to it, and every outfit is counted',
  async (isolation) => {
    place = await makePlace('PostgreSQL');
    const migrator = await connect();
    for (const name of names.filter((one) => one < '0013')) await migrator.query(scriptOf(name));
    await migrator.query(addOutfits(3_000));
    let isWriting = true;
    const writes: Promise<number>[] = [1, 2, 3].map(async (number) => {
      const client = await connect();
      let done = 0;
      for (; isWriting; done++) {
        await client.query(`BEGIN; ${addOutfits(2)};
          UPDATE outfits SET likes = likes + 1 WHERE id % 1000 = ${number}; SELECT pg_sleep(0.01); COMMIT`);
      }
      return done;
    });
    await expect
      .poll(async () => (await migrator.query('SELECT FROM outfits')).rowCount)
      .toBeGreaterThan(3_010);
    await migrator.query(
      `BEGIN ISOLATION LEVEL ${isolation}; ${scriptOf('0013_outfit_changes')}; COMMIT`,
    );
    await compare(migrator);
    isWriting = false;
    expect(Math.min(...(await Promise.all(writes)))).toBeGreaterThan(0);
    await compare(migrator);
    await migrator.query('SELECT fold_outfit_changes(1, 30)');
    await compare(migrator);
  },
);

test('counts that come from a cluster with later transactions are right from the first write on', async () => {
  place = await makeMigratedPlace('PostgreSQL');
  const client = await connect();
  await client.query(addOutfits(1_000));
  await client.query('SELECT fold_outfit_changes(1, 30)');
  await client.query(addOutfits(100));
  // As a dump brings it: all that this cluster numbers from now on had ended in the other one, and what
  // was pending there has a number that has yet to come here.
  await client.query(`
    UPDATE outfit_changes SET xid = '4000000010' WHERE xid >= (SELECT pg_snapshot_xmax(snapshot) FROM outfit_fold);
    UPDATE outfit_fold SET snapshot = '4000000000:4000000005:4000000003', mark = '4000000000:4000000000:', kept_from = '4000000000'`);
  await compare(client);
  const others = await Promise.all([connect(), connect(), connect()]);
  await Promise.all(others.map((other) => other.query(`BEGIN; ${addOutfits(10)}; COMMIT`)));
  await compare(client);
  expect((await client.query('SELECT fold_outfit_changes(1, 30)::int AS folded')).rows).not.toEqual(
    [{ folded: 0 }],
  );
  await compare(client);
  await client.query(`UPDATE outfit_fold SET snapshot = '4000000000:4000000005:4000000003'`);
  await client.query('SELECT fold_outfit_changes(1, 30)');
  await client.query(addOutfits(10));
  await compare(client);
});

// Counts that were restored in another cluster: their snapshot says which changes they hold.
import type pg from 'pg';
import { expect, test } from 'vitest';
import { pageStatement } from '../../src/outfits/lists/statements.ts';
import { migratedEnvironmentOf } from '../support/cli/process.ts';
import { connectForTest } from '../support/databases/connections.ts';
import { applyAll as applyInBatches } from '../support/databases/small-buckets.ts';

/** A migrated database, and connections to it for the test. */
async function openMigrated() {
  const { DATABASE_URL = '' } = await migratedEnvironmentOf('PostgreSQL');
  const connect = () => connectForTest(DATABASE_URL);
  return { client: await connect(), connect };
}

const addOutfits = (count: number) => `
  INSERT INTO users (id, username) VALUES (1, 'one') ON CONFLICT DO NOTHING;
  INSERT INTO outfits (image_key, image_original_key, user_id, private, created, modified)
  SELECT 'k', 'k', 1, n % 10 = 0, n * 1000000000::bigint, 5 FROM generate_series(1, ${count}) n;
  UPDATE outfit_like_counts SET likes = CASE WHEN id % 7 = 0 THEN id * 500000 ELSE id % 30 END 
  WHERE likes = 0 AND id > (SELECT max(id) - ${count} FROM outfits)`;

/** Wrong buckets; and how many outfits are counted, how many there are, and a page by likes. */
async function compare(client: pg.Client): Promise<void> {
  expect((await client.query('SELECT * FROM check_outfit_counts()')).rows).toEqual([]);
  expect((await client.query('SELECT check_outfit_likes()')).rows).toEqual([]);
  const { rows } = await client.query(
    `SELECT count_outfits(true)::int AS counted, count(*)::int AS found,
       (count(*) FILTER (WHERE NOT private) / 2)::int AS half FROM outfits`,
  );
  expect(rows[0].counted).toBe(rows[0].found);
  const { text, values } = pageStatement(
    { visibility: { private: 'none' }, filter: {} },
    { ordering: { field: 'likes', direction: 'asc' }, offset: rows[0].half, pageSize: 20 },
  );
  const { rows: page } = await client.query(text, [...values]);
  const { rows: listed } = await client.query(
    'SELECT id FROM outfit_like_counts WHERE NOT private ORDER BY likes, id OFFSET $1 LIMIT 20',
    [rows[0].half],
  );
  expect(page.map(({ id }) => id)).toEqual(listed.map(({ id }) => id));
}

/** Applies all pending changes, and compares behind each batch. */
const applyAll = (client: pg.Client, batch?: number) =>
  applyInBatches(client, batch, () => compare(client));

test.each([1, 100_000])(
  'counts that come from a cluster with later transactions are right from the first write on, with batches of %i',
  async (batch) => {
    const { client, connect } = await openMigrated();
    await client.query(addOutfits(1_000));
    await applyAll(client);
    await client.query(addOutfits(100));
    // As a dump brings it: all that this cluster numbers from now on had ended in the other one, and what
    // was pending there has a number that has yet to come here.
    const setSnapshot = `UPDATE outfit_counts_state SET snapshot = '4000000000:4000000005:4000000003'`;
    await client.query(`
      UPDATE outfit_changes SET xid = '4000000010' WHERE xid >= (SELECT pg_snapshot_xmax(snapshot) FROM outfit_counts_state);
      ${setSnapshot}, prune_snapshot = '4000000000:4000000000:', oldest_kept_xid = '4000000000'`);
    await compare(client);
    const others = await Promise.all([connect(), connect(), connect()]);
    await Promise.all(others.map((other) => other.query(`BEGIN; ${addOutfits(10)}; COMMIT`)));
    await compare(client);
    expect(await applyAll(client, batch)).toBeGreaterThan(0);
    // Of likes alone, and one that is under way when the first write meets the snapshot.
    const open = others[0] as pg.Client;
    await open.query('BEGIN; UPDATE outfit_like_counts SET likes = 77 WHERE id % 50 = 0');
    await client.query(setSnapshot);
    await compare(client);
    await client.query('UPDATE outfit_like_counts SET likes = likes + 1 WHERE id % 50 = 1');
    await compare(client);
    await applyAll(client, batch);
    await open.query('COMMIT');
    await compare(client);
    await applyAll(client, batch);
    await client.query(setSnapshot);
    await applyAll(client, batch);
    await client.query(addOutfits(10));
    await compare(client);
  },
);

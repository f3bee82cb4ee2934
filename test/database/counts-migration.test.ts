// Counts that were restored in another cluster, and counts beside transactions that stay under way: the snapshot of
// their snapshot says which changes they hold.
import type pg from 'pg';
import { expect, test } from 'vitest';
import { pageStatement } from '../../src/outfits/lists/statements.ts';
import { migratedEnvironmentOf } from '../support/cli/process.ts';
import { connectForTest } from '../support/databases/connections.ts';
import { setBucketSize } from '../support/databases/small-buckets.ts';

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

/** Applies all pending changes. Returns how many. */
async function applyAll(client: pg.Client, batch = 100_000): Promise<number> {
  for (let total = 0; ; ) {
    const { rows } = await client.query(
      'SELECT applied::int, is_done FROM apply_pending_outfit_changes($1)',
      [batch],
    );
    total += rows[0].applied;
    await compare(client);
    if (rows[0].is_done) return total;
  }
}

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

test('transactions that stay under way, are prepared, or end out of order are counted when they have ended, whatever the batch', async () => {
  const { client, connect } = await openMigrated();
  await setBucketSize(client, 5);
  await client.query(addOutfits(300));
  await applyAll(client, 7);
  const others = await Promise.all(Array.from({ length: 6 }, connect));
  // Numbered in this order, and each writes another part.
  for (const [index, other] of others.entries()) {
    await other.query(index % 2 ? 'BEGIN' : 'BEGIN ISOLATION LEVEL REPEATABLE READ');
    await other.query(`UPDATE outfit_like_counts SET likes = id * 1000 WHERE id % 6 = ${index}`);
    await other.query(`SAVEPOINT a; DELETE FROM outfits WHERE id % 6 = ${index}; ROLLBACK TO a`);
    await other.query(
      `SAVEPOINT b; UPDATE outfits SET private = NOT private WHERE id % 60 = ${index}; RELEASE b`,
    );
  }
  // The first one, which all later ones make wait, goes on to the end; others end in the middle.
  type Six = [pg.Client, pg.Client, pg.Client, pg.Client, pg.Client, pg.Client];
  const [first, second, third, fourth, fifth, sixth] = others as Six;
  const { rows } = await client.query(
    `SELECT current_setting('max_prepared_transactions')::int AS most`,
  );
  const canPrepare = rows[0].most > 0;
  await fourth.query('COMMIT');
  // What a later transaction has changed, an earlier one changes again, which is applied before it.
  await second.query('UPDATE outfit_like_counts SET likes = 5 WHERE id % 6 = 3');
  await second.query('DELETE FROM outfits WHERE id % 12 = 3');
  await compare(client);
  await second.query('COMMIT');
  await compare(client);
  // The earlier one first, without what it was built on: numbers below zero are in the counts for a while.
  const one = await client.query('SELECT applied::int FROM apply_pending_outfit_changes(1)');
  expect(one.rows[0].applied).toBeGreaterThan(0);
  await compare(client);
  await sixth.query('ROLLBACK');
  await fifth.query(canPrepare ? `PREPARE TRANSACTION 'fifth'` : 'SELECT');
  await applyAll(client, 1);
  await third.query('COMMIT');
  await client.query(addOutfits(20));
  await applyAll(client, 1);
  await client.query(`UPDATE outfit_counts_state SET prune_snapshot_at = 'epoch'`);
  await client.query('UPDATE outfit_like_counts SET likes = likes + 1 WHERE id % 6 = 5');
  await applyAll(client, 1);
  await client.query(`UPDATE outfit_counts_state SET prune_snapshot_at = 'epoch'`);
  await client.query('SELECT rebuild_outfit_counts()');
  await compare(client);
  await (canPrepare ? client.query(`COMMIT PREPARED 'fifth'`) : fifth.query('COMMIT'));
  await compare(client);
  await applyAll(client, 1);
  await first.query('COMMIT');
  await compare(client);
  expect(await applyAll(client, 1)).toBeGreaterThan(50);
  expect((await client.query('SELECT FROM pending_outfit_changes()')).rows).toEqual([]);
});

test('what fires no triggers is not counted, and all else that a copy of tables does is', async () => {
  const { client } = await openMigrated();
  await client.query(addOutfits(1_100));
  await applyAll(client);
  // As a subscriber applies it, row by row, the likes before or behind their outfits.
  await client.query(`BEGIN; SET LOCAL session_replication_role = replica;
    UPDATE outfit_like_counts SET likes = -5, private = NOT private WHERE id <= 50;
    UPDATE outfits SET private = NOT private WHERE id <= 50;
    INSERT INTO outfit_like_counts SELECT id - 5000, private, user_id, 2147483647 FROM outfits WHERE id <= 20;
    INSERT INTO outfits (id, image_key, image_original_key, user_id, private, created, modified)
    SELECT id - 5000, 'k', 'k', user_id, private, -9223372036854775808 + id, 9223372036854775807 - id FROM outfits WHERE id <= 20;
    DELETE FROM outfits WHERE id BETWEEN 100 AND 150; DELETE FROM outfit_like_counts WHERE id BETWEEN 100 AND 150;
    UPDATE outfits SET id = -2147483648 WHERE id = 200; UPDATE outfit_like_counts SET id = -2147483648 WHERE id = 200;
    UPDATE outfits SET id = 2147483647 WHERE id = 201; UPDATE outfit_like_counts SET id = 2147483647 WHERE id = 201; COMMIT`);
  await compare(client);
  expect(await applyAll(client)).toBe(2 * (100 + 20 + 51 + 4));
  // Restored with the triggers off: whatever is missing is found, and made anew, with the likes that are known.
  const likesOf = async () =>
    (await client.query('SELECT * FROM outfit_like_counts ORDER BY id')).rows;
  const before = await likesOf();
  await client.query(`BEGIN; ALTER TABLE outfits DISABLE TRIGGER ALL; ALTER TABLE outfit_like_counts DISABLE TRIGGER ALL;
    INSERT INTO outfits (id, image_key, image_original_key, user_id, private, created, modified)
    SELECT 20000 + n, 'k', 'k', 1, n % 2 = 0, n, n FROM generate_series(1, 1500) n;
    UPDATE outfits SET private = NOT private WHERE id BETWEEN 300 AND 310;
    INSERT INTO outfit_like_counts VALUES (30000, false, 1, 5);
    ALTER TABLE outfits ENABLE TRIGGER ALL; ALTER TABLE outfit_like_counts ENABLE TRIGGER ALL; COMMIT`);
  expect((await client.query('SELECT check_outfit_likes()')).rowCount).toBe(1_500 + 11 + 1);
  expect((await client.query('SELECT check_outfit_triggers()')).rowCount).toBeGreaterThan(0);
  expect((await client.query('SELECT * FROM check_outfit_counts()')).rowCount).toBeGreaterThan(0);
  await client.query('SELECT rebuild_outfit_counts()');
  expect((await client.query('SELECT check_outfit_triggers()')).rows).toEqual([]);
  await compare(client);
  const after = (await likesOf()).filter(({ id }) => id < 20_001 || id > 21_500);
  const mended = (row: { id: number; private: boolean }) =>
    row.id >= 300 && row.id <= 310 ? { ...row, private: !row.private } : row;
  expect(after).toEqual(before.map(mended));
  await applyAll(client);
});

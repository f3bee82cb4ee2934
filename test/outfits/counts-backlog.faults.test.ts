// A gateway that starts behind very many changes: it serves exact pages while they are applied to the counts.
import type pg from 'pg';
import { expect, test } from 'vitest';
import { baseOf, listing, migratedEnvironmentOf, runServer, stop } from '../support/cli/process.ts';
import { connectForTest } from '../support/databases/connections.ts';
import { applyAll, setBucketSize } from '../support/databases/small-buckets.ts';

const outfits = 20_000;

/** One transaction that no gateway has applied, with likes that are spread over all numbers. */
const insert = `
  WITH owners AS (
    INSERT INTO users (id, username, avatar_key) SELECT n, 'user ' || n, '' FROM generate_series(0, 99) n
  )
  INSERT INTO outfits (image_key, image_original_key, user_id, created, modified)
  SELECT 'k', 'k', n % 100, n * 1000000::bigint, n
  FROM generate_series(1, ${outfits}) n;
  UPDATE outfit_like_counts SET likes = (id::bigint * 1103515245 % 2147483647)::int`;
/** An outfit is told with its likes at first, then once more with its new likes; and all users. */
const changes = 3 * outfits + 100;

/** A database with all those changes, and a way to block their maintenance. */
async function startBehind() {
  const environment = await migratedEnvironmentOf('PostgreSQL');
  const client = await connectForTest(environment['DATABASE_URL']);
  await client.query(insert);
  const holder = await connectForTest(environment['DATABASE_URL']);
  return {
    environment,
    client,
    /** Maintenance begins and waits; readers continue. */
    blockMaintenance: () =>
      holder.query('BEGIN; LOCK TABLE outfit_buckets IN SHARE ROW EXCLUSIVE MODE'),
    unblockMaintenance: () => holder.query('COMMIT'),
  };
}

/** Pages from both ends, and from the middle, as the table has them. */
async function expectExactPages(base: string, client: pg.Client): Promise<void> {
  for (const [ordering, column] of [
    ['-created', 'created DESC, id DESC'],
    ['like_count', 'likes, id'],
  ]) {
    for (const page of [1, 450, outfits / 20]) {
      const { rows } = await client.query<{ id: number }>(
        `SELECT id FROM outfits JOIN outfit_like_counts USING (id) ORDER BY ${column} OFFSET ${(page - 1) * 20} LIMIT 20`,
      );
      const found = await listing(base, `?ordering=${ordering}&page=${page}`);
      expect(found.count).toBe(outfits);
      expect(found.results.map(({ id }) => id)).toEqual(rows.map(({ id }) => id));
    }
  }
}

const began = new RegExp(`applying ${changes} changes to the counts`);
const ended = new RegExp(`${changes} changes applied to the counts`);

test('it listens before it applies them, also after a kill', async () => {
  const { environment, client, blockMaintenance, unblockMaintenance } = await startBehind();
  await blockMaintenance();
  const killed = runServer(environment);
  const killedBase = await baseOf(killed);
  await killed.until(began);
  for (const path of ['/health/live', '/health/ready']) {
    expect((await fetch(killedBase + path)).status).toBe(200);
  }
  await expectExactPages(killedBase, client);
  killed.child.kill('SIGKILL');
  await killed.ended;
  expect(killed.output()).not.toMatch(ended);
  expect(killed.output().search(began)).toBeGreaterThan(killed.output().search(/REST: /));
  const server = runServer(environment);
  const base = await baseOf(server);
  await server.until(began);
  await unblockMaintenance();
  await server.until(ended);
  // Only one process applies them and logs it.
  expect(server.output().split(/changes to the counts/)).toHaveLength(2);
  await expectExactPages(base, client);
  await expect
    .poll(async () => {
      const { rows } = await client.query(
        'SELECT count(*)::int AS n FROM pending_outfit_changes()',
      );
      return rows[0].n;
    })
    .toBe(0);
  expect(await stop(server)).toBe(0);
});

test('a table that is locked by others does not keep it from listening; it is ready when pages can be read', async () => {
  const { environment, client } = await startBehind();
  await client.query('BEGIN; LOCK TABLE outfits IN ACCESS EXCLUSIVE MODE');
  const server = runServer(environment);
  const base = await baseOf(server);
  expect((await fetch(`${base}/health/live`)).status).toBe(200);
  expect((await fetch(`${base}/health/ready`)).status).toBe(503);
  await client.query('COMMIT');
  await expect.poll(async () => (await fetch(`${base}/health/ready`)).status).toBe(200);
  await expectExactPages(base, client);
  expect(await stop(server)).toBe(0);
});

test('what is written in many transactions is applied in batches, each of which is logged, while pages stay exact', async () => {
  const { environment, client } = await startBehind();
  await applyAll(client);
  // Batches of fewer changes than would have the table counted anew.
  const { rows: functions } = await client.query(
    `SELECT pg_get_functiondef('apply_pending_outfit_changes'::regproc) AS text`,
  );
  expect(functions[0].text).toContain('batch integer DEFAULT 100000');
  await client.query(functions[0].text.replace('DEFAULT 100000', 'DEFAULT 5000'));
  for (let part = 0; part < 6; part++) {
    await client.query(
      `UPDATE outfit_like_counts SET likes = 1 + likes / 2 % 1000 WHERE id % 6 = ${part} AND likes > 2000`,
    );
  }
  const { rows } = await client.query('SELECT count(*)::int AS n FROM pending_outfit_changes()');
  const all = rows[0].n;
  expect(all).toBeGreaterThan(outfits * 0.9);
  const server = runServer(environment);
  const base = await baseOf(server);
  const end = new RegExp(`${all} changes applied to the counts`);
  await server.until(new RegExp(`applying ${all} changes to the counts`));
  do await expectExactPages(base, client);
  while (!end.test(server.output()));
  await expectExactPages(base, client);
  const told = [...server.output().matchAll(/(\d+) changes applied so far/g)].map(([, applied]) =>
    Number(applied),
  );
  expect(told.length).toBeGreaterThan(1);
  // None goes back, and none is behind the end.
  expect(told).toEqual([...told].sort((a, b) => a - b));
  expect(told.at(-1)).toBeLessThanOrEqual(all);
  expect((await client.query('SELECT * FROM check_outfit_counts()')).rows).toEqual([]);
  expect(await stop(server)).toBe(0);
});

test('a gateway that is killed at any moment of a batch, a cut or a merge leaves counts that are exact', async () => {
  const { environment, client } = await startBehind();
  await setBucketSize(client, 20);
  await applyAll(client);
  let pending = 0;
  for (let kill = 0; kill < 3; kill += 1) {
    // Likes that move together make buckets too large, and those that they leave too small.
    await client.query(
      `UPDATE outfit_like_counts SET likes = CASE WHEN id % 3 = 0 THEN ${kill} ELSE id * ${kill + 1} END WHERE id % 8 <= ${kill + 2}`,
    );
    await client.query(`DELETE FROM outfits WHERE id % 97 = ${kill}`);
    const server = runServer(environment);
    await server.until(/applying \d+ changes to the counts/);
    await new Promise((go) => setTimeout(go, 100 * kill));
    server.child.kill('SIGKILL');
    await server.ended;
    // Not counted in part: what the killed transaction did not commit is pending.
    expect((await client.query('SELECT * FROM check_outfit_counts()')).rows).toEqual([]);
    const { rows } = await client.query('SELECT count(*)::int AS n FROM pending_outfit_changes()');
    if (rows[0].n > 0) pending += 1;
    const { rows: counted } = await client.query(
      'SELECT count_outfits(true) = (SELECT count(*) FROM outfits) AS "isExact"',
    );
    expect(counted).toEqual([{ isExact: true }]);
  }
  expect(pending).toBeGreaterThan(0);
});

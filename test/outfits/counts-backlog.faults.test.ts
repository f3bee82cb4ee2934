// A gateway that starts behind very many changes: it serves exact pages while they are applied to the counts.
import type pg from 'pg';
import { expect, test } from 'vitest';
import { baseOf, listing, migratedEnvironmentOf, runServer, stop } from '../support/cli/process.ts';
import { connectForTest } from '../support/databases/connections.ts';
import { applyAll } from '../support/databases/low-split-threshold.ts';

const outfits = 60_000;

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
      holder.query('BEGIN; LOCK TABLE outfit_bucket_counts IN SHARE ROW EXCLUSIVE MODE'),
    unblockMaintenance: () => holder.query('COMMIT'),
  };
}

/** Pages from both ends, and from the middle, as the table has them. */
async function expectExactPages(base: string, client: pg.Client): Promise<void> {
  for (const [ordering, column] of [
    ['-created', 'created DESC, id DESC'],
    ['like_count', 'likes, id'],
  ]) {
    for (const page of [1, 1_400, outfits / 20]) {
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

test.each(['1', '2'])(
  'with WORKERS=%s it listens before it applies them, also after each kill',
  async (WORKERS) => {
    const { environment, client, blockMaintenance, unblockMaintenance } = await startBehind();
    await blockMaintenance();
    for (let kill = 0; kill < 2; kill += 1) {
      const server = runServer({ ...environment, WORKERS });
      const base = await baseOf(server);
      await server.until(began);
      for (const path of ['/health/live', '/health/ready']) {
        expect((await fetch(base + path)).status).toBe(200);
      }
      await expectExactPages(base, client);
      server.child.kill('SIGKILL');
      await server.ended;
      expect(server.output()).not.toMatch(ended);
      if (WORKERS === '1')
        expect(server.output().search(began)).toBeGreaterThan(server.output().search(/REST: /));
    }
    const server = runServer({ ...environment, WORKERS });
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
  },
);

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
  await client.query(functions[0].text.replace('DEFAULT 100000', 'DEFAULT 15000'));
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
  const told = [
    ...server
      .output()
      .matchAll(/(\d+) changes applied, (\d+) nodes of the counts are to be split/g),
  ].map(([, applied]) => Number(applied));
  expect(told.length).toBeGreaterThan(1);
  // None goes back, and none is behind the end.
  expect(told).toEqual([...told].sort((a, b) => a - b));
  expect(told.at(-1)).toBeLessThanOrEqual(all);
  expect((await client.query('SELECT * FROM check_outfit_counts()')).rows).toEqual([]);
  expect(await stop(server)).toBe(0);
});

/** Ten times as many with SOAK_TIMES=10: what is asked for is the same. */
const hostile = 6_000 * Number(process.env['SOAK_TIMES'] ?? 1);
const steps = 8;

/** The outfit `n`, from 1 on: its id, its user, its moment, and its likes. */
const distributions: Readonly<
  Record<string, { [Name in 'id' | 'user' | 'created' | 'likes']: string }>
> = {
  'all of one moment, with likes over all numbers': {
    ...{ id: 'n', user: 'n % 100', created: '1700000000000000' },
    likes: '(n::bigint * 1103515245 % 2147483647)::int',
  },
  'with likes that follow a power law, of few users': {
    ...{ id: 'n', user: '(ln(n) * 3)::int', created: '1700000000000000 + n::bigint * 60000000' },
    likes: `(${hostile} / (1 + n::bigint * 7919 % ${hostile}))::int`,
  },
  'made in bursts': {
    ...{ id: 'n', user: 'n % 100', likes: 'n % 3' },
    created: '1700000000000000 + n / 5000 * 2592000000000 + n % 3',
  },
  'half of them of one user': {
    ...{ id: 'n', user: 'CASE WHEN n % 2 = 0 THEN 1 ELSE n % 5000 END', likes: 'n % 1000' },
    created: '1700000000000000 + n::bigint * 1000000',
  },
  'with ids in groups far apart, at both ends too': {
    id: `CASE WHEN n <= 2000 THEN n - 2147483649 WHEN n <= 4000 THEN 2147483648 - (n - 2000) ELSE (n / ${hostile / 400} - 200) * 1000000 + n % ${hostile / 400} END`,
    ...{ user: 'n % 10', created: 'n * 3600000000 - 50000000000000', likes: 'n / 100' },
  },
  'descending in all, with moments at both ends': {
    ...{ id: '-n', user: 'n % 100', likes: '2147483647 - n' },
    created:
      'CASE n % 3 WHEN 0 THEN -9223372036854775808 + n WHEN 1 THEN 9223372036854775807 - n ELSE -n END',
  },
};

const fields = ['created', 'id', 'likes', 'modified'];

/** One page of each order, near an end of the list or anywhere in it. */
async function expectPagesLikeSql(client: pg.Client, lists: readonly [string, string][]) {
  await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
  for (const field of fields) {
    const [members, condition] = lists[Math.floor(Math.random() * lists.length)] ?? ['', ''];
    const table = '(SELECT o.*, l.likes FROM outfits o JOIN outfit_like_counts l USING (id)) o';
    const { rows } = await client.query(
      `SELECT count(*)::int AS found, count_outfits(${members})::int AS counted FROM ${table} WHERE ${condition}`,
    );
    const [{ found, counted }] = rows;
    expect({ members, counted }).toEqual({ members, counted: found });
    for (const place of [Math.random(), 1]) {
      const skip = Math.max(0, Math.floor((found - 20) * place));
      const { rows: pages } = await client.query(
        `SELECT ARRAY(SELECT id FROM outfits_by_${field}(${members}, ${skip}, 20) ORDER BY position) AS page,
           ARRAY(SELECT id FROM ${table} WHERE ${condition} ORDER BY ${field}, id OFFSET ${skip} LIMIT 20) AS expected`,
      );
      const [{ page, expected }] = pages;
      expect({ members, field, skip, page }).toEqual({ members, field, skip, page: expected });
    }
  }
  await client.query('ROLLBACK');
}

test.each(Object.keys(distributions))(
  `${hostile} outfits %s are applied in batches, with exact pages after each`,
  async (name) => {
    const { id, user, created, likes } = distributions[name] as (typeof distributions)[string];
    const environment = await migratedEnvironmentOf('PostgreSQL');
    const client = await connectForTest(environment['DATABASE_URL']);
    await client.query(
      `INSERT INTO users (id, username) SELECT n, 'user ' || n FROM generate_series(0, 5000) n`,
    );
    for (let step = 0; step < steps; step++) {
      // With their likes, as an import writes them.
      await client.query(`
      WITH given AS MATERIALIZED (
        SELECT ${id} AS id, ${user} AS user_id, n % 9 = 0 AS private, ${created} AS created, ${likes} AS likes, n
        FROM generate_series(${(step * hostile) / steps + 1}, ${((step + 1) * hostile) / steps}) n
      ), outfit AS (
        INSERT INTO outfits (id, image_key, image_original_key, user_id, private, created, modified)
        SELECT id, 'k', 'k', user_id, private, created, n FROM given RETURNING 1
      )
      INSERT INTO outfit_like_counts
      SELECT id, private, user_id, likes FROM (SELECT count(*) FROM outfit) written, given`);
    }
    await client.query('ANALYZE outfits, outfit_like_counts');
    const everyone = '2147483648';
    const { rows: busy } = await client.query(
      'SELECT user_id AS id FROM outfits GROUP BY 1 ORDER BY count(*) DESC LIMIT 1',
    );
    const most = busy[0].id;
    const lists: [string, string][] = [
      [`${everyone}, ${everyone}`, 'true'],
      [`${everyone}, NULL`, 'NOT private'],
      [`${everyone}, ${most}`, `(NOT private OR user_id = ${most})`],
      [`${most}, ${most}`, `user_id = ${most}`],
      [`${most}, NULL`, `user_id = ${most} AND NOT private`],
    ];
    const applyAndCompare = async (batch: number) => {
      for (let round = 1; ; round++) {
        const { rows } = await client.query('SELECT * FROM apply_pending_outfit_changes($1)', [
          batch,
        ]);
        await expectPagesLikeSql(client, lists);
        if (rows[0].is_done) return round;
        // Each does something: so it comes to an end.
        expect(round).toBeLessThan(1_000);
      }
    };
    const expectFew = async () => {
      const { rows } = await client.query(
        'SELECT count(*)::int AS nodes FROM outfit_bucket_counts',
      );
      expect(rows[0].nodes).toBeLessThanOrEqual(hostile / 2);
      const wrong = `SELECT * FROM check_outfit_counts()`;
      expect((await client.query(wrong)).rows).toEqual([]);
      expect((await client.query('SELECT check_outfit_likes()')).rows).toEqual([]);
      expect((await client.query('SELECT * FROM audit_outfit_counts()')).rows).toEqual([]);
      // No node above the threshold is left that could be split.
      const unsplit = `SELECT count(*)::int AS n FROM outfit_bucket_counts c JOIN outfit_levels() l USING (level)
      WHERE NOT split AND NOT is_last AND public + private > outfit_split_threshold()`;
      expect((await client.query(unsplit)).rows).toEqual([{ n: 0 }]);
    };
    expect(await applyAndCompare(hostile / 4)).toBeGreaterThan(4);
    await expectFew();
    // So many that the table is counted anew, in batches that end in the middle of splitting.
    await client.query('UPDATE outfit_like_counts SET likes = likes / 2');
    await client.query('UPDATE outfits SET private = NOT private WHERE id % 10 = 0');
    await applyAndCompare(hostile);
    await expectFew();
  },
);

// A gateway that starts behind very many changes: it serves exact pages while they are folded into the counts.
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { baseOf, listing, migratedEnvironmentOf, runServer, stop } from '../process.ts';

const outfits = 60_000;

/** One transaction that no gateway has folded, with likes that are spread over all numbers. */
const insert = `
  WITH owners AS (
    INSERT INTO users (id, username, avatar_key) SELECT n, 'user ' || n, '' FROM generate_series(0, 99) n
  )
  INSERT INTO outfits (image_key, image_original_key, user_id, likes, created, modified)
  SELECT 'k', 'k', n % 100, (n::bigint * 1103515245 % 2147483647)::int, n * 1000000::bigint, n
  FROM generate_series(1, ${outfits}) n`;

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client(url);
  // It is cut when the database is removed.
  client.on('error', () => {});
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

/** A database with all those changes, and what keeps folds from ending. */
async function startBehind() {
  const environment = await migratedEnvironmentOf('PostgreSQL');
  const client = await connect(environment['DATABASE_URL'] ?? '');
  await client.query(insert);
  const holder = await connect(environment['DATABASE_URL'] ?? '');
  return {
    environment,
    client,
    /** From now on a fold begins, and waits; readers go on. */
    holdFolds: () =>
      holder.query('BEGIN; LOCK TABLE outfit_bucket_counts IN SHARE ROW EXCLUSIVE MODE'),
    releaseFolds: () => holder.query('COMMIT'),
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
        `SELECT id FROM outfits ORDER BY ${column} OFFSET ${(page - 1) * 20} LIMIT 20`,
      );
      const found = await listing(base, `?ordering=${ordering}&page=${page}`);
      expect(found.count).toBe(outfits);
      expect(found.results.map(({ id }) => id)).toEqual(rows.map(({ id }) => id));
    }
  }
}

const began = /folding 60100 changes into the counts/;
const ended = /60100 changes folded into the counts/;

test.each(['1', '2'])(
  'with WORKERS=%s it listens before it folds, and so after each kill',
  async (WORKERS) => {
    const { environment, client, holdFolds, releaseFolds } = await startBehind();
    await holdFolds();
    for (let kill = 0; kill < 3; kill += 1) {
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
    await releaseFolds();
    await server.until(ended);
    // One process folds, and the others do not say that they do.
    expect(server.output().split(/changes into the counts/)).toHaveLength(2);
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

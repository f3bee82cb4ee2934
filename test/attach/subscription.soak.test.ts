// The old service on another database: its tables come by PostgreSQL's own logical replication, and are attached here.
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { retryProblems } from '../../src/attach/attachment.ts';
import { readSubscriptions } from '../../src/attach/compare.ts';
import { checkMapping } from '../../src/attach/mapping.ts';
import { isInstalled, startDebianPostgres } from '../support/databases/debian-postgres.ts';
import { attach, check, makeOldTables, mapping } from '../support/legacy/old-tables.ts';

test.skipIf(!isInstalled)(
  'is followed, also through errors, TRUNCATE and a subscription that was stopped',
  async () => {
    const postgres = await startDebianPostgres('-c wal_level=logical -c fsync=off');
    onTestFinished(() => postgres.close());
    const server = `postgresql://postgres@127.0.0.1:${postgres.port}/postgres`;
    const there = await makeOldTables(server);
    const here = await makeOldTables(server);
    await here.old.query('TRUNCATE shop.outfit, shop.person CASCADE');
    expect(await attach(here.environment)).toMatchObject({ code: 0 });
    const tables = ['person', 'profile', 'outfit', 'picture', 'likes'].map(
      (name) => `shop.${name}`,
    );
    await there.old.query(`CREATE PUBLICATION outfits FOR TABLE ${tables}`);
    // In one server, CREATE SUBSCRIPTION would wait for itself.
    await there.old.query("SELECT pg_create_logical_replication_slot('outfits', 'pgoutput')");
    await here.old.query(
      `CREATE SUBSCRIPTION outfits CONNECTION '${there.url}' PUBLICATION outfits WITH (create_slot = false)`,
    );
    onTestFinished(async () => {
      await here.old.query(
        'ALTER SUBSCRIPTION outfits DISABLE; ALTER SUBSCRIPTION outfits SET (slot_name = NONE)',
      );
      await here.old.query('DROP SUBSCRIPTION outfits');
      await expect
        .poll(() =>
          there.old.query("SELECT pg_drop_replication_slot('outfits')").then(
            () => true,
            () => false,
          ),
        )
        .toBe(true);
    });
    const state = async (sql: string, side: typeof here) => (await side.old.query(sql)).rows;
    const listed =
      'SELECT o.id, o.title, o.private, count(l) AS likes FROM {o} o LEFT JOIN {l} l ON l.outfit_id = o.id GROUP BY o.id, o.title, o.private ORDER BY o.id';
    const source = listed
      .replace('{o}', '(SELECT id::int, title, private FROM shop.outfit WHERE deleted IS NULL)')
      .replace('{l}', 'shop.likes');
    const ours = listed.replace('{o}', 'gateway.outfits').replace('{l}', 'gateway.outfit_likes');
    const pool = new pg.Pool({ connectionString: here.url, options: '-c search_path=gateway' });
    onTestFinished(() => pool.end());
    const arrive = async () => {
      const wanted = await state(source, there);
      // A gateway does so.
      const look = async () => {
        await retryProblems(pool);
        return state(ours, here);
      };
      await expect.poll(look, { timeout: 60_000 }).toEqual(wanted);
    };
    await arrive();
    await there.old.query(`UPDATE shop.outfit SET title = 'changed', private = true WHERE id < 20; DELETE FROM shop.outfit WHERE id = 30;
    INSERT INTO shop.person (id, username) VALUES (90, 'new'); INSERT INTO shop.outfit (id, person_id) VALUES (900, 90);
    INSERT INTO shop.picture VALUES (900, 'p'); INSERT INTO shop.likes VALUES (900, 90), (900, 1), (7, 90); DELETE FROM shop.likes WHERE outfit_id = 8`);
    await arrive();
    await there.old.query(
      'UPDATE shop.outfit SET deleted = now() WHERE id = 40; TRUNCATE shop.likes',
    );
    await arrive();
    expect(await check(here.environment)).toMatchObject({ code: 0 });
    await here.old.query('ALTER SUBSCRIPTION outfits DISABLE');
    await there.old.query("UPDATE shop.outfit SET title = 'later' WHERE id = 50");
    expect((await check(here.environment)).stdout).toContain(
      'the subscription outfits is disabled',
    );
    await here.old.query('ALTER SUBSCRIPTION outfits ENABLE');
    await arrive();
    const { rows } = await here.old.query(
      'SELECT count(*)::int AS wrong FROM gateway.outfit_like_counts c WHERE likes <> (SELECT count(*) FROM gateway.outfit_likes WHERE outfit_id = c.id)',
    );
    expect(rows).toEqual([{ wrong: 0 }]);
    await expect
      .poll(
        async () => (await readSubscriptions(here.old as never, checkMapping(mapping, 'it'))).lag,
      )
      .toBeGreaterThanOrEqual(0);
  },
);

// Tables that come from another database by PostgreSQL's own logical replication: those of an old service, which are attached
// here, and those of a gateway.
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { retryProblems } from '../../src/attach/attachment.ts';
import { readSubscriptions } from '../../src/attach/compare.ts';
import { checkMapping } from '../../src/attach/mapping.ts';
import { connectForTest } from '../support/databases/connections.ts';
import { isInstalled, startDebianPostgres } from '../support/databases/debian-postgres.ts';
import { makeDatabase, migrateDatabase } from '../support/databases/test-database.ts';
import { attach, bothWays, check, makeOldTables, mapping } from '../support/legacy/old-tables.ts';

describe.skipIf(!isInstalled)('by a subscription', () => {
  let server: string;
  let postgres: Awaited<ReturnType<typeof startDebianPostgres>>;
  beforeAll(async () => {
    postgres = await startDebianPostgres('-c wal_level=logical -c fsync=off');
    server = `postgresql://postgres@127.0.0.1:${postgres.port}/postgres`;
  });
  afterAll(() => postgres.close());

  /** In one server, CREATE SUBSCRIPTION would wait for itself. */
  async function subscribe(
    here: pg.Client,
    there: pg.Client,
    url: string,
    tables: readonly string[],
  ) {
    const name = tables[0]?.replace('.', '_');
    await there.query(`CREATE PUBLICATION ${name} FOR TABLE ${tables}`);
    await there.query(`SELECT pg_create_logical_replication_slot('${name}', 'pgoutput')`);
    await here.query(
      `CREATE SUBSCRIPTION ${name} CONNECTION '${url}' PUBLICATION ${name} WITH (create_slot = false)`,
    );
    onTestFinished(async () => {
      await here.query(
        `ALTER SUBSCRIPTION ${name} DISABLE; ALTER SUBSCRIPTION ${name} SET (slot_name = NONE)`,
      );
      await here.query(`DROP SUBSCRIPTION ${name}`);
      const drop = () =>
        there.query(`SELECT pg_drop_replication_slot('${name}')`).then(
          () => true,
          () => false,
        );
      await expect.poll(drop).toBe(true);
    });
  }

  test('the tables of an old service are followed, also through errors, TRUNCATE and a subscription that was stopped', async () => {
    const there = await makeOldTables(server);
    const here = await makeOldTables(server);
    for (const { old } of [there, here]) {
      await old.query(`CREATE TABLE shop.part (outfit_id bigint) PARTITION BY RANGE (outfit_id);
        CREATE TABLE shop.part_1 PARTITION OF shop.part DEFAULT`);
    }
    await here.old.query('TRUNCATE shop.outfit, shop.person CASCADE');
    expect(await attach(here.environment)).toMatchObject({ code: 0 });
    const tables = ['person', 'profile', 'outfit', 'picture', 'likes', 'part'].map(
      (name) => `shop.${name}`,
    );
    await subscribe(here.old, there.old, there.url, tables);
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
    expect((await attach(here.environment, bothWays)).stderr).toContain(
      'comes from another database, by a subscription',
    );
    const sentencesOf = async (...names: string[]) => {
      const changes = { ...Object.fromEntries(names.map((name) => [name, 'outfit_id'])) };
      const outfits = { ...mapping.outfits, changes: { ...mapping.outfits.changes, ...changes } };
      const more = checkMapping({ ...mapping, outfits }, 'it');
      return (await readSubscriptions(here.old as never, more)).sentences;
    };
    // Of a partitioned table, the partitions are subscribed.
    expect(await sentencesOf('shop.comment', 'shop.part')).toEqual([
      'no subscription has the table shop.comment',
    ]);
    await here.old.query('ALTER SUBSCRIPTION shop_person DISABLE');
    await there.old.query("UPDATE shop.outfit SET title = 'later' WHERE id = 50");
    expect((await check(here.environment)).stdout).toContain(
      'the subscription shop_person is disabled',
    );
    await here.old.query('ALTER SUBSCRIPTION shop_person ENABLE');
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
  });

  test('outfits of another gateway are counted, and found by their texts', async () => {
    const [there, here] = [await makeDatabase(server), await makeDatabase(server)];
    for (const { environment } of [there, here]) await migrateDatabase(environment);
    const connect = ({ environment }: typeof here) => connectForTest(environment['DATABASE_URL']);
    const [source, copy] = [await connect(there), await connect(here)];
    const save = (id: number, title: string) =>
      source.query('SELECT save_outfit($1)', [{ id, title, user_id: 1, image_key: 'k' }]);
    await source.query(`SELECT save_user('{"id": 1, "username": "one"}')`);
    await save(1, 'at first #one');
    await subscribe(copy, source, `${there.environment['DATABASE_URL']}`, [
      'outfits',
      'users',
      'outfit_like_counts',
    ]);
    const texts = 'SELECT * FROM outfit_texts ORDER BY outfit_id';
    const arrive = async () => {
      const { rows } = await source.query(texts);
      await expect.poll(async () => (await copy.query(texts)).rows).toEqual(rows);
    };
    await arrive();
    await save(2, 'Then #two');
    await save(3, 'gone');
    await arrive();
    await save(1, 'changed #three');
    await source.query('SELECT delete_outfit(3)');
    await arrive();
    await source.query(`UPDATE outfits SET id = 4 WHERE id = 2`);
    await arrive();
    const counted =
      'SELECT count_outfits(true)::int AS count, ARRAY(SELECT id FROM check_outfit_likes() AS id) AS wrong';
    await expect
      .poll(async () => (await copy.query(counted)).rows)
      .toEqual([{ count: 2, wrong: [] }]);
  });
});

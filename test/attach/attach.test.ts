// The tables of an old service, attached one way: what its transactions change is here when they commit.
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { attach as copyAll } from '../../src/attach/attach.ts';
import { carryNoted, retryProblems } from '../../src/attach/attachment.ts';
import { readMapping } from '../../src/attach/mapping.ts';
import * as countsCommand from '../../src/commands/counts.ts';
import * as detachCommand from '../../src/commands/detach.ts';
import * as forgetCommand from '../../src/commands/forget.ts';
import * as importCommand from '../../src/commands/import.ts';
import { callCommand } from '../support/cli/commands.ts';
import { baseOf, listing, runServer } from '../support/cli/process.ts';
import { connectForTest } from '../support/databases/connections.ts';
import { migrateDatabase } from '../support/databases/test-database.ts';
import { send } from '../support/faults/load.ts';
import { outfitId } from '../support/gateway.ts';
import { openStream } from '../support/http/event-stream.ts';
import { secret, signIn } from '../support/http/tokens.ts';
import {
  attach,
  bothWays,
  check,
  equal,
  fileOf,
  mapping,
  numberMapping,
  queryHere,
  useOldTables,
} from '../support/legacy/old-tables.ts';

const makeOldTables = useOldTables();

/** What triggers here compute of the rows is right, too. */
async function expectRight(old: pg.Client) {
  const rows = await queryHere(
    old,
    `SELECT (SELECT count(*)::int FROM check_outfit_likes()) AS likes, (SELECT count(*)::int FROM check_outfit_counts()) AS counts,
    (SELECT count(*)::int FROM check_outfit_triggers()) AS triggers`,
  );
  expect(rows).toEqual([{ likes: 0, counts: 0, triggers: 0 }]);
}

function poolOf(url: string, schema = 'gateway') {
  const pool = new pg.Pool({ connectionString: url, options: `-c search_path=${schema}` });
  onTestFinished(() => pool.end());
  return pool;
}

async function attached(given: unknown = mapping) {
  const made = await makeOldTables(given);
  const outfit = async (id: number) =>
    (
      await made.old.query(
        'SELECT o.*, likes FROM gateway.outfits o JOIN gateway.outfit_like_counts USING (id) WHERE id = $1',
        [id],
      )
    ).rows[0];
  return { ...made, outfit };
}

describe('a transaction of the old service', () => {
  /** Statements of one transaction, and an outfit afterwards. */
  test.each<[string, string, number, object | undefined]>([
    [
      'creates an outfit with its picture',
      `INSERT INTO shop.outfit (id, title, person_id) VALUES (900, ' new ', 3); INSERT INTO shop.picture VALUES (900, 'outfits/a.png')`,
      900,
      {
        title: 'new',
        image_key: 'outfits/a.png',
        image_original_key: 'outfits/a.png',
        user_id: 3,
        likes: 0,
      },
    ],
    [
      'creates a user, an outfit and a like',
      `INSERT INTO shop.person (id, username) VALUES (77, 'new'); INSERT INTO shop.likes VALUES (901, 77); INSERT INTO shop.outfit (id, person_id) VALUES (901, 77); INSERT INTO shop.picture VALUES (901, 'x.png')`,
      901,
      { user_id: 77, likes: 1 },
    ],
    [
      'edits',
      `UPDATE shop.outfit SET title = 'edited', private = true, color = '#FFF', video = 'v.mp4' WHERE id = 5`,
      5,
      {
        title: 'edited',
        private: true,
        background_color: '#fff',
        video_key: 'v.mp4',
        play_video: true,
      },
    ],
    [
      'edits another row in a trigger of its own',
      `UPDATE shop.outfit SET video = 'v.mp4' WHERE id = 5`,
      6,
      { quality: 5 },
    ],
    [
      'edits the picture, in a table of its own',
      `UPDATE shop.picture SET key = 'other.png' WHERE outfit_id = 5`,
      5,
      { image_key: 'other.png' },
    ],
    ['deletes, with cascades', 'DELETE FROM shop.outfit WHERE id = 5', 5, undefined],
    ['deletes softly', 'UPDATE shop.outfit SET deleted = now() WHERE id = 5', 5, undefined],
    [
      'restores with its likes',
      'UPDATE shop.outfit SET deleted = now() WHERE id = 8; SET CONSTRAINTS ALL IMMEDIATE; UPDATE shop.outfit SET deleted = NULL WHERE id = 8',
      8,
      { likes: 3 },
    ],
    [
      'changes the id',
      'DELETE FROM shop.likes WHERE outfit_id = 5; DELETE FROM shop.picture WHERE outfit_id = 5; UPDATE shop.outfit SET id = 905 WHERE id = 5; INSERT INTO shop.picture VALUES (905, $$p$$)',
      905,
      { title: 'Outfit 5' },
    ],
    [
      'likes and unlikes',
      'DELETE FROM shop.likes WHERE outfit_id = 8; INSERT INTO shop.likes VALUES (8, 1), (8, 2), (8, 3)',
      8,
      { likes: 3 },
    ],
    [
      'edits what is not read, and nothing at all',
      'UPDATE shop.person SET last_login = now(); UPDATE shop.outfit SET title = title WHERE id = 5',
      5,
      { title: 'Outfit 5' },
    ],
    [
      'edits again and again',
      "UPDATE shop.outfit SET title = 'a' WHERE id = 5; UPDATE shop.outfit SET title = 'b' WHERE id = 5; UPDATE shop.outfit SET quality = 4 WHERE id = 6; UPDATE shop.outfit SET title = 'c' WHERE id = 5",
      5,
      { title: 'c' },
    ],
    [
      'is taken back to a savepoint',
      `SAVEPOINT a; UPDATE shop.outfit SET title = 'no' WHERE id = 5; ROLLBACK TO a; UPDATE shop.outfit SET quality = 4 WHERE id = 5`,
      5,
      { title: 'Outfit 5', quality: 4 },
    ],
    [
      'deletes a user with all outfits and likes',
      'DELETE FROM shop.outfit WHERE person_id = 5; DELETE FROM shop.person WHERE id = 5',
      4,
      undefined,
    ],
    [
      'writes all rows at once',
      `UPDATE shop.outfit SET title = title || '!', private = NOT private; DELETE FROM shop.likes; INSERT INTO shop.likes SELECT o.id, p.id FROM shop.outfit o, shop.person p`,
      5,
      { title: 'Outfit 5!', private: true, likes: 20 },
    ],
    [
      'edits other rows in a deferred trigger of its own',
      `CREATE TABLE shop.audit (outfit_id int);
       CREATE FUNCTION shop.audited() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE shop.outfit SET quality = 5 WHERE id = NEW.outfit_id; RETURN NULL; END $$;
       CREATE CONSTRAINT TRIGGER audited AFTER INSERT ON shop.audit DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION shop.audited();
       UPDATE shop.outfit SET title = 'edited' WHERE id = 1; INSERT INTO shop.audit VALUES (2), (3)`,
      3,
      { quality: 5 },
    ],
    ['truncates the likes', 'TRUNCATE shop.likes', 8, { likes: 0 }],
    ['truncates all', 'TRUNCATE shop.outfit, shop.person CASCADE', 8, undefined],
  ])('%s', async (_what, statements, id, expected) => {
    const { old, environment, outfit } = await attached();
    await old.query(`BEGIN; ${statements}; COMMIT`);
    const found = await outfit(id);
    if (expected) expect(found).toMatchObject(expected);
    else expect(found).toBeUndefined();
    expect(await check(environment)).toEqual(equal);
    await expectRight(old);
  });

  test('carries likes that are a number over as the difference', async () => {
    const { old, environment } = await makeOldTables();
    await old.query('UPDATE shop.outfit SET likes = id % 7');
    expect(await attach(environment, numberMapping)).toEqual(equal);
    const likes = async () =>
      (await old.query('SELECT likes FROM gateway.outfit_like_counts WHERE id = 8')).rows[0].likes;
    expect(await likes()).toBe(1);
    await old.query('UPDATE shop.outfit SET likes = likes + 4 WHERE id = 8');
    expect(await likes()).toBe(5);
    // What is here beside the number there stays.
    await old.query(
      'UPDATE gateway.outfit_like_counts SET likes = likes + 100 WHERE id = 8; UPDATE shop.outfit SET likes = likes - 2 WHERE id = 8',
    );
    expect(await likes()).toBe(103);
    expect(await check(environment)).toEqual(equal);
  });

  test('counts the likes of the other mapping once, when attached again by rows, and again by the number', async () => {
    const { old, environment, outfit } = await attached(numberMapping);
    const likes = async () => (await outfit(8)).likes;
    await old.query('UPDATE shop.outfit SET likes = 9 WHERE id = 8');
    expect(await likes()).toBe(9);
    expect(await attach(environment)).toMatchObject({ code: 0 });
    expect(await check(environment)).toEqual(equal);
    expect(await likes()).toBe(3);
    await old.query(
      'UPDATE shop.outfit SET likes = 12 WHERE id = 8; INSERT INTO shop.likes VALUES (8, 15)',
    );
    expect(await likes()).toBe(4);
    expect(await attach(environment, numberMapping)).toMatchObject({ code: 0 });
    expect(await likes()).toBe(12);
    await callCommand(detachCommand, [], environment);
    await queryHere(old, 'SELECT save_like(8, 16)');
    expect(await likes()).toBe(13);
    expect(await attach(environment, numberMapping)).toMatchObject({ code: 0 });
    expect(await likes()).toBe(13);
    expect(await check(environment)).toEqual(equal);
  });

  test('a transaction of the old service of another isolation level does not fail, and is carried over by the next look', async () => {
    const { old, url, environment } = await attached();
    const other = await connectForTest(url);
    await old.query(
      "BEGIN ISOLATION LEVEL REPEATABLE READ; UPDATE shop.outfit SET title = 'late' WHERE id = 8",
    );
    await other.query('INSERT INTO shop.likes VALUES (8, 15)');
    await old.query('INSERT INTO shop.likes VALUES (8, 16)');
    await old.query('COMMIT');
    expect((await check(environment)).code).toBe(1);
    await old.query(
      "BEGIN ISOLATION LEVEL REPEATABLE READ; UPDATE shop.outfit SET title = 'late' WHERE id = 7; COMMIT",
    );
    await carryNoted(poolOf(url), 1);
    await carryNoted(poolOf(url), 1);
    expect(await check(environment)).toEqual(equal);
    // Each alone: with locks of both, the old service could deadlock.
    const { rows } = await old.query(
      'SELECT count(DISTINCT xmin::text)::int FROM gateway.outfits WHERE id IN (7, 8)',
    );
    expect(rows).toEqual([{ count: 2 }]);
  });

  test('a transaction of another isolation level is carried over by detach, if no gateway runs', async () => {
    const { old, environment, outfit } = await attached();
    await old.query(
      "BEGIN ISOLATION LEVEL REPEATABLE READ; UPDATE shop.outfit SET title = 'late' WHERE id = 8; COMMIT",
    );
    await callCommand(detachCommand, [], environment);
    expect(await outfit(8)).toMatchObject({ title: 'late' });
  });

  test('what is noted of an old table that is locked keeps no gateway from starting, and is carried over after the lock', async () => {
    const { old, url, environment } = await attached();
    const other = await connectForTest(url);
    for (const id of [7, 8]) {
      await old.query(
        `BEGIN ISOLATION LEVEL REPEATABLE READ; UPDATE shop.outfit SET title = 'late' WHERE id = ${id}; COMMIT`,
      );
    }
    await other.query('BEGIN; LOCK TABLE shop.outfit');
    // Not the first alone is tried.
    expect(await carryNoted(poolOf(url), null)).toBe(2);
    await baseOf(runServer(environment));
    const late = async () =>
      (await old.query("SELECT id FROM gateway.outfits WHERE title = 'late' ORDER BY id")).rows;
    expect(await late()).toEqual([]);
    await other.query('ROLLBACK');
    await expect.poll(late, { timeout: 60_000 }).toEqual([{ id: 7 }, { id: 8 }]);
  });

  test.each([
    ['changes a table and its rows', 'ALTER TABLE shop.picture ADD note text'],
    ['empties a table', 'TRUNCATE shop.likes'],
  ])(
    'waits for no other that %s, and is carried over by a look after that',
    async (_what, alter) => {
      const { old, url, environment } = await attached();
      const other = await connectForTest(url);
      await other.query(`BEGIN; ${alter}; UPDATE shop.picture SET key = 'p' WHERE outfit_id = 7`);
      await old.query("UPDATE shop.outfit SET title = 'new' WHERE id = 7");
      await other.query('COMMIT');
      await carryNoted(poolOf(url), null);
      expect(await check(environment)).toEqual(equal);
    },
  );

  test('is carried over alike by sessions that write times and bytes in another form', async () => {
    const { old, environment } = await makeOldTables();
    const select = mapping.outfits.select.map((line) =>
      line.replace(
        'o.description',
        "concat(o.created, date '2026-01-02', '\\001'::bytea) AS description",
      ),
    );
    const outfits = { ...mapping.outfits, select };
    expect(await attach(environment, { ...mapping, outfits })).toEqual(equal);
    await old.query(
      "SET DateStyle = German; SET TimeZone = 'Asia/Tokyo'; SET bytea_output = escape; UPDATE shop.outfit SET quality = 4 WHERE id = 7; RESET ALL",
    );
    expect(await check(environment)).toEqual(equal);
  });

  test('carries over when a like was given, also where the mapping says so later', async () => {
    const { old, environment } = await attached();
    await old.query("ALTER TABLE shop.likes ADD given timestamptz NOT NULL DEFAULT '2026-01-02Z'");
    const likes = {
      ...mapping.likes,
      select: 'SELECT outfit_id, person_id AS user_id, given AS created FROM shop.likes',
    };
    expect(await attach(environment, { ...mapping, likes })).toMatchObject({ code: 0 });
    await old.query("UPDATE shop.likes SET given = '2026-01-03Z' WHERE outfit_id = 8");
    const { rows } = await old.query(
      'SELECT DISTINCT outfit_id = 8 AS later, created FROM gateway.outfit_likes ORDER BY 1',
    );
    expect(rows).toEqual([
      { later: false, created: '1767312000000000' },
      { later: true, created: '1767398400000000' },
    ]);
  });

  test('deletes a user while an outfit comes back that the user liked, which is not counted any more', async () => {
    const { old, url, environment } = await makeOldTables();
    const [back, deleted] = [await connectForTest(url), await connectForTest(url)];
    await old.query(`INSERT INTO shop.person (id, username) VALUES (90, 'a'), (91, 'b'); INSERT INTO shop.likes VALUES (7, 91);
      UPDATE shop.outfit SET deleted = now() WHERE id = 7`);
    expect(await attach(environment)).toEqual(equal);
    await old.query('BEGIN; SELECT FROM gateway.users WHERE id = 90 FOR KEY SHARE');
    const waiting = async () =>
      (
        await old.query(
          "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
        )
      ).rowCount;
    // It is held up after the likes of the outfit.
    const first = back.query(
      'BEGIN; UPDATE shop.outfit SET deleted = NULL WHERE id = 7; DELETE FROM shop.person WHERE id = 90; COMMIT',
    );
    await expect.poll(waiting).toBe(1);
    const second = deleted.query('DELETE FROM shop.person WHERE id = 91');
    await expect.poll(waiting).toBe(2);
    await old.query('COMMIT');
    await Promise.all([first, second]);
    expect(await check(environment)).toEqual(equal);
  });

  test('locks nothing here before it commits, so that two that like in another order do not deadlock', async () => {
    const { old, url, environment } = await attached();
    const other = await connectForTest(url);
    await old.query('DELETE FROM shop.likes WHERE outfit_id IN (8, 9)');
    await old.query('BEGIN; INSERT INTO shop.likes VALUES (8, 15)');
    await other.query('BEGIN; INSERT INTO shop.likes VALUES (9, 15)');
    await old.query('INSERT INTO shop.likes VALUES (9, 16)');
    await other.query('INSERT INTO shop.likes VALUES (8, 16)');
    await Promise.all([old.query('COMMIT'), other.query('COMMIT')]);
    expect(await check(environment)).toEqual(equal);
  });
});

test('a TRUNCATE of the old service that waits for a lock here fails, and does not blame the columns', async () => {
  const { old, url, environment } = await attached();
  const other = await connectForTest(url);
  await other.query('BEGIN; LOCK gateway.outfit_likes');
  await old.query("SET lock_timeout = '50ms'");
  await expect(old.query('TRUNCATE shop.likes')).rejects.toMatchObject({ code: '55P03' });
  await other.query('ROLLBACK');
  expect(await check(environment)).toEqual(equal);
});

describe('what cannot be represented', () => {
  test('fails nothing there, is named, and is mended when it can be', async () => {
    const { old, environment, outfit } = await attached();
    await old.query(`
      INSERT INTO shop.outfit (id, person_id) VALUES (3000000000, 1), (910, 1), (911, 1);
      INSERT INTO shop.picture VALUES (3000000000, 'p'), (911, 'p');
      UPDATE shop.outfit SET created = 'infinity' WHERE id = 911;
      INSERT INTO shop.likes VALUES (910, 1);
      INSERT INTO shop.person (id, username) VALUES (90, NULL);
      INSERT INTO shop.outfit (id, person_id) VALUES (912, 90); INSERT INTO shop.picture VALUES (912, 'p'); INSERT INTO shop.likes VALUES (912, 2), (7, 90)`);
    const { code, stdout } = await check(environment);
    expect([code, stdout.split('\n')]).toEqual([
      1,
      [
        '1 outfits cannot be carried over (911): created is not in a year from 1 to 9999.',
        '1 outfits cannot be carried over (3000000000): id is beyond 31 bits.',
        '1 outfits cannot be carried over (910): image_key is null.',
        '1 outfits cannot be carried over (912): its user is not here.',
        '1 users cannot be carried over (90): username is null.',
        '3 likes wait for a user or outfit that is not here.',
        'Both sides are equal.',
        '',
      ],
    ]);
    await old.query(`DELETE FROM shop.outfit WHERE id = 3000000000; UPDATE shop.outfit SET created = now() WHERE id = 911;
      INSERT INTO shop.picture VALUES (910, 'p'); UPDATE shop.person SET username = 'ninety' WHERE id = 90`);
    expect(await outfit(910)).toMatchObject({ likes: 1 });
    expect(await outfit(912)).toMatchObject({ user_id: 90, likes: 1 });
    expect(await check(environment)).toEqual(equal);
  });

  test('is named by check, too, if no trigger has noted it', async () => {
    const { old, environment } = await attached();
    await old.query(`ALTER TABLE shop.person DISABLE TRIGGER attached_update; UPDATE shop.person SET username = NULL WHERE id = 5;
      ALTER TABLE shop.person ENABLE TRIGGER attached_update`);
    expect((await check(environment)).stdout).toBe('1 users differ: 5 different username.\n');
    expect(await attach(environment)).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('1 users cannot be carried over (5): username is null.'),
    });
  });

  test('is a number of microseconds before the year 1 or after 9999', async () => {
    const { old, environment } = await makeOldTables();
    await old.query('ALTER TABLE shop.outfit ADD made bigint NOT NULL DEFAULT 1700000000000000');
    const select = mapping.outfits.select.map((line) =>
      line.replace('o.created', 'o.made AS created'),
    );
    const outfits = { ...mapping.outfits, select };
    expect(await attach(environment, { ...mapping, outfits })).toEqual(equal);
    await old.query('UPDATE shop.outfit SET made = 9e18 WHERE id = 5');
    await old.query('UPDATE shop.outfit SET made = -62135596800000001 WHERE id = 6');
    const sentence =
      '2 outfits cannot be carried over (5, 6): created is not in a year from 1 to 9999.';
    expect((await check(environment)).stdout).toContain(sentence);
  });

  test('is a row that a constraint here refuses, in the first copy too, and others are carried over', async () => {
    const { old, environment } = await makeOldTables();
    await old.query('ALTER TABLE gateway.outfits ADD CONSTRAINT short CHECK (length(title) < 12)');
    await old.query("UPDATE shop.outfit SET title = 'much too long' WHERE id IN (5, 6)");
    const { code, stdout } = await attach(environment);
    expect([code, stdout]).toEqual([
      1,
      expect.stringContaining('2 outfits cannot be carried over (5, 6)'),
    ]);
    await old.query("UPDATE shop.outfit SET title = 'short' WHERE id = 5");
    await old.query('ALTER TABLE gateway.outfits DROP CONSTRAINT short');
    expect((await attach(environment)).code).toBe(0);
    expect(await check(environment)).toEqual(equal);
  });

  test('is one outfit of a user who comes later, and the user and the others are there, whose problem is one row', async () => {
    const { old, environment, outfit } = await attached();
    await old.query(`ALTER TABLE gateway.outfits ADD CONSTRAINT short CHECK (length(title) < 12);
      INSERT INTO shop.person (id, username) VALUES (90, NULL);
      INSERT INTO shop.outfit (id, title, person_id) VALUES (912, 'much too long', 90), (913, 'short', 90);
      INSERT INTO shop.picture VALUES (912, 'p'), (913, 'p'); INSERT INTO shop.likes VALUES (913, 90), (100, 90) ON CONFLICT DO NOTHING`);
    await old.query("UPDATE shop.person SET username = 'ninety' WHERE id = 90");
    expect(await outfit(913)).toMatchObject({ user_id: 90, likes: 1 });
    const problems = 'SELECT kind, id::int, problem FROM gateway.attached_problems';
    const tooLong = [{ kind: 'outfits', id: 912, problem: expect.stringContaining('"short"') }];
    expect((await old.query(problems)).rows).toEqual(tooLong);
    await old.query('UPDATE shop.person SET username = NULL WHERE id = 90');
    await old.query('ALTER TABLE gateway.outfits DROP CONSTRAINT short');
    await old.query(
      "UPDATE shop.person SET username = 'ninety' WHERE id = 90; UPDATE shop.outfit SET quality = 5 WHERE id = 912",
    );
    expect(await check(environment)).toEqual(equal);
  });

  test('is tried again in transactions that are short, so that statements of the old service do not deadlock with it', async () => {
    const { old, url, environment, outfit } = await attached();
    await old.query(`ALTER TABLE gateway.outfits ADD CONSTRAINT short CHECK (length(title) < 12);
      CREATE VIEW public.transactions AS SELECT DISTINCT xmin::text FROM gateway.outfits WHERE id BETWEEN 1000 AND 1900;
      SET session_replication_role = replica; ALTER TABLE shop.outfit DISABLE TRIGGER ALL; ALTER TABLE shop.picture DISABLE TRIGGER ALL;
      INSERT INTO shop.outfit (id, title, person_id) SELECT n, CASE n WHEN 1500 THEN 'much too long' ELSE '' END, 1 FROM generate_series(1000, 1900) n;
      INSERT INTO shop.picture SELECT id, 'p' FROM shop.outfit WHERE id >= 1000;
      ALTER TABLE shop.outfit ENABLE TRIGGER ALL; ALTER TABLE shop.picture ENABLE TRIGGER ALL; RESET session_replication_role;
      INSERT INTO gateway.attached_problems SELECT 'outfits', n, 1 FROM generate_series(1000, 1900) n`);
    expect(await retryProblems(poolOf(url))).toBeUndefined();
    expect(await outfit(1900)).toMatchObject({ user_id: 1, likes: 0 });
    const { rows } = await old.query('SELECT count(*)::int FROM public.transactions');
    // Half of them, half of the rest, and so on, as large as they can be.
    expect(rows[0].count).toBeGreaterThan(5);
    expect(rows[0].count).toBeLessThan(20);
    expect((await check(environment)).stdout).toContain('1 outfits cannot be carried over (1500)');
  });

  test('is tried again a thousand at a time, those that are left then in the next call', async () => {
    const { old, url } = await attached();
    await old.query(
      "INSERT INTO gateway.attached_problems SELECT 'likes', n, 1, NULL FROM generate_series(5001, 7500) n; INSERT INTO gateway.attached_problems VALUES ('users', 6000, 0, 'x')",
    );
    const pool = poolOf(url);
    const first = await retryProblems(pool);
    expect(first).toEqual({ kind: 'likes', id: '6502', userId: '1' });
    const second = await retryProblems(pool, first);
    expect(second).toEqual({ kind: 'likes', id: '5502', userId: '1' });
    expect(await retryProblems(pool, second)).toBeUndefined();
    const { rows } = await old.query('SELECT FROM gateway.attached_problems');
    expect(rows).toEqual([]);
  });

  test('is a user who is deleted softly while outfits remain, but not the likes of one', async () => {
    const { old, url, environment } = await makeOldTables();
    await old.query('ALTER TABLE shop.person ADD gone timestamptz');
    const select = 'SELECT id, username FROM shop.person WHERE gone IS NULL';
    const users = { select, changes: { 'shop.person': 'id' } };
    expect(await attach(environment, { ...mapping, users })).toEqual(equal);
    await old.query('UPDATE shop.person SET gone = now() WHERE id = 5');
    expect(await check(environment)).toMatchObject({
      code: 1,
      stdout: `1 users cannot be carried over (5): the old service has outfits of this user, but not the user.\nBoth sides are equal.\n`,
    });
    await old.query('UPDATE shop.outfit SET deleted = now() WHERE person_id = 5');
    await retryProblems(poolOf(url));
    const waiting = '30 likes wait for a user or outfit that is not here.\n';
    expect(await check(environment)).toEqual({ ...equal, stdout: waiting + equal.stdout });
    await old.query('UPDATE shop.person SET gone = NULL WHERE id = 5');
    expect(await check(environment)).toEqual(equal);
    await expectRight(old);
  });

  test('includes what a change of the old schema makes unreadable, until it is attached again', async () => {
    const { old, environment, outfit } = await attached();
    await old.query(`ALTER TABLE shop.outfit RENAME title TO name; UPDATE shop.picture SET key = 'kept.png' WHERE outfit_id = 8;
      ALTER TABLE shop.likes RENAME outfit_id TO outfit; INSERT INTO shop.likes VALUES (8, 15)`);
    const { code, stderr } = await check(environment);
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining(
        'The SELECT of outfits in the mapping: column o.title does not exist',
      ),
    ]);
    const renamed = JSON.parse(
      JSON.stringify(mapping)
        .replaceAll('o.title', 'o.name AS title')
        .replace('SELECT outfit_id', 'SELECT outfit AS outfit_id')
        .replace('"outfit":"outfit_id"', '"outfit":"outfit"'),
    );
    await old.query('DROP FUNCTION shop.tidy CASCADE');
    const again = await attach(environment, renamed);
    expect(again).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('Both sides are equal.'),
    });
    expect(await outfit(8)).toMatchObject({ image_key: 'kept.png', likes: 4 });
  });
});

describe('the gateway', () => {
  test('the gateway shows what is committed there, refuses writes with WRITES=on, and takes them after detach', async () => {
    const { old, environment } = await attached();
    const gateway = runServer({ ...environment, AUTH_JWT_SECRET: secret, WRITES: 'on' });
    const base = await baseOf(gateway);
    const titles = async () => {
      const { results } = await listing(base, '?ordering=-id');
      return (results[0] as { title?: string } | undefined)?.title;
    };
    const like = async (id: number) => {
      const document = `mutation { likeOutfit(id: "${outfitId(id)}") { outfit { likes } } }`;
      const answer = await send(base, document, undefined, undefined, await signIn(5));
      return JSON.parse(answer.body);
    };
    expect(await titles()).toBe('Outfit 200');
    const followed = 'subscription { outfits(ordering: ID_DESC) { results { title } } }';
    const live = await openStream(base, followed);
    await live.next();
    await old.query("UPDATE shop.outfit SET title = 'seen at once' WHERE id = 200");
    expect(await titles()).toBe('seen at once');
    expect((await live.next()).data.data.outfits.results[0]).toEqual({ title: 'seen at once' });
    live.close();
    expect(await like(8)).toMatchObject({
      errors: [{ extensions: { code: 'LEGACY_OWNS_WRITES' } }],
    });
    // Other clients of the database are refused, too.
    await expect(old.query('UPDATE gateway.outfits SET private = true')).rejects.toThrow(
      'outfits, users and likes follow the attached tables of the old service',
    );
    expect(gateway.output()).toContain('attached one way: the old service writes its tables');
    const page = async () => (await fetch(`${base}/`, { headers: { accept: 'text/html' } })).text();
    expect(await page()).toContain('The old service still takes all writes');
    const imported = await callCommand(importCommand, [fileOf('{}')], environment);
    expect(imported).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('The tables of the old service are attached'),
    });
    const before = await objectsOf(old, 'shop');
    expect(before).not.toEqual([]);
    expect(await callCommand(detachCommand, [], environment)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/: detached\.\n$/),
    });
    expect([await objectsOf(old, 'shop'), await objectsOf(old, 'gateway')]).toEqual([[], []]);
    await expect
      .poll(() => like(8))
      .toMatchObject({ data: { likeOutfit: { outfit: { likes: 4 } } } });
    expect(await page()).toContain('Writing needs a bearer token');
    await old.query("UPDATE shop.outfit SET title = 'not followed' WHERE id = 200");
    expect(await titles()).toBe('seen at once');
    expect(await callCommand(detachCommand, [], environment)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/: nothing was attached\.\n$/),
    });
    const made = `save_outfit('{"user_id": 5, "image_key": "p", "private": true}')`;
    expect(await queryHere(old, `SELECT id FROM ${made}`)).toEqual([{ id: 201 }]);
  });
});

/** What attach makes in a schema. */
async function objectsOf(old: pg.Client, schema: string): Promise<string[]> {
  const { rows } = await old.query(
    `SELECT tgname AS name FROM pg_trigger t JOIN pg_class c ON c.oid = tgrelid WHERE relnamespace = $1::regnamespace AND tgname LIKE 'attached%'
     UNION ALL SELECT proname FROM pg_proc WHERE pronamespace = $1::regnamespace AND proname LIKE 'attached%'
     UNION ALL SELECT relname FROM pg_class WHERE relnamespace = $1::regnamespace AND relname LIKE 'attach%' ORDER BY name`,
    [schema],
  );
  return rows.map(({ name }) => name);
}

describe('the command', () => {
  test('the command makes nothing in other schemas, and no function that everybody may execute', async () => {
    const { old } = await attached();
    const { rows } = await old.query(
      `SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' ORDER BY 1`,
    );
    expect(rows).toEqual([{ relname: '_prisma_migrations' }, { relname: 'users' }]);
    const { rows: open } = await old.query(`SELECT proname, prosecdef, proconfig FROM pg_proc
      WHERE proname LIKE 'attached%' AND (has_function_privilege('public', oid, 'EXECUTE')
        OR prosecdef <> (prorettype = 'trigger'::regtype) OR prosecdef AND proconfig[1] <> 'search_path=gateway, pg_temp')`);
    expect(open).toEqual([]);
  });

  test('the command works in a schema of any name, and with old columns that are named as variables of its functions', async () => {
    const { old, url } = await makeOldTables();
    const environment = { DATABASE_URL: `${url}?schema=Gate-Way` };
    await migrateDatabase(environment);
    const names =
      'given number here edited arrived gone liked likers waiting outfit_ids liker_ids which who o';
    const columns = names.split(' ').map((name) => `ADD ${name} int`);
    for (const table of ['person', 'outfit', 'picture', 'likes']) {
      await old.query(`ALTER TABLE shop.${table} ${columns}`);
    }
    const select = mapping.outfits.select
      .join(' ')
      .replace('WHERE', 'WHERE o.gone IS NULL AND here IS NULL AND');
    const outfits = { ...mapping.outfits, select: select.replaceAll(' here', ' o.here') };
    const users = {
      select:
        'SELECT id, username FROM shop.person WHERE gone IS NULL AND given IS NULL AND number IS NULL',
      changes: { 'shop.person': 'id' },
    };
    const likes = {
      ...mapping.likes,
      select: `${mapping.likes.select} WHERE waiting IS NULL AND likers IS NULL`,
    };
    const unlike = `${bothWays.write.unlike} AND who IS NULL AND which IS NULL AND liked IS NULL`;
    const write = { ...bothWays.write, unlike };
    expect(await attach(environment, { users, outfits, likes, write })).toEqual(equal);
    const changed = `save_outfit('{"id": 8, "title": "changed"}')`;
    const call = `SELECT title, delete_like(8, 1), save_like(8, 2) FROM ${changed}`;
    const rows = await queryHere(old, call, 'Gate-Way');
    expect(rows).toEqual([{ title: 'changed', delete_like: true, save_like: true }]);
    expect(await check(environment)).toEqual(equal);
    await callCommand(detachCommand, [], environment);
    expect([await objectsOf(old, 'shop'), await objectsOf(old, '"Gate-Way"')]).toEqual([[], []]);
  });

  test('the command prints what it runs, and runs nothing', async () => {
    const { old, environment } = await makeOldTables();
    await old.query(`CREATE TABLE public.ddl (tag text);
      CREATE FUNCTION public.log_ddl() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.ddl VALUES (tg_tag); END $$;
      CREATE EVENT TRIGGER log_ddl ON ddl_command_end EXECUTE FUNCTION public.log_ddl()`);
    const { code, stdout } = await attach(environment, mapping, '--print');
    expect(code).toBe(0);
    expect((await old.query('SELECT tag FROM public.ddl')).rows).toEqual([]);
    await old.query('DROP EVENT TRIGGER log_ddl');
    expect([await objectsOf(old, 'shop'), await objectsOf(old, 'gateway')]).toEqual([[], []]);
    await old.query(`SET search_path = gateway; ${stdout}; RESET search_path`);
    const printed = [await objectsOf(old, 'shop'), await objectsOf(old, 'gateway')];
    await callCommand(detachCommand, [], environment);
    expect(await attach(environment)).toEqual(equal);
    expect([await objectsOf(old, 'shop'), await objectsOf(old, 'gateway')]).toEqual(printed);
  });

  test('the command waits for no lock of the old service for long, and takes over a row that a writer holds', async () => {
    const { old, url, environment } = await makeOldTables();
    const other = await connectForTest(url);
    await old.query("BEGIN; UPDATE shop.outfit SET title = 'held' WHERE id = 7");
    const running = attach(environment);
    // It tries again and again; others go on meanwhile.
    for (let n = 1; n < 20; n++) {
      await other.query('UPDATE shop.person SET first_name = $1 WHERE id = 1', [String(n)]);
      await other.query('UPDATE shop.outfit SET quality = 4 WHERE id = $1', [100 + n]);
    }
    await old.query('COMMIT');
    expect((await running).stdout).toMatch(/Both sides are equal\.\n$/);
    expect(await check(environment)).toEqual(equal);
  });

  test('the command leaves what is attached when another mapping cannot be', async () => {
    const { old, environment, outfit } = await attached();
    await old.query('CREATE VIEW gateway.attached_view AS SELECT 1');
    const changes = { ...mapping.outfits.changes, 'shop.comment': 'outfit_id' };
    const other = { ...mapping, outfits: { ...mapping.outfits, changes } };
    expect(await attach(environment, other)).toMatchObject({ code: 2 });
    await old.query(
      'DROP VIEW gateway.attached_view; CREATE VIEW shop.shown AS SELECT * FROM shop.picture',
    );
    const view = { 'shop.outfit': 'id', 'shop.shown': 'outfit_id' };
    expect(
      await attach(environment, { ...mapping, outfits: { ...mapping.outfits, changes: view } }),
    ).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(
        'The mapping names shop.shown: it is not a table, so name the tables that it reads.',
      ),
    });
    await old.query("UPDATE shop.outfit SET title = 'followed' WHERE id = 8");
    expect(await outfit(8)).toMatchObject({ title: 'followed' });
  });

  test('the command leaves it to the owner of an old table to make partitions, which are followed', async () => {
    const { old, environment } = await makeOldTables();
    // A role that each server has.
    await old.query(`DROP TABLE shop.picture; CREATE TABLE shop.picture (outfit_id bigint PRIMARY KEY, key text NOT NULL) PARTITION BY RANGE (outfit_id);
      CREATE TABLE shop.first PARTITION OF shop.picture FOR VALUES FROM (0) TO (100); INSERT INTO shop.picture SELECT id, 'p' FROM shop.outfit WHERE id < 100;
      UPDATE shop.outfit SET deleted = now() WHERE id >= 100;
      ALTER TABLE shop.picture OWNER TO pg_monitor; GRANT ALL ON SCHEMA shop TO pg_monitor`);
    expect(await attach(environment)).toEqual(equal);
    await old.query(`SET ROLE pg_monitor; CREATE TABLE shop.second PARTITION OF shop.picture FOR VALUES FROM (100) TO (1000);
      INSERT INTO shop.picture VALUES (100, 'new'); RESET ROLE; UPDATE shop.outfit SET deleted = NULL WHERE id = 100`);
    const { rows } = await old.query('SELECT image_key FROM gateway.outfits WHERE id = 100');
    expect(rows).toEqual([{ image_key: 'new' }]);
    expect(await check(environment)).toEqual(equal);
  });

  test('a batch of the first copy that fails ends the others, before the copy does', async () => {
    const { old, url } = await makeOldTables();
    await old.query(`INSERT INTO shop.outfit (id, person_id) SELECT 1000 + n, 1 FROM generate_series(1, 20000) n;
      INSERT INTO shop.picture SELECT id, 'p' FROM shop.outfit WHERE id > 1000;
      CREATE FUNCTION public.cancel() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE query_canceled USING MESSAGE = 'enough'; END $$;
      CREATE TRIGGER cancel BEFORE INSERT ON gateway.outfits FOR EACH ROW WHEN (NEW.id = 5) EXECUTE FUNCTION public.cancel()`);
    const pool = poolOf(url);
    const progress = { onCopied() {}, onMended() {} };
    const signal = new AbortController().signal;
    const failing = copyAll(pool, readMapping(fileOf(mapping)), {
      signal,
      prune: false,
      ...progress,
    });
    await expect(failing).rejects.toThrow('enough');
    expect(pool.idleCount).toBe(pool.totalCount);
    const { rows } = await old.query('SELECT count(*)::int AS copied FROM gateway.outfits');
    expect(rows[0].copied).toBeLessThan(1_000);
  });

  /** Changes of the tables, a mapping, and how many notes a statement makes. */
  const unread = 'UPDATE shop.likes SET note = 1';
  const withUsers = (select: string) => ({ ...mapping, users: { ...mapping.users, select } });
  test.each<[string, string, unknown, string, number]>([
    ['of a column that is not read makes no note', '', mapping, unread, 0],
    [
      'of such a column is noted where only expressions are unique',
      'ALTER TABLE shop.likes DROP CONSTRAINT likes_pkey; CREATE UNIQUE INDEX ON shop.likes ((outfit_id * 100 + person_id))',
      mapping,
      unread,
      1,
    ],
    [
      'of such a column is noted where ids are unique only at COMMIT',
      'ALTER TABLE shop.likes DROP CONSTRAINT likes_pkey, ADD PRIMARY KEY (outfit_id, person_id) DEFERRABLE',
      mapping,
      unread,
      1,
    ],
    [
      'of a column that is not read makes no note where the mapping names two columns alike',
      '',
      withUsers('SELECT id, username, 1 AS x, 2 AS x FROM shop.person'),
      'UPDATE shop.person SET last_login = now()',
      0,
    ],
    [
      'of columns of any name is noted',
      'ALTER TABLE shop.person ADD o text, ADD n text, ADD removed text',
      withUsers('SELECT id, username, concat(o, n, removed) AS first_name FROM shop.person'),
      "UPDATE shop.person SET o = 'new', n = 'er'",
      1,
    ],
  ])('an update %s', async (_what, change, given, statement, notes) => {
    const { old, environment } = await makeOldTables();
    await old.query(`ALTER TABLE shop.likes ADD note int; ${change}`);
    expect(await attach(environment, given)).toEqual(equal);
    await old.query(`BEGIN; ${statement}`);
    const { rows } = await old.query('SELECT FROM gateway.attached_changes');
    expect(rows).toHaveLength(notes);
    await old.query('COMMIT');
    expect(await check(environment)).toEqual(equal);
  });

  test('the command removes what only this side has when it is told to', async () => {
    const { old, environment } = await makeOldTables();
    await old.query(`INSERT INTO gateway.users (id, username) VALUES (500, 'x');
      INSERT INTO gateway.outfits (id, user_id, image_key, image_original_key, created, modified) VALUES (500, 500, 'p', 'p', 0, 0)`);
    const refused = await attach(environment);
    expect([refused.code, refused.stderr]).toEqual([
      2,
      'The old tables do not have 1 of the outfits that are here: with --prune they are removed.\n',
    ]);
    expect(await attach(environment, mapping, '--prune')).toMatchObject({ code: 0 });
    expect(await check(environment)).toEqual(equal);
  });

  test.each<[string, (old: pg.Client) => unknown, string]>([
    [
      'a trigger that is off',
      (old) => old.query('ALTER TABLE shop.outfit DISABLE TRIGGER attached_update'),
      'the trigger attached_update on shop.outfit is off',
    ],
    [
      'triggers of a restore',
      (old) => old.query('ALTER TABLE shop.likes ENABLE TRIGGER ALL'),
      'the trigger attached_row on shop.likes does not fire when it should',
    ],
    [
      'a table that was made anew',
      (old) =>
        old.query(
          'CREATE TABLE shop.copy AS TABLE shop.likes; DROP TABLE shop.likes; ALTER TABLE shop.copy RENAME TO likes',
        ),
      'the trigger attached_delete on shop.likes is missing',
    ],
    [
      'rows that were changed meanwhile',
      (old) =>
        old.query(
          'SET session_replication_role = replica; ALTER TABLE shop.outfit DISABLE TRIGGER ALL; UPDATE shop.outfit SET quality = 5 WHERE id < 9; ALTER TABLE shop.outfit ENABLE TRIGGER ALL; RESET session_replication_role',
        ),
      '8 outfits differ: 1 different quality, 2 different quality',
    ],
  ])('check names %s, and attach mends it', async (_what, breakIt, sentence) => {
    const { old, environment } = await attached();
    await breakIt(old);
    const { code, stdout } = await check(environment);
    expect([code, stdout]).toEqual([1, expect.stringContaining(sentence)]);
    expect(await attach(environment)).toMatchObject({ code: 0 });
    expect(await check(environment)).toEqual(equal);
  });

  test('the command follows sessions in which ordinary triggers do not fire, as those of logical replication', async () => {
    const { old, environment } = await attached();
    await old.query(`SET session_replication_role = replica;
      INSERT INTO shop.person (id, username) VALUES (70, 'seventy'); INSERT INTO shop.outfit (id, person_id) VALUES (970, 70);
      INSERT INTO shop.picture VALUES (970, 'p'); INSERT INTO shop.likes VALUES (970, 1), (970, 2);
      UPDATE shop.outfit SET private = true WHERE id = 970; DELETE FROM shop.likes WHERE outfit_id IN (8, 9); DELETE FROM shop.outfit WHERE id = 8;
      TRUNCATE shop.comment; RESET session_replication_role`);
    expect(await check(environment)).toEqual(equal);
    await expectRight(old);
  });

  test.each<[string, (given: typeof mapping) => unknown, string]>([
    [
      'without a schema',
      (given) => ({ ...given, users: { ...given.users, changes: { person: 'id' } } }),
      'is wrong at users.changes.person',
    ],
    ['with a column too much', (given) => ({ ...given, like: 1 }), 'Unrecognized key: "like"'],
    [
      'of a table that does not exist',
      (given) => ({ ...given, users: { ...given.users, changes: { 'shop.nobody': 'id' } } }),
      'The mapping names shop.nobody: relation "shop.nobody" does not exist.',
    ],
    [
      'of a column that has no number',
      (given) => ({ ...given, users: { ...given.users, changes: { 'shop.person': 'username' } } }),
      'The mapping names shop.person: its column username is not a number.',
    ],
    [
      'without a column that is needed',
      (given) => ({ ...given, users: { ...given.users, select: 'SELECT id FROM shop.person' } }),
      'The SELECT of users in the mapping: it has no column username.',
    ],
    [
      'that reads tables of the gateway, which have the same names as old ones',
      (given) => ({
        ...given,
        users: { ...given.users, select: 'SELECT id, username FROM users' },
      }),
      'The SELECT of users in the mapping: it reads users of this gateway: name tables with their schema.',
    ],
    [
      'that gives a row twice',
      (given) => ({
        ...given,
        users: {
          ...given.users,
          select: 'SELECT p.id, username FROM shop.person p JOIN shop.outfit ON person_id = p.id',
        },
      }),
      'The SELECT of users in the mapping gives more than one row for the id ',
    ],
    [
      'with another type',
      (given) => ({
        ...given,
        users: { ...given.users, select: 'SELECT id::text, username FROM shop.person' },
      }),
      'its column id is of the type text, which is not a id.',
    ],
    ['that is not JSON', () => '{', 'cannot be read'],
  ])('refuses a mapping %s', async (_what, change, sentence) => {
    const { environment } = await makeOldTables();
    const { code, stderr } = await attach(environment, change(mapping));
    expect([code, stderr]).toEqual([2, expect.stringContaining(sentence)]);
  });

  test('the command refuses the embedded database', async () => {
    const { code, stderr } = await attach({ DATA_DIR: '/nowhere' });
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining('The embedded database cannot have the tables of another service'),
    ]);
  });
});

test('forget says that the old service erases, and finds nothing when it has', async () => {
  const { old, environment } = await attached();
  const forget = () => callCommand(forgetCommand, ['--user', '5', '--yes'], environment);
  expect(await forget()).toMatchObject({
    code: 2,
    stderr:
      'User 5 is erased in the old service, whose tables are attached, and is gone here then.\n',
  });
  await old.query(`DELETE FROM shop.outfit WHERE person_id = 5; DELETE FROM shop.person WHERE id = 5;
    INSERT INTO gateway.rate_limits VALUES ('127.0.0.1 user 5', 0, 0, 0)`);
  expect((await forget()).code).toBe(0);
  expect(await forget()).toMatchObject({ stdout: 'There is nothing of user 5.\n' });
});

test('a renamed schema of the gateway fails nothing in the old service, and is followed again after counts rebuild', async () => {
  const { old, url, environment } = await attached();
  await old.query('ALTER SCHEMA gateway RENAME TO renamed');
  await old.query(`BEGIN; UPDATE shop.outfit SET title = 'meanwhile' WHERE id = 5; INSERT INTO shop.likes VALUES (8, 15); COMMIT;
    DELETE FROM shop.outfit WHERE id = 9`);
  const again = await connectForTest(url);
  // A temporary table of a caller is not taken for the one here.
  await again.query(
    'CREATE TEMPORARY TABLE attached_changes (LIKE renamed.attached_changes INCLUDING ALL)',
  );
  await again.query("INSERT INTO shop.person (id, username) VALUES (70, 'x')");
  await again.query('UPDATE shop.outfit SET person_id = 70 WHERE id = 10; TRUNCATE shop.comment');
  expect((await again.query('TABLE pg_temp.attached_changes')).rows).toEqual([]);
  const renamed = { ...environment, DATABASE_URL: `${url}?schema=renamed` };
  expect(await callCommand(countsCommand, ['rebuild'], renamed)).toMatchObject({ code: 0 });
  await old.query("UPDATE shop.outfit SET title = 'followed' WHERE id = 11");
  const { rows } = await old.query('SELECT title FROM renamed.outfits WHERE id = 11');
  expect(rows).toEqual([{ title: 'followed' }]);
  // A gateway does so.
  await retryProblems(poolOf(url, 'renamed'));
  expect(await check(renamed)).toEqual(equal);
});

test('a role of the old service needs no rights here', async () => {
  const { old, environment, outfit } = await attached();
  await old.query(`BEGIN; CREATE ROLE shop_only; GRANT USAGE ON SCHEMA shop TO shop_only; GRANT ALL ON ALL TABLES IN SCHEMA shop TO shop_only;
    SET LOCAL ROLE shop_only; UPDATE shop.outfit SET title = 'by a role' WHERE id = 9; DELETE FROM shop.outfit WHERE id = 10;
    SET CONSTRAINTS ALL IMMEDIATE; RESET ROLE; DROP OWNED BY shop_only; DROP ROLE shop_only; COMMIT`);
  expect(await outfit(9)).toMatchObject({ title: 'by a role' });
  expect(await check(environment)).toEqual(equal);
});

describe('the functions for SQL of others', () => {
  test.each(['origin', 'replica'])(
    'save and delete with session_replication_role = %s, and everything is counted',
    async (role) => {
      const { old } = await makeOldTables();
      const call = async (sql: string) =>
        (await old.query(`SELECT to_jsonb(x) AS it FROM ${sql} x`)).rows[0]?.it;
      await old.query(`SET search_path = gateway; SET session_replication_role = ${role}`);
      await call(`save_user('{"id": 7, "username": "seven"}')`);
      expect(await call(`save_user('{"id": 7, "first_name": "Sieben"}')`)).toMatchObject({
        username: 'seven',
        first_name: 'Sieben',
      });
      await call(`save_user('{"id": 8, "username": "eight"}')`);
      await call(
        `save_outfit('{"id": 70, "user_id": 7, "image_key": "p", "title": "new", "created": "1700000000000001"}')`,
      );
      expect(await call(`save_outfit('{"id": 70, "private": true}')`)).toMatchObject({
        title: 'new',
        private: true,
        created: 1700000000000001,
        image_original_key: 'p',
      });
      expect(await call(`save_outfit('{"id": 70, "title": "stolen"}', 8)`)).toBeUndefined();
      await call(`save_outfit('{"id": 71, "user_id": 8, "image_key": "p"}')`);
      // Ids that are taken are passed over.
      await old.query("SELECT setval('users_id_seq', 6), setval('outfits_id_seq', 69)");
      expect(await call(`save_user('{"username": "nine"}')`)).toMatchObject({ id: 9 });
      expect(await call(`save_outfit('{"user_id": 9, "image_key": "p"}')`)).toMatchObject({
        id: 72,
      });
      expect(await call('delete_user(9)')).toBe(true);
      expect([
        await call('save_like(70, 8)'),
        await call('save_like(71, 7)'),
        await call('save_like(70, 8)'),
        await call('save_like(72, 8)'),
      ]).toEqual([true, true, true, false]);
      expect(await call('delete_outfit(70, 8)')).toBe(false);
      expect(await call('delete_like(70, 8)')).toBe(true);
      expect(await call('delete_user(7)')).toBe(true);
      await old.query('RESET session_replication_role');
      const { rows } = await old.query('SELECT id, likes FROM outfit_like_counts');
      expect(rows).toEqual([{ id: 71, likes: 0 }]);
      expect((await old.query('SELECT id FROM outfits')).rows).toEqual([{ id: 71 }]);
      await old.query('RESET search_path');
      await expectRight(old);
    },
  );

  describe('delete_user beside other connections', () => {
    const connect = async (url: string) => {
      const client = await connectForTest(url);
      await client.query('SET search_path = gateway');
      return client;
    };
    /** Deletions that wait for a lock of this connection. */
    const waiting = `SELECT count(*)::int AS count FROM pg_stat_activity WHERE query LIKE '%delete_user%' AND $1 = ANY (pg_blocking_pids(pid))`;
    const open = async () => {
      const { url, old } = await makeOldTables();
      const pool = poolOf(url);
      await old.query(`SET search_path = gateway;
        SELECT save_user('{"id": 7, "username": "seven"}'), save_user('{"id": 8, "username": "eight"}');
        SELECT save_outfit('{"id": 70, "user_id": 7, "image_key": "p"}'), save_outfit('{"id": 80, "user_id": 8, "image_key": "p"}')`);
      const expectWaiting = async (client: pg.Client) => {
        const pid = (client as unknown as { processID: number }).processID;
        await expect
          .poll(async () => (await pool.query(waiting, [pid])).rows)
          .toEqual([{ count: 1 }]);
      };
      const expectLeft = async (...likes: object[]) => {
        const { rows } = await pool.query('SELECT id, likes FROM outfit_like_counts ORDER BY id');
        expect(rows).toEqual(likes);
        await old.query('RESET search_path');
        await expectRight(old);
      };
      return { old, pool, connect: () => connect(url), expectWaiting, expectLeft };
    };

    test('takes back a like and an outfit that another connection writes meanwhile', async () => {
      const { old, connect, expectWaiting, expectLeft } = await open();
      const other = await connect();
      await other.query(
        `BEGIN; SELECT save_like(80, 7), save_outfit('{"id": 71, "user_id": 7, "image_key": "p"}')`,
      );
      const deletion = old.query('SELECT delete_user(7)');
      await expectWaiting(other);
      await other.query('COMMIT');
      expect((await deletion).rows).toEqual([{ delete_user: true }]);
      await expectLeft({ id: 80, likes: 0 });
    });

    test('takes back an outfit that the user likes meanwhile, without a deadlock', async () => {
      const { old, connect, expectWaiting, expectLeft } = await open();
      const [other, liker] = [await connect(), await connect()];
      await other.query(`BEGIN; SELECT save_outfit('{"id": 71, "user_id": 7, "image_key": "p"}')`);
      const deletion = old.query('SELECT delete_user(7)');
      await expectWaiting(other);
      await liker.query(`SELECT save_outfit('{"id": 72, "user_id": 7, "image_key": "p"}')`);
      await liker.query('BEGIN; SELECT FROM outfits WHERE id = 72 FOR KEY SHARE');
      await other.query('COMMIT');
      await expectWaiting(liker);
      await liker.query('SELECT save_like(72, 7); COMMIT');
      expect((await deletion).rows).toEqual([{ delete_user: true }]);
      await expectLeft({ id: 80, likes: 0 });
    });

    test('fails when the user has outfits after each pass, and keeps all', async () => {
      const { old, pool, expectLeft } = await open();
      await old.query(`CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
        CREATE TRIGGER keep BEFORE DELETE ON outfits FOR EACH ROW EXECUTE FUNCTION keep()`);
      const { rows } = await pool.query('SELECT id, likes FROM outfit_like_counts ORDER BY id');
      await expect(old.query('SELECT delete_user(7)')).rejects.toMatchObject({ code: '40001' });
      await expectLeft(...rows);
    });

    test('deletes two users who like outfits of each other, without a deadlock', async () => {
      const { old, connect, expectWaiting, expectLeft } = await open();
      await old.query(`SELECT save_user('{"id": 9, "username": "nine"}'), save_outfit('{"id": 60, "user_id": 9, "image_key": "p"}');
        SELECT save_like(60, 7), save_like(80, 7), save_like(70, 8)`);
      const [other, second] = [await connect(), await connect()];
      await other.query('BEGIN; SELECT FROM outfit_like_counts WHERE id = 60 FOR UPDATE');
      const deletions = [old.query('SELECT delete_user(7)')];
      await expectWaiting(other);
      deletions.push(second.query('SELECT delete_user(8)'));
      await expectWaiting(old);
      await other.query('COMMIT');
      for (const { rows } of await Promise.all(deletions))
        expect(rows).toEqual([{ delete_user: true }]);
      await expectLeft({ id: 60, likes: 0 });
    });
  });
});

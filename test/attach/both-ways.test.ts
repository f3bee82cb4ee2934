// Attached both ways: what is written here is written in the old tables, by their rules, and both services may write.
import type pg from 'pg';
import pino from 'pino';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type AppOptions, buildApp } from '../../src/app.ts';
import { readConfig } from '../../src/config/config.ts';
import { openDatabase } from '../../src/database/database.ts';
import { connectForTest } from '../support/databases/connections.ts';
import { outfitId } from '../support/gateway.ts';
import { secret, signIn } from '../support/http/tokens.ts';
import {
  attach,
  bothWays,
  bothWaysByNumber,
  check,
  equal,
  mapping,
  queryHere,
  useOldTables,
} from '../support/legacy/old-tables.ts';

const makeOldTables = useOldTables();
const attached = (mapping: unknown = bothWays) => makeOldTables(mapping);

/** A gateway on them, and what it answers a viewer. */
async function openFor(
  environment: Record<string, string>,
  settings: Record<string, string> = {},
  options: AppOptions = {},
) {
  const config = readConfig({ ...environment, AUTH_JWT_SECRET: secret, ...settings });
  const database = await openDatabase(config, config.requestTimeout);
  const app = await buildApp(config, database, { attachment: { writer: 'both' }, ...options });
  onTestFinished(async () => {
    await app.close();
    await database.close();
  });
  return async (user: number, query: string, more: Record<string, string> = {}) => {
    const headers = { ...(await signIn(user)), ...more };
    const payload = { query };
    return (await app.inject({ method: 'POST', url: '/graphql', headers, payload })).json();
  };
}

const rowOf = async (old: pg.Client, id: number) =>
  (
    await old.query(
      'SELECT o.*, key FROM shop.outfit o LEFT JOIN shop.picture ON outfit_id = id WHERE id = $1',
      [id],
    )
  ).rows[0];

const key = 'outfits/2b1d3c4e-0000-4000-8000-000000000001.png';

describe('a mutation', () => {
  test('a mutation creates, changes and deletes in the old tables, with their ids and triggers', async () => {
    const { old, environment } = await attached();
    const ask = await openFor(environment);
    const create = `mutation { createOutfit(input: { title: "  made here ", imageKey: "${key}" }) { outfit { databaseId title user { username } likes } } }`;
    const created = await ask(5, create, { 'idempotency-key': 'k' });
    // Their trigger trims titles.
    expect(created).toEqual({
      data: {
        createOutfit: {
          outfit: { databaseId: 201, title: 'made here', user: { username: 'person5' }, likes: 0 },
        },
      },
    });
    expect(await ask(5, create, { 'idempotency-key': 'k' })).toEqual(created);
    expect(await rowOf(old, 201)).toMatchObject({
      title: 'made here',
      key,
      person_id: 5,
      likes: 0,
      quality: 3,
    });
    await old.query("UPDATE shop.outfit SET color = '#FFF', description = NULL WHERE id = 201");
    const update = `mutation { updateOutfit(id: "${outfitId(201)}", input: { title: "changed", private: true }) { outfit { title backgroundColor } errors { messages } } }`;
    expect(await ask(5, update)).toEqual({
      data: { updateOutfit: { outfit: { title: 'changed', backgroundColor: '#fff' }, errors: [] } },
    });
    // What was not changed here is as it was, also where it is another value here.
    expect(await rowOf(old, 201)).toMatchObject({
      title: 'changed',
      private: true,
      color: '#FFF',
      description: null,
    });
    expect(await ask(6, update)).toMatchObject({ errors: [{ extensions: { code: 'FORBIDDEN' } }] });
    const remove = `mutation { deleteOutfit(id: "${outfitId(201)}") { deletedOutfitId } }`;
    expect(await ask(6, remove)).toMatchObject({ errors: [{ extensions: { code: 'FORBIDDEN' } }] });
    await old.query('INSERT INTO shop.note VALUES (201); INSERT INTO shop.report VALUES (201)');
    expect(await ask(5, remove)).toMatchObject({
      errors: [{ message: 'Outfit 201 cannot be deleted: the old service refers to it.' }],
    });
    await old.query('DELETE FROM shop.report');
    expect(await ask(5, remove)).toEqual({
      data: { deleteOutfit: { deletedOutfitId: outfitId(201) } },
    });
    expect(await rowOf(old, 201)).toBeUndefined();
    expect(await ask(5, remove)).toMatchObject({ errors: [{ extensions: { code: 'NOT_FOUND' } }] });
    expect(await check(environment)).toEqual(equal);
  });

  test.each([
    ['rows', bothWays],
    ['a number', bothWaysByNumber],
  ])('likes and unlikes, once for each user, where likes are %s', async (_what, mapping) => {
    const { old, environment } = await attached(mapping);
    const ask = await openFor(environment);
    const likes = async (user: number, liked: boolean) => {
      const field = liked ? 'likeOutfit' : 'unlikeOutfit';
      const answer = await ask(
        user,
        `mutation { it: ${field}(id: "${outfitId(100)}") { outfit { likes viewerHasLiked } } }`,
      );
      return answer.data.it?.outfit ?? answer;
    };
    const before = (await likes(1, false)).likes;
    expect(await likes(1, true)).toEqual({ likes: before + 1, viewerHasLiked: true });
    expect(await likes(1, true)).toEqual({ likes: before + 1, viewerHasLiked: true });
    expect(await likes(2, true)).toMatchObject({ viewerHasLiked: true });
    expect(await check(environment)).toEqual(equal);
    expect(await likes(1, false)).toMatchObject({ viewerHasLiked: false });
    await old.query(
      'UPDATE shop.outfit SET private = true WHERE id = 100; UPDATE shop.outfit SET deleted = now() WHERE id = 101',
    );
    expect(await check(environment)).toEqual(equal);
    const likesOf = 'SELECT count(*)::int FROM shop.likes WHERE outfit_id = 101';
    const { rows: there } = await old.query(likesOf);
    const sql =
      'SELECT save_like(101, 19) AS first, save_like(4000, 1) AS second, delete_like(4000, 1) AS third';
    expect(await queryHere(old, sql)).toEqual([{ first: false, second: false, third: false }]);
    expect((await old.query(likesOf)).rows).toEqual(there);
  });

  test('likes are written by a function and a procedure of the old service', async () => {
    const { old, environment } = await makeOldTables();
    await old.query(`CREATE FUNCTION shop.take(outfit int, person int) RETURNS void LANGUAGE sql AS 'INSERT INTO shop.likes VALUES (outfit, person) ON CONFLICT DO NOTHING';
      CREATE PROCEDURE shop.leave(outfit int, person int) LANGUAGE sql AS 'DELETE FROM shop.likes l WHERE l.outfit_id = outfit AND l.person_id = person'`);
    const like = 'PERFORM shop.take(L.outfit_id, l.user_id)';
    const unlike = 'CALL shop.leave(l.outfit_id, l.user_id)';
    const given = (more = {}) => ({
      ...bothWays,
      write: { ...bothWays.write, like, unlike, ...more },
    });
    const wrong = await attach(environment, given({ like: 'PERFORM shop.nothing(l.outfit_id)' }));
    expect(wrong.stderr).toContain('has as like: function shop.nothing(integer) does not exist');
    expect(await attach(environment, given())).toEqual(equal);
    const liked = async (sql: string) => {
      await queryHere(old, sql);
      const likes = 'SELECT person_id FROM shop.likes WHERE outfit_id = 100 AND person_id = 1';
      return (await old.query(likes)).rows.length;
    };
    expect(await liked('SELECT delete_like(100, 1)')).toBe(0);
    expect(await liked('SELECT save_like(100, 1)')).toBe(1);
    expect(await liked('SELECT delete_like(100, 1)')).toBe(0);
    expect(await check(environment)).toEqual(equal);
  });

  test('a write here is done where another constraint has the name of a deferred key', async () => {
    const { old, environment } = await attached();
    await old.query(
      'ALTER TABLE shop.comment ADD CONSTRAINT outfit_person_id_fkey FOREIGN KEY (id) REFERENCES shop.person NOT VALID',
    );
    await queryHere(old, `SELECT save_outfit('{"id": 8, "title": "changed"}')`);
    expect(await rowOf(old, 8)).toMatchObject({ title: 'changed' });
    expect(await check(environment)).toEqual(equal);
  });

  test('a write here is carried over once, and what the old service writes after it in the transaction, too', async () => {
    const { old, environment } = await attached();
    await old.query(`SET search_path = gateway; SET track_functions = 'all';
      BEGIN; SELECT save_like(100, 15); SET CONSTRAINTS ALL IMMEDIATE`);
    const calls = `SELECT calls::int FROM pg_stat_xact_user_functions WHERE funcname = 'attached_save_likes'`;
    expect((await old.query(calls)).rows).toEqual([{ calls: 1 }]);
    await old.query(`COMMIT; BEGIN; SELECT save_like(101, 15); UPDATE shop.outfit SET title = 'both' WHERE id = 102; COMMIT;
      BEGIN; UPDATE shop.outfit SET title = 'both' WHERE id = 103; SELECT save_like(103, 15); COMMIT; RESET search_path`);
    expect(await rowOf(old, 102)).toMatchObject({ title: 'both' });
    expect(await check(environment)).toEqual(equal);
  });

  test('a mutation of a user that the old service does not have is refused, with an error that comes at COMMIT', async () => {
    const { environment } = await attached();
    const ask = await openFor(environment);
    const create = `mutation { createOutfit(input: { imageKey: "${key}" }) { outfit { title } } }`;
    const like = `mutation { likeOutfit(id: "${outfitId(100)}") { outfit { likes } } }`;
    expect(await ask(4000, create)).toMatchObject({
      errors: [{ extensions: { code: 'UNAUTHENTICATED' } }],
    });
    expect(await ask(4000, like)).toMatchObject({
      errors: [{ extensions: { code: 'UNAUTHENTICATED' } }],
    });
    expect(await check(environment)).toEqual(equal);
  });

  test('a deletion takes the rows along that refer to the outfit by several columns, and no others', async () => {
    const { old, environment } = await makeOldTables();
    await old.query(`ALTER TABLE shop.outfit ADD tenant int NOT NULL DEFAULT 7, ADD UNIQUE (tenant, id);
      CREATE TABLE shop."Tag" (tenant int, outfit bigint, FOREIGN KEY (tenant, outfit) REFERENCES shop.outfit (tenant, id));
      INSERT INTO shop."Tag" SELECT 7, id FROM shop.outfit WHERE id < 20`);
    const references = { ...bothWays.write.references, '"shop"."Tag"': 'delete' };
    const given = { ...bothWays, write: { ...bothWays.write, references } };
    expect(await attach(environment, given)).toEqual(equal);
    await queryHere(old, 'SELECT delete_outfit(7)');
    const { rows } = await old.query(
      'SELECT count(*)::int AS tags, bool_or(outfit = 7) AS it FROM shop."Tag"',
    );
    expect(rows).toEqual([{ tags: 18, it: false }]);
    expect(await check(environment)).toEqual(equal);
  });

  test('a mutation that a rule of the old tables forbids is refused, and nothing of it stays', async () => {
    const { old, environment } = await attached();
    await old.query(`ALTER TABLE shop.outfit ALTER title TYPE varchar(30), ADD CHECK (title <> 'checked');
      CREATE FUNCTION shop.judge() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.title = 'raised' THEN RAISE 'not this title'; ELSIF NEW.title = 'hidden' THEN NEW.deleted = now(); END IF; RETURN NEW; END $$;
      CREATE TRIGGER judge BEFORE INSERT OR UPDATE ON shop.outfit FOR EACH ROW EXECUTE FUNCTION shop.judge();
      CREATE TABLE shop.quota (person_id int PRIMARY KEY); INSERT INTO shop.quota SELECT id FROM shop.person WHERE id <> 6;
      ALTER TABLE shop.outfit ADD FOREIGN KEY (person_id) REFERENCES shop.quota NOT VALID;
      CREATE FUNCTION shop.judge_like() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no likes today'; END $$;
      CREATE TRIGGER judge BEFORE INSERT ON shop.likes FOR EACH ROW EXECUTE FUNCTION shop.judge_like()`);
    const lines: string[] = [];
    const logger = pino({ level: 'warn' }, { write: (line) => lines.push(line) });
    const ask = await openFor(environment, {}, { logger });
    const refused = {
      errors: [
        {
          message: 'A rule of the tables of the old service forbids this.',
          extensions: { code: 'FORBIDDEN' },
        },
      ],
    };
    for (const title of ['long '.repeat(9), 'checked', 'raised', 'hidden']) {
      const create = `mutation { createOutfit(input: { title: "${title}", imageKey: "${key}" }) { outfit { title } } }`;
      expect(await ask(5, create)).toMatchObject(refused);
      const update = `mutation { updateOutfit(id: "${outfitId(4)}", input: { title: "${title}" }) { outfit { title } } }`;
      expect(await ask(5, update)).toMatchObject(refused);
    }
    const ofQuota = `mutation { createOutfit(input: { imageKey: "${key}" }) { outfit { title } } }`;
    expect(await ask(6, ofQuota)).toMatchObject(refused);
    const like = `mutation { likeOutfit(id: "${outfitId(100)}") { outfit { likes } } }`;
    await old.query('DELETE FROM shop.likes WHERE outfit_id = 100');
    expect(await ask(6, like)).toMatchObject(refused);
    // The operator is told why.
    for (const why of ['not this title', 'outfit_person_id_fkey1', 'no likes today']) {
      const line = JSON.parse(lines.find((one) => one.includes(why)) ?? '{}');
      expect(line).toMatchObject({ level: 40, requestId: expect.any(String) });
    }
    await old.query("ALTER TABLE gateway.outfits ADD CHECK (title <> 'here')");
    const update = `mutation { updateOutfit(id: "${outfitId(4)}", input: { title: "here" }) { outfit { title } } }`;
    expect(await ask(5, update)).toMatchObject(refused);
    const { rows } = await old.query(
      "SELECT id FROM shop.outfit WHERE id > 200 OR title NOT LIKE 'Outfit %'",
    );
    expect(rows).toEqual([]);
    expect(await check(environment)).toEqual(equal);
  });

  test('users who like outfits of each other are deleted there at the same time, without a deadlock', async () => {
    const { old, url, environment } = await attached(bothWaysByNumber);
    await old.query(`INSERT INTO shop.person (id, username) VALUES (101, 'a'), (102, 'b');
      INSERT INTO shop.outfit (id, person_id) VALUES (301, 101), (302, 102); INSERT INTO shop.picture VALUES (301, 'p'), (302, 'p')`);
    await queryHere(old, 'SELECT save_like(301, 102), save_like(302, 101)');
    const [first, second] = [await connectForTest(url), await connectForTest(url)];
    const waiting = async () =>
      (
        await old.query(
          "SELECT count(*)::int FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
        )
      ).rows[0].count;
    // It is held up between its own outfit and that of the other.
    await old.query('BEGIN; SELECT FROM gateway.outfit_likes WHERE outfit_id = 301 FOR UPDATE');
    const ended = [];
    for (const [nth, client] of [first, second].entries()) {
      await client.query(
        `BEGIN; DELETE FROM shop.outfit WHERE id = ${301 + nth}; DELETE FROM shop.person WHERE id = ${101 + nth}`,
      );
      ended.push(client.query('COMMIT'));
      await expect.poll(waiting).toBe(nth + 1);
    }
    await old.query('COMMIT');
    await Promise.all(ended);
    expect(await check(environment)).toEqual(equal);
  });

  test('a like of an outfit that the old service deletes meanwhile finds none', async () => {
    const { old, url, environment } = await attached();
    const other = await connectForTest(url);
    const ask = await openFor(environment);
    await old.query(
      'DELETE FROM shop.likes WHERE outfit_id = 100; BEGIN; DELETE FROM shop.outfit WHERE id = 100',
    );
    const like = ask(
      3,
      `mutation { likeOutfit(id: "${outfitId(100)}") { outfit { viewerHasLiked } } }`,
    );
    const waiting = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%like_outfit%'`;
    await expect.poll(async () => (await other.query(waiting)).rows.length).toBe(1);
    await old.query('COMMIT');
    expect(await like).toMatchObject({ errors: [{ extensions: { code: 'NOT_FOUND' } }] });
    expect(await check(environment)).toEqual(equal);
  });

  test('a like is refused where the mapping does not say how it is written', async () => {
    const { like, unlike, ...write } = bothWaysByNumber.write;
    const { environment } = await attached({ ...bothWaysByNumber, write });
    const ask = await openFor(environment);
    const mutation = `mutation { likeOutfit(id: "${outfitId(100)}") { outfit { likes } } }`;
    expect(await ask(3, mutation)).toMatchObject({
      errors: [{ extensions: { code: 'FORBIDDEN' } }],
    });
    expect(await check(environment)).toEqual(equal);
  });

  test('a mutation is the write of another to a gateway that does not know yet that the old service writes alone', async () => {
    const { environment } = await attached(mapping);
    const settings = { WRITES: 'on' };
    const ask = await openFor(environment, settings, { attachment: { writer: undefined } });
    const id = outfitId(4);
    for (const mutation of [
      `createOutfit(input: { imageKey: "${key}" }) { outfit { title } }`,
      `updateOutfit(id: "${id}", input: { title: "new" }) { outfit { title } }`,
      `deleteOutfit(id: "${id}") { deletedOutfitId }`,
      `likeOutfit(id: "${id}") { outfit { likes } }`,
    ]) {
      const answer = await ask(5, `mutation { ${mutation} }`);
      expect(answer).toMatchObject({ errors: [{ extensions: { code: 'LEGACY_OWNS_WRITES' } }] });
    }
  });

  test('a mutation is taken in canary, where the old service answers too', async () => {
    const { environment } = await attached();
    const ask = await openFor(environment, {
      LEGACY_URL: 'http://127.0.0.1:9',
      LEGACY_MODE: 'canary:5',
    });
    const like = `mutation { likeOutfit(id: "${outfitId(100)}") { outfit { viewerHasLiked } } }`;
    expect(await ask(3, like)).toEqual({
      data: { likeOutfit: { outfit: { viewerHasLiked: true } } },
    });
  });
});

describe('attach', () => {
  test.each<[string, (write: typeof bothWays.write) => unknown, string]>([
    [
      'a column that must not be null',
      (write) => ({
        ...write,
        tables: { ...write.tables, 'shop.picture': { id: 'outfit_id', columns: {} } },
      }),
      'The mapping writes to shop.picture, whose columns key must not be null',
    ],
    [
      'a column whose domain must not be null',
      (write) => write,
      'The mapping writes to shop.outfit, whose columns mood must not be null',
    ],
    [
      'a table that refers to outfits',
      (write) => ({ ...write, references: { 'shop.note': 'delete' } }),
      'shop.report refers to outfits: the mapping must name it',
    ],
    [
      'one row for each outfit',
      (write) => ({
        ...write,
        tables: {
          ...write.tables,
          'shop.comment': { id: 'outfit_id', columns: { text: 'o.title' } },
        },
      }),
      'The mapping writes to shop.comment, which may have more than one row with the same outfit_id',
    ],
    [
      'an expression of another type',
      (write) => ({
        ...write,
        tables: {
          ...write.tables,
          'shop.picture': { id: 'outfit_id', columns: { key: 'o.nothing' } },
        },
      }),
      'What the mapping writes to shop.picture: column o.nothing does not exist',
    ],
    [
      'a table of likes that exists',
      (write) => ({ ...write, unlike: 'DELETE FROM shop.nothing WHERE outfit_id = l.outfit_id' }),
      'What the mapping has as unlike: relation "shop.nothing" does not exist',
    ],
    [
      'a statement without rows',
      (write) => ({ ...write, delete: 'SELECT shop.remove(o.id)' }),
      'What the mapping has as delete: write PERFORM instead of SELECT',
    ],
    [
      'a column of the outfit that is deleted',
      (write) => ({
        ...write,
        delete: 'UPDATE shop.outfit SET deleted = now() WHERE id = o.nothing',
      }),
      'What the mapping has as delete: missing FROM-clause entry for table "o"',
    ],
  ])('refuses to write without %s', async (_what, change, sentence) => {
    const { old, environment } = await makeOldTables();
    if (sentence.includes('mood')) {
      await old.query(
        "CREATE DOMAIN shop.feeling AS text NOT NULL; CREATE DOMAIN shop.mood AS shop.feeling; ALTER TABLE shop.outfit ADD mood shop.mood DEFAULT 'x'; ALTER TABLE shop.outfit ALTER mood DROP DEFAULT",
      );
    }
    const given = { ...bothWays, write: change(bothWays.write) };
    const { code, stderr } = await attach(environment, given);
    expect([code, stderr]).toEqual([2, expect.stringContaining(sentence)]);
  });

  test('writes through a view whose column has a domain that must not be null, and a default', async () => {
    const { old, environment } = await makeOldTables();
    await old.query(
      "CREATE DOMAIN shop.mood AS text NOT NULL; ALTER TABLE shop.picture ADD mood shop.mood DEFAULT 'x'; CREATE VIEW shop.shown AS SELECT * FROM shop.picture",
    );
    const { 'shop.picture': shown, ...tables } = bothWays.write.tables;
    const write = { ...bothWays.write, tables: { ...tables, 'shop.shown': shown } };
    expect(await attach(environment, { ...bothWays, write })).toEqual(equal);
  });
});

// Writes of all kinds at random, as SQL that reaches the database past the gateway.
import type pg from 'pg';
import type { Random } from './dice.ts';

/** One write: statements of one session, one after the other. */
export interface Write {
  readonly name: string;
  readonly statements: readonly string[];
  /** Whether only a server with several sessions has it. */
  readonly needsServer: boolean;
}

/** Ids of outfits are from 1 to about this; those of users to 9. */
const maxId = 90;

/** Outfits like the one with the lowest id, for each row of `from`. */
const copies = (changes: string, from = '(SELECT 1) AS once (n)') =>
  `SELECT (jsonb_populate_record(o, jsonb_build_object(${changes}))).*
   FROM outfits o, ${from} WHERE o.id = (SELECT min(id) FROM outfits)`;

/** Makes one of them. */
export function randomWrite(random: Random): Write {
  const id = 1 + random(maxId);
  const user = 1 + random(6);
  const moment = `${1_700_000_000_000_000 + 1_000_000 * random(100)}`;
  const update = (set: string, where = `id = ${id}`) => `UPDATE outfits SET ${set} WHERE ${where}`;
  const insert = `INSERT INTO outfits ${copies(`'id', ${id}, 'user_id', ${user},
    'private', ${random(3) === 0}, 'created', ${moment}`)}`;
  const like = (set: string, where = `id = ${id}`) =>
    `UPDATE outfit_like_counts SET ${set} WHERE ${where}`;
  const more = (number = 1) => `likes = least(likes, 2147483600) + ${number}`;
  const alter = (table: string, how: string) =>
    `ALTER TABLE ${table} ${how} TRIGGER record_updated`;
  const transaction = (...statements: string[]) => ['BEGIN', ...statements, 'COMMIT'];
  const writes: Readonly<Record<string, readonly string[]>> = {
    like: [like(more())],
    'many likes': [like(`likes = ${random(60)}`)],
    'likes of some': [like(more(), `id % 7 = ${random(7)}`)],
    'likes of all': [like('likes = (likes % 60 * 7 + id) % 60', 'true')],
    'likes of many': [like(`likes = likes % 9`, `likes > ${random(60)}`)],
    'likes below none': [like(`likes = ${-random(3)}`)],
    'extreme likes': [like(`likes = 2147483647 - ${random(2)}`)],
    'likes by one': [`SELECT FROM like_outfit(${id}, ${user}, ${random(2) === 0}, true)`],
    title: [update(`title = 'linen ${random(5)}'`)],
    'quality and likes': [`WITH liked AS (${like(more())}) ${update('quality = quality % 5 + 1')}`],
    private: [update('private = NOT private')],
    owner: [update(`user_id = ${user}`)],
    moments: [update(`created = ${moment}, modified = modified + 1`)],
    id: [
      `UPDATE outfits o SET id = n FROM (VALUES (${1 + random(maxId)})) other (n)
       WHERE id = ${id} AND NOT EXISTS (SELECT FROM outfits WHERE id = n)`,
    ],
    nothing: [like('likes = likes'), update('id = id'), 'SELECT pg_current_xact_id()'],
    'likes, then the outfit': transaction(
      like(`likes = ${random(60)}`),
      update(`private = NOT private, created = ${moment}`),
      like(more()),
    ),
    username: [`UPDATE users SET username = 'name${random(4)}' WHERE id = ${user}`],
    'user id': transaction(
      'UPDATE users SET id = id + 100 WHERE id = 1',
      'UPDATE users SET id = 1 WHERE id = 101',
    ),
    insert: [`${insert} ON CONFLICT DO NOTHING`],
    upsert: [
      `${insert} ON CONFLICT (id) DO UPDATE SET private = excluded.private, title = 'upserted'`,
    ],
    merge: [
      `MERGE INTO outfits o USING generate_series(${id}, ${id + 3}) n ON o.id = n
       WHEN MATCHED AND n % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET created = created + 5`,
    ],
    'merge of likes': [
      `MERGE INTO outfit_like_counts l USING generate_series(${id}, ${id + 3}) n ON l.id = n
       WHEN MATCHED THEN UPDATE SET likes = n % 60`,
    ],
    'an import': [
      `WITH outfit AS (
         ${insert} ON CONFLICT (id) DO UPDATE
         SET private = excluded.private, user_id = excluded.user_id RETURNING id, private, user_id
       )
       INSERT INTO outfit_like_counts AS old SELECT *, ${random(60)} FROM outfit
       ON CONFLICT (id) DO UPDATE SET likes = excluded.likes WHERE old.likes <> excluded.likes`,
    ],
    delete: [`DELETE FROM outfits WHERE id = ${id}`],
    with: [
      `WITH gone AS (DELETE FROM outfits WHERE id = ${id} RETURNING *),
       liked AS (${like(more(2), `id = ${1 + random(maxId)} AND id <> ${id}`)})
       INSERT INTO users (id, username) SELECT id + 1000, 'gone' FROM gone ON CONFLICT DO NOTHING`,
    ],
    truncate: transaction(
      'CREATE TEMPORARY TABLE saved ON COMMIT DROP AS SELECT * FROM outfits',
      'CREATE TEMPORARY TABLE saved_likes ON COMMIT DROP AS SELECT id, likes FROM outfit_like_counts',
      'TRUNCATE outfits CASCADE',
      `INSERT INTO outfits SELECT * FROM saved WHERE id <> ${id}`,
      'UPDATE outfit_like_counts l SET likes = s.likes FROM saved_likes s WHERE s.id = l.id',
    ),
    'more than are looked at': transaction(
      `INSERT INTO outfits ${copies("'id', 5000 + n, 'created', 1", 'generate_series(1, 600) n')}`,
      'DELETE FROM outfits WHERE id > 5000',
    ),
    'without a trigger': transaction(
      alter('outfits', 'DISABLE'),
      update(`title = 'unnoted ${random(9)}'`),
      alter('outfits', 'ENABLE'),
    ),
    // Two that change places: any other change would make the counts wrong, too.
    'likes without a trigger': transaction(
      alter('outfit_like_counts', 'DISABLE'),
      `UPDATE outfit_like_counts a SET likes = b.likes
       FROM outfit_like_counts x
       CROSS JOIN LATERAL (
         SELECT id FROM outfit_like_counts WHERE id > x.id AND private = x.private ORDER BY id LIMIT 1
       ) y
       JOIN outfit_like_counts b ON b.id IN (x.id, y.id)
       WHERE x.id = ${id} AND a.id IN (x.id, y.id) AND a.id <> b.id`,
      alter('outfit_like_counts', 'ENABLE'),
    ),
    'as a replica': transaction(
      'SET LOCAL session_replication_role = replica',
      update(`title = 'replicated ${random(9)}'`),
      like(more()),
      `UPDATE users SET username = 'replica${random(3)}' WHERE id = ${user}`,
    ),
    savepoint: transaction(
      'SAVEPOINT one',
      like(more(9)),
      'ROLLBACK TO one',
      like(more(), `id = ${1 + random(maxId)}`),
    ),
    rollback: ['BEGIN', like('likes = 0', 'true'), 'ROLLBACK'],
    'changes applied': ['SELECT apply_pending_outfit_changes()'],
    'batches applied': Array(5).fill('SELECT apply_pending_outfit_changes(1)'),
    'all counts anew': ['SELECT rebuild_outfit_counts()'],
    'of others': ['CREATE TABLE of_others (id int)', 'DROP TABLE of_others'],
    'in two phases': [
      ...['BEGIN', update(`title = 'prepared'`), like(more())],
      ...["PREPARE TRANSACTION 'prepared'", "COMMIT PREPARED 'prepared'"],
    ],
    'repeatable read': ['BEGIN ISOLATION LEVEL REPEATABLE READ', like(more(3)), 'COMMIT'],
  };
  const names = Object.keys(writes);
  const name = names[random(names.length)] as string;
  const needsServer = name === 'in two phases' || name === 'repeatable read';
  return { name, statements: writes[name] ?? [], needsServer };
}

/** Sends one, with pauses between its statements. */
export async function send(
  client: Pick<pg.ClientBase, 'query'>,
  { statements }: Write,
  pause: () => Promise<unknown>,
): Promise<void> {
  for (const statement of statements) {
    await client.query(statement);
    await pause();
  }
}

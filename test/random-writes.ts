// Writes of all kinds at random, as SQL that reaches the database past the gateway.
import type pg from 'pg';

/** One write: statements of one session, one after the other. */
export interface Write {
  readonly name: string;
  readonly statements: readonly string[];
  /** Whether only a server with several sessions has it. */
  readonly needsServer?: boolean;
}

/** Ids of outfits are from 1 to about this; those of users to 9. */
const maxId = 90;

/** A number from 0, below `end`. */
export type Random = (end: number) => number;

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
  const writes: Write[] = [
    { name: 'like', statements: [like('likes = least(likes, 2147483600) + 1')] },
    { name: 'many likes', statements: [like(`likes = ${random(60)}`)] },
    {
      name: 'likes of some',
      statements: [like('likes = least(likes, 2147483600) + 1', `id % 7 = ${random(7)}`)],
    },
    { name: 'likes of all', statements: [like('likes = (likes % 60 * 7 + id) % 60', 'true')] },
    { name: 'likes of many', statements: [like(`likes = likes % 9`, `likes > ${random(60)}`)] },
    { name: 'likes below none', statements: [like(`likes = ${-random(3)}`)] },
    { name: 'extreme likes', statements: [like(`likes = 2147483647 - ${random(2)}`)] },
    {
      name: 'likes by one',
      statements: [`SELECT FROM like_outfit(${id}, ${user}, ${random(2) === 0}, true)`],
    },
    { name: 'title', statements: [update(`title = 'linen ${random(5)}'`)] },
    {
      name: 'quality and likes',
      statements: [
        `WITH liked AS (${like('likes = least(likes, 2147483600) + 1')}) ${update('quality = quality % 5 + 1')}`,
      ],
    },
    { name: 'private', statements: [update('private = NOT private')] },
    { name: 'owner', statements: [update(`user_id = ${user}`)] },
    { name: 'moments', statements: [update(`created = ${moment}, modified = modified + 1`)] },
    {
      name: 'id',
      statements: [
        `UPDATE outfits o SET id = n FROM (VALUES (${1 + random(maxId)})) other (n)
         WHERE id = ${id} AND NOT EXISTS (SELECT FROM outfits WHERE id = n)`,
      ],
    },
    {
      name: 'nothing',
      statements: [like('likes = likes'), update('id = id'), 'SELECT pg_current_xact_id()'],
    },
    {
      name: 'likes, then the outfit',
      statements: [
        'BEGIN',
        like(`likes = ${random(60)}`),
        update(`private = NOT private, created = ${moment}`),
        like('likes = least(likes, 2147483600) + 1'),
        'COMMIT',
      ],
    },
    {
      name: 'username',
      statements: [`UPDATE users SET username = 'name${random(4)}' WHERE id = ${user}`],
    },
    {
      name: 'user id',
      statements: [
        'BEGIN',
        'UPDATE users SET id = id + 100 WHERE id = 1',
        'UPDATE users SET id = 1 WHERE id = 101',
        'COMMIT',
      ],
    },
    { name: 'insert', statements: [`${insert} ON CONFLICT DO NOTHING`] },
    {
      name: 'upsert',
      statements: [
        `${insert} ON CONFLICT (id) DO UPDATE SET private = excluded.private, title = 'upserted'`,
      ],
    },
    {
      name: 'merge',
      statements: [
        `MERGE INTO outfits o USING generate_series(${id}, ${id + 3}) n ON o.id = n
         WHEN MATCHED AND n % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET created = created + 5`,
      ],
    },
    {
      name: 'merge of likes',
      statements: [
        `MERGE INTO outfit_like_counts l USING generate_series(${id}, ${id + 3}) n ON l.id = n
         WHEN MATCHED THEN UPDATE SET likes = n % 60`,
      ],
    },
    {
      name: 'an import',
      statements: [
        `WITH outfit AS (
           ${insert} ON CONFLICT (id) DO UPDATE
           SET private = excluded.private, user_id = excluded.user_id RETURNING id, private, user_id
         )
         INSERT INTO outfit_like_counts AS old SELECT *, ${random(60)} FROM outfit
         ON CONFLICT (id) DO UPDATE SET likes = excluded.likes WHERE old.likes <> excluded.likes`,
      ],
    },
    { name: 'delete', statements: [`DELETE FROM outfits WHERE id = ${id}`] },
    {
      name: 'with',
      statements: [
        `WITH gone AS (DELETE FROM outfits WHERE id = ${id} RETURNING *), liked AS (${like('likes = least(likes, 2147483600) + 2', `id = ${1 + random(maxId)} AND id <> ${id}`)})
         INSERT INTO users (id, username) SELECT id + 1000, 'gone' FROM gone ON CONFLICT DO NOTHING`,
      ],
    },
    {
      name: 'truncate',
      statements: [
        'BEGIN',
        'CREATE TEMPORARY TABLE saved ON COMMIT DROP AS SELECT * FROM outfits',
        'CREATE TEMPORARY TABLE saved_likes ON COMMIT DROP AS SELECT id, likes FROM outfit_like_counts',
        'TRUNCATE outfits CASCADE',
        `INSERT INTO outfits SELECT * FROM saved WHERE id <> ${id}`,
        'UPDATE outfit_like_counts l SET likes = s.likes FROM saved_likes s WHERE s.id = l.id',
        'COMMIT',
      ],
    },
    {
      name: 'more than are looked at',
      statements: [
        'BEGIN',
        `INSERT INTO outfits ${copies("'id', 5000 + n, 'created', 1", 'generate_series(1, 600) n')}`,
        'DELETE FROM outfits WHERE id > 5000',
        'COMMIT',
      ],
    },
    {
      name: 'without a trigger',
      statements: [
        'BEGIN',
        'ALTER TABLE outfits DISABLE TRIGGER note_updated',
        update(`title = 'unnoted ${random(9)}'`),
        'ALTER TABLE outfits ENABLE TRIGGER note_updated',
        'COMMIT',
      ],
    },
    {
      name: 'likes without a trigger',
      statements: [
        'BEGIN',
        'ALTER TABLE outfit_like_counts DISABLE TRIGGER note_updated',
        // Two that change places: any other change would make the counts wrong, too.
        `UPDATE outfit_like_counts a SET likes = b.likes
         FROM outfit_like_counts x
         CROSS JOIN LATERAL (
           SELECT id FROM outfit_like_counts WHERE id > x.id AND private = x.private ORDER BY id LIMIT 1
         ) y
         JOIN outfit_like_counts b ON b.id IN (x.id, y.id)
         WHERE x.id = ${id} AND a.id IN (x.id, y.id) AND a.id <> b.id`,
        'ALTER TABLE outfit_like_counts ENABLE TRIGGER note_updated',
        'COMMIT',
      ],
    },
    {
      name: 'as a replica',
      statements: [
        'BEGIN',
        'SET LOCAL session_replication_role = replica',
        update(`title = 'replicated ${random(9)}'`),
        like('likes = least(likes, 2147483600) + 1'),
        `UPDATE users SET username = 'replica${random(3)}' WHERE id = ${user}`,
        'COMMIT',
      ],
    },
    {
      name: 'savepoint',
      statements: [
        'BEGIN',
        'SAVEPOINT one',
        like('likes = least(likes, 2147483600) + 9'),
        'ROLLBACK TO one',
        like('likes = least(likes, 2147483600) + 1', `id = ${1 + random(maxId)}`),
        'COMMIT',
      ],
    },
    { name: 'rollback', statements: ['BEGIN', like('likes = 0', 'true'), 'ROLLBACK'] },
    { name: 'a fold', statements: ['SELECT fold_outfit_changes()'] },
    { name: 'folds', statements: Array(5).fill('SELECT fold_outfit_changes(1)') },
    { name: 'all counts anew', statements: ['SELECT rebuild_outfit_counts()'] },
    { name: 'of others', statements: ['CREATE TABLE of_others (id int)', 'DROP TABLE of_others'] },
    {
      name: 'in two phases',
      needsServer: true,
      statements: [
        'BEGIN',
        update(`title = 'prepared'`),
        like('likes = least(likes, 2147483600) + 1'),
        "PREPARE TRANSACTION 'prepared'",
        "COMMIT PREPARED 'prepared'",
      ],
    },
    {
      name: 'repeatable read',
      needsServer: true,
      statements: [
        'BEGIN ISOLATION LEVEL REPEATABLE READ',
        like('likes = least(likes, 2147483600) + 3'),
        'COMMIT',
      ],
    },
  ];
  return writes[random(writes.length)] as Write;
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

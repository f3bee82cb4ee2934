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
  const insert = `INSERT INTO outfits ${copies(`'id', ${id}, 'likes', ${random(60)}, 'user_id', ${user},
    'private', ${random(3) === 0}, 'created', ${moment}`)}`;
  const writes: Write[] = [
    { name: 'like', statements: [update('likes = likes + 1')] },
    { name: 'many likes', statements: [update(`likes = ${random(60)}`)] },
    { name: 'likes of some', statements: [update('likes = likes + 1', `id % 7 = ${random(7)}`)] },
    { name: 'likes of all', statements: [update('likes = (likes * 7 + id) % 60', 'true')] },
    { name: 'title', statements: [update(`title = 'linen ${random(5)}'`)] },
    {
      name: 'quality and likes',
      statements: [update('likes = likes + 1, quality = quality % 5 + 1')],
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
    { name: 'nothing', statements: [update('likes = likes'), 'SELECT pg_current_xact_id()'] },
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
        `${insert} ON CONFLICT (id) DO UPDATE SET likes = excluded.likes, title = 'upserted'`,
      ],
    },
    {
      name: 'merge',
      statements: [
        `MERGE INTO outfits o USING generate_series(${id}, ${id + 3}) n ON o.id = n
         WHEN MATCHED AND n % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET likes = likes + 5`,
      ],
    },
    { name: 'delete', statements: [`DELETE FROM outfits WHERE id = ${id}`] },
    {
      name: 'with',
      statements: [
        `WITH gone AS (DELETE FROM outfits WHERE id = ${id} RETURNING *), liked AS (${update('likes = likes + 2', `id = ${1 + random(maxId)} AND id <> ${id}`)})
         INSERT INTO users (id, username) SELECT id + 1000, 'gone' FROM gone ON CONFLICT DO NOTHING`,
      ],
    },
    {
      name: 'truncate',
      statements: [
        'BEGIN',
        'CREATE TEMPORARY TABLE saved ON COMMIT DROP AS SELECT * FROM outfits',
        'TRUNCATE outfits CASCADE',
        `INSERT INTO outfits SELECT * FROM saved WHERE id <> ${id}`,
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
        'ALTER TABLE outfits DISABLE TRIGGER count_updated',
        update(`title = 'unnoted ${random(9)}'`),
        'ALTER TABLE outfits ENABLE TRIGGER count_updated',
        'COMMIT',
      ],
    },
    {
      name: 'as a replica',
      statements: [
        'BEGIN',
        'SET LOCAL session_replication_role = replica',
        update(`likes = likes + 1, title = 'replicated ${random(9)}'`),
        `UPDATE users SET username = 'replica${random(3)}' WHERE id = ${user}`,
        'COMMIT',
      ],
    },
    {
      name: 'savepoint',
      statements: [
        'BEGIN',
        'SAVEPOINT one',
        update('likes = likes + 9'),
        'ROLLBACK TO one',
        update('likes = likes + 1', `id = ${1 + random(maxId)}`),
        'COMMIT',
      ],
    },
    { name: 'rollback', statements: ['BEGIN', update('likes = 0', 'true'), 'ROLLBACK'] },
    { name: 'a fold', statements: ['SELECT fold_outfit_changes(1)'] },
    { name: 'of others', statements: ['CREATE TABLE of_others (id int)', 'DROP TABLE of_others'] },
    {
      name: 'in two phases',
      needsServer: true,
      statements: [
        'BEGIN',
        update(`likes = likes + 1, title = 'prepared'`),
        "PREPARE TRANSACTION 'prepared'",
        "COMMIT PREPARED 'prepared'",
      ],
    },
    {
      name: 'repeatable read',
      needsServer: true,
      statements: ['BEGIN ISOLATION LEVEL REPEATABLE READ', update('likes = likes + 3'), 'COMMIT'],
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

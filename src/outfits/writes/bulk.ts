// Bulk upsert of outfits by id; the id sequences, and the ids reserved for outfits created here (FIRST_ID).
// In SQL: thousands of rows a statement, and locks.
import type pg from 'pg';
import { isReadOnlyError, sqlStateOf } from '../../database/errors.ts';
import { DatabaseNotReadyError, findWriteStatement } from '../../database/readiness.ts';
import { inTransaction, retryDeadlocks } from '../../database/transaction.ts';
import type { User } from '../../generated/prisma/client.ts';
import { type Columns, int4, type OutfitRow, outfitColumns, userColumns } from '../row.ts';

/** Outcome of a batch; the sum is the number of its rows. */
export interface SaveResult {
  readonly created: number;
  /** Outfits with a changed field, or with a changed field of the user. */
  readonly updated: number;
  readonly unchanged: number;
}

/** Upserts users by id. @param isDry whether to roll back */
export function saveUsers(
  pool: pg.Pool,
  users: readonly User[],
  isDry: boolean,
): Promise<SaveResult> {
  return retryDeadlocks(pool, async (client) => {
    const changed = await upsert(client, upsertUsers, users);
    if (isDry) await client.query('ROLLBACK');
    const created = [...changed.values()].filter((isNew) => isNew).length;
    return { created, updated: changed.size - created, unchanged: users.length - changed.size };
  });
}

/** $2: the moment, or null. */
const mayReplace = `($2::text IS NULL OR ${isOlderThan('old', '$2')})`;
const upsertUsers = `WITH ${given(userColumns)} ${upsertInto('users', userColumns)}`;
/** Outfits first: the lock order of all transactions is outfits, then likes. */
const upsertOutfits = `
  WITH ${given({ ...outfitColumns, likes: ['likes', 'int'] })}, outfit AS (
    ${upsertInto('outfits', outfitColumns)}
  ), counted AS (
    INSERT INTO outfit_like_counts AS old (id, private, user_id, likes)
    SELECT new.id, new.private, new."userId",
      -- The source does not include likes that were given here: they are added to its number.
      least(new.likes::bigint + (SELECT count(*) FROM outfit_likes WHERE outfit_id = new.id AND NOT imported), ${int4.max})::int
    FROM (SELECT count(*) FROM outfit) written CROSS JOIN new
    ORDER BY new.id
    ON CONFLICT (id) DO UPDATE SET likes = excluded.likes WHERE old.likes <> excluded.likes AND ${mayReplace}
    RETURNING id
  )
  SELECT id, coalesce(outfit.created, false) AS created FROM outfit FULL JOIN counted USING (id)`;

/** Upserts in one transaction. @param moment before the rows were read: what was written or deleted since then stays */
export async function saveOutfits(
  pool: pg.Pool,
  rows: readonly OutfitRow[],
  moment?: string,
): Promise<SaveResult> {
  return retryDeadlocks(pool, (client) => saveBatch(client, rows, moment));
}

/**
 * Saves an outfit as a source had it after `moment`. Also an equal row is written, so that no save of what was read before
 * replaces it. @returns false, and saves nothing, if the row was written after the moment: then it must be read again
 */
export function saveRead(pool: pg.Pool, row: OutfitRow, moment: string): Promise<boolean> {
  return retryDeadlocks(pool, async (client) => {
    const { rows } = await client.query<{ isOld: boolean }>(
      `SELECT ${isOlderThan('o', '$1')} AND ${isOlderThan('c', '$1')} AS "isOld"
       FROM outfits o JOIN outfit_like_counts c USING (id) WHERE id = $2 FOR UPDATE`,
      [moment, row.id],
    );
    if (rows[0]?.isOld === false) return false;
    await saveBatch(client, [row], moment);
    await client.query('UPDATE outfits SET id = id WHERE id = $1', [row.id]);
    await client.query('UPDATE outfit_like_counts SET id = id WHERE id = $1', [row.id]);
    return true;
  });
}

/** A moment of the database: rows that were written later are not `older` than it. */
export async function readMoment(pool: pg.Pool): Promise<string> {
  const { rows } = await pool.query<{ moment: string }>(
    'SELECT pg_snapshot_xmax(pg_current_snapshot())::text AS moment',
  );
  return rows[0]?.moment ?? '';
}

/**
 * A condition on rows of a table. `age` counts back from now, so it survives a wraparound of transaction ids: it is negative
 * for rows that are written meanwhile, and far below 0 for those of two billion transactions ago.
 */
export const isOlder = isOlderThan('', '$1');

function isOlderThan(table: string, moment: string): string {
  return `age(${table && `${table}.`}xmin) NOT BETWEEN -100000000 AND age(${moment}::xid8::xid)`;
}

export interface Removed {
  readonly outfits: number;
  readonly users: number;
  readonly likes: number;
}

/**
 * Removes, in one transaction, what is older than a moment: outfits by id, users without outfits, likes and stored
 * answers. New ids then begin behind the highest one that is left, or at `firstId`.
 */
export async function removeOlder(
  pool: pg.Pool,
  moment: string,
  ids: Iterable<number>,
  firstId: number | undefined,
): Promise<Removed> {
  const outfits = [...ids];
  return retryDeadlocks(pool, async (client) => {
    await client.query(lockTables);
    const remove = async (sql: string, ...values: unknown[]) =>
      (await client.query<{ number?: number }>(sql, [moment, ...values])).rowCount ?? 0;
    const removed = {
      outfits: await remove(
        `DELETE FROM outfits WHERE ${isOlder} AND id = ANY($2::int[])`,
        outfits,
      ),
      likes: await remove(removeLikes),
      users: await remove(
        `DELETE FROM users u WHERE ${isOlder} AND NOT EXISTS (SELECT FROM outfits WHERE user_id = u.id)`,
      ),
    };
    await remove(`DELETE FROM idempotency_keys WHERE ${isOlder}`);
    for (const table of bothTables) {
      await client.query(`ALTER SEQUENCE ${table}_id_seq RESTART`);
    }
    if (firstId !== undefined) {
      await client.query('DELETE FROM first_id');
      await client.query('INSERT INTO first_id (value) VALUES ($1)', [firstId]);
    }
    await moveSequences(client, await readFirstId(client));
    return removed;
  });
}

/** Likes that were given here are in the number of their outfit beside those of the source. */
const removeLikes = `
  WITH gone AS (DELETE FROM outfit_likes WHERE ${isOlder} RETURNING outfit_id, imported), counted AS (
    UPDATE outfit_like_counts c SET likes = greatest(c.likes - g.number, 0)
    FROM (SELECT outfit_id, count(*)::int AS number FROM gone WHERE NOT imported GROUP BY 1) g
    WHERE c.id = g.outfit_id
  )
  SELECT FROM gone`;

/** Deletes outfits by id, with their likes but not their users. @returns the number deleted */
export async function deleteOutfits(pool: pg.Pool, ids: readonly number[]): Promise<number> {
  const { rowCount } = await pool.query('DELETE FROM outfits WHERE id = ANY($1::int[])', [ids]);
  return rowCount ?? 0;
}

/**
 * Fills a database without outfits in one transaction, which blocks other writers.
 * @param firstId reserved with it @returns the number of outfits saved
 */
export async function saveIfEmpty(
  pool: pg.Pool,
  batches: Iterable<readonly OutfitRow[]>,
  onEmpty = () => {},
  firstId?: number,
): Promise<number> {
  return inTransaction(pool, async (client) => {
    // Less than the start waits: another client may keep its lock for hours.
    await client.query("SET LOCAL lock_timeout = '2s'");
    const isEmpty = async () => (await client.query('SELECT FROM outfits LIMIT 1')).rowCount === 0;
    // Before the lock too, which a database in use need not wait for.
    if (!(await isEmpty())) return 0;
    await client.query(lockTables);
    if (!(await isEmpty())) return 0;
    onEmpty();
    if (firstId !== undefined) await client.query(raiseFirstId, [firstId]);
    let saved = 0;
    for (const batch of batches) saved += (await saveBatch(client, batch)).created;
    await moveSequences(client, firstId);
    return saved;
  });
}

async function saveBatch(
  client: pg.PoolClient,
  given: readonly OutfitRow[],
  moment?: string,
): Promise<SaveResult> {
  const deleted = moment === undefined ? undefined : await readDeleted(client, given, moment);
  const rows = given.filter(({ id }) => !deleted?.has(id));
  const owners = rows.map((row) => row.user);
  const users = await upsert(client, upsertUsers, owners, moment);
  const outfits = await upsert(client, upsertOutfits, rows, moment);
  // A new number lacks a like that was given meanwhile: it is computed once more, now that its row is locked.
  const updated = rows.filter(({ id }) => outfits.get(id) === false);
  if (moment === undefined && updated.length > 0) await upsert(client, upsertOutfits, updated);
  const created = [...outfits.values()].filter((isNew) => isNew).length;
  const changed = new Set(
    rows.filter((row) => outfits.has(row.id) || users.has(row.userId)).map((row) => row.id),
  );
  return { created, updated: changed.size - created, unchanged: given.length - changed.size };
}

/** Ids that were deleted after the moment: the log of changes keeps them for a minute at least. */
async function readDeleted(
  client: pg.PoolClient,
  rows: readonly OutfitRow[],
  moment: string,
): Promise<ReadonlySet<number>> {
  const { rows: deleted } = await client.query<{ id: number }>(
    `SELECT outfit_id AS id FROM outfit_changes WHERE xid >= $1::xid8 AND outfit_id = ANY($2::int[])
       AND old_created IS NOT NULL AND new_created IS NULL`,
    [moment, rows.map(({ id }) => id)],
  );
  return new Set(deleted.map(({ id }) => id));
}

/** With fewer free ids after the highest one in use, new ids come from a gap. */
const minRoom = 1_000_000;

/** Raises sequences to the highest id in use, never back; near the maximum, moves them to the largest gap. */
export async function raiseSequences(pool: pg.Pool, tables = bothTables): Promise<void> {
  await inTransaction(pool, async (client) => {
    await client.query(`LOCK TABLE ${tables} IN SHARE ROW EXCLUSIVE MODE`);
    await moveSequences(client, 1, tables);
  });
}

/**
 * Makes new ids begin at or after `firstId`, for all clients of the database. Blocks writers briefly.
 * @throws DatabaseNotReadyError when nothing can be written
 */
export async function reserveIds(pool: pg.Pool, firstId: number): Promise<void> {
  if (!(await lacksFirstId(pool, firstId))) return;
  const reserving = inTransaction(pool, async (client) => {
    await client.query(lockTables);
    await client.query(raiseFirstId, [firstId]);
    await moveSequences(client, firstId);
  });
  await reserving.catch(async (error) => {
    if (!isReadOnlyError(sqlStateOf(error))) throw error;
    const statement = await findWriteStatement(pool);
    throw new DatabaseNotReadyError(
      `FIRST_ID cannot be stored, as the database is ${statement === undefined ? 'a standby: use its primary server' : `read-only: run "${statement}"`}.`,
    );
  });
}

/** The first id of outfits created here, stored in the database; undefined: not reserved. */
export async function readFirstId(pool: Pick<pg.Pool, 'query'>): Promise<number | undefined> {
  const { rows } = await pool.query<{ value: number }>('SELECT value FROM first_id');
  return rows[0]?.value;
}

async function lacksFirstId(pool: Pick<pg.Pool, 'query'>, firstId: number): Promise<boolean> {
  const { rowCount } = await pool.query(
    `SELECT FROM users_id_seq u, outfits_id_seq o
     WHERE least(u.last_value, o.last_value) < $1::bigint - 1 OR NOT EXISTS (
       SELECT FROM first_id kept
       WHERE value >= $1::int OR EXISTS (SELECT FROM outfits WHERE id >= kept.value)
     )`,
    [firstId],
  );
  return rowCount !== 0;
}

/** Unless outfits use the stored id: these would look like the source's. */
const raiseFirstId = `
  INSERT INTO first_id AS kept (value) VALUES ($1)
  ON CONFLICT (is_only) DO UPDATE SET value = excluded.value
  WHERE kept.value < excluded.value AND NOT EXISTS (SELECT FROM outfits WHERE id >= kept.value)`;

/** Prevents a race: a row inserted between reading and setting would move the sequence back. */
const bothTables: readonly string[] = ['users', 'outfits'];
const lockTables = `LOCK TABLE ${bothTables} IN SHARE ROW EXCLUSIVE MODE`;

/** Behind the highest ids that exist. @param firstId the first one that new ids may be */
export async function moveSequences(
  client: pg.PoolClient,
  firstId = 1,
  tables = bothTables,
): Promise<void> {
  for (const table of tables) await client.query(moveSequence(table), [firstId]);
}

/** To the highest id, or near the maximum before the largest gap, of those behind the sequence if there is one. */
const moveSequence = (table: string) => `
  SELECT setval('${table}_id_seq', CASE WHEN greatest(highest, start) <= ${int4.max - minRoom} THEN greatest(highest, start) ELSE (
    SELECT id
    FROM (
      SELECT id, lead(id, 1, ${int4.max + 1}) OVER (ORDER BY id) - id AS room
      FROM (SELECT 1 AS id UNION SELECT start UNION SELECT id FROM ${table}) taken
    ) gaps
    ORDER BY room > 1 AND id >= start DESC, room DESC, id LIMIT 1
  ) END)
  FROM ${table}_id_seq
  CROSS JOIN LATERAL (SELECT greatest(last_value, $1::bigint - 1) AS start) start
  CROSS JOIN (SELECT max(id) AS highest FROM ${table}) used
  WHERE greatest(highest, $1::bigint - 1) >= last_value OR last_value > ${int4.max - minRoom}`;

async function upsert(
  client: pg.PoolClient,
  statement: string,
  rows: readonly { readonly id: number }[],
  moment?: string,
): Promise<Map<number, boolean>> {
  const byId = new Map(rows.map((row) => [row.id, row]));
  // In the order of ids, so that concurrent batches do not deadlock.
  const sorted = [...byId.values()].sort((a, b) => a.id - b.id);
  const json = JSON.stringify(sorted, (_key, value: unknown) =>
    typeof value === 'bigint' ? value.toString() : value,
  );
  const result = await client.query<{ id: number; created: boolean }>(statement, [json, moment]);
  return new Map(result.rows.map((row) => [row.id, row.created]));
}

/** The rows as `new`. One JSON parameter holds any number of rows, so the text of the statement is constant. */
function given<Row>(columns: Columns<Row>): string {
  const entries = Object.entries<readonly [string, string]>(columns);
  return `new AS MATERIALIZED (
    SELECT * FROM json_to_recordset($1::json)
      AS new(${entries.map(([property, [, type]]) => `"${property}" ${type}`).join(', ')})
  )`;
}

function upsertInto<Row>(table: string, columns: Columns<Row>): string {
  const entries = Object.entries<readonly [string, string]>(columns);
  const names = entries.map(([, [name]]) => name);
  const values = names.filter((name) => name !== 'id');
  const list = (prefix: string) => values.map((name) => `${prefix}.${name}`).join(', ');
  return `
    INSERT INTO ${table} AS old (${names.join(', ')})
    SELECT ${entries.map(([property]) => `"${property}"`).join(', ')} FROM new ORDER BY id
    ON CONFLICT (id) DO UPDATE SET ${values.map((name) => `${name} = excluded.${name}`).join(', ')}
    WHERE (${list('old')}) IS DISTINCT FROM (${list('excluded')}) AND ${mayReplace}
    RETURNING old.id, old.xmax = 0 AS created`;
}

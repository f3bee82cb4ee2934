// Bulk upsert of likes from an import, and outfits whose number of likes differs from the rows.
// In SQL: thousands of rows a statement, and locks.
import type pg from 'pg';
import { inTransaction, retryDeadlocks } from '../../database/transaction.ts';
import { isOlder, type SaveResult } from './bulk.ts';

export interface LikeRow {
  readonly outfit: number;
  readonly user: number;
}

export interface SavedLikes extends SaveResult {
  /** Ids in the rows that are not in the database: these rows were not saved. */
  readonly missing: { readonly outfits: ReadonlySet<number>; readonly users: ReadonlySet<number> };
}

/**
 * Upserts likes of a source, whose imported outfits count them already. A like that was given here as well was counted
 * twice: now it counts once.
 * @param options.renew whether to write also likes that were imported before, so that they are not older than the import
 * @param options.isDry whether to roll back
 */
export function saveLikes(
  pool: pg.Pool,
  rows: readonly LikeRow[],
  { renew, isDry }: { readonly renew: boolean; readonly isDry: boolean },
): Promise<SavedLikes> {
  return retryDeadlocks(pool, async (client) => {
    // The lock order of a like: outfits, their numbers of likes, users.
    const outfits = await lock(client, 'outfits', idsOf(rows, 'outfit'), 'KEY SHARE');
    await lock(client, 'outfit_like_counts', [...outfits], 'NO KEY UPDATE');
    const users = await lock(client, 'users', idsOf(rows, 'user'), 'KEY SHARE');
    const saveable = rows.filter(({ outfit, user }) => outfits.has(outfit) && users.has(user));
    const { rows: saved } = await client.query<{ created: number; both: number }>(saveStatement, [
      saveable.map(({ outfit }) => outfit),
      saveable.map(({ user }) => user),
      renew,
    ]);
    if (isDry) await client.query('ROLLBACK');
    const { created = 0, both = 0 } = saved[0] ?? {};
    const missing = {
      outfits: new Set(idsOf(rows, 'outfit').filter((id) => !outfits.has(id))),
      users: new Set(idsOf(rows, 'user').filter((id) => !users.has(id))),
    };
    return { created, updated: both, unchanged: saveable.length - created - both, missing };
  });
}

const saveStatement = `
  WITH given AS MATERIALIZED (
    SELECT DISTINCT outfit_id, user_id FROM unnest($1::int[], $2::int[]) AS t (outfit_id, user_id)
  ), both_sides AS (
    SELECT outfit_id, user_id FROM given JOIN outfit_likes l USING (outfit_id, user_id) WHERE NOT l.imported
  ), counted AS (
    UPDATE outfit_like_counts c SET likes = greatest(c.likes - b.number, 0)
    FROM (SELECT outfit_id, count(*)::int AS number FROM both_sides GROUP BY 1) b WHERE c.id = b.outfit_id
  ), updated AS (
    UPDATE outfit_likes l SET imported = true FROM given g
    WHERE l.outfit_id = g.outfit_id AND l.user_id = g.user_id AND ($3 OR NOT l.imported)
  ), inserted AS (
    INSERT INTO outfit_likes (outfit_id, user_id, imported)
    SELECT outfit_id, user_id, true FROM given ORDER BY 1, 2
    ON CONFLICT DO NOTHING RETURNING 1
  )
  SELECT (SELECT count(*) FROM inserted)::int AS created, (SELECT count(*) FROM both_sides)::int AS both`;

/** Removes likes of earlier imports that are older than a moment. @returns how many */
export async function removeOlderLikes(pool: pg.Pool, moment: string): Promise<number> {
  const { rowCount } = await retryDeadlocks(pool, (client) =>
    client.query(`DELETE FROM outfit_likes WHERE imported AND ${isOlder}`, [moment]),
  );
  return rowCount ?? 0;
}

const idsOf = (rows: readonly LikeRow[], field: keyof LikeRow) => [
  ...new Set(rows.map((row) => row[field])),
];

async function lock(
  client: pg.PoolClient,
  table: string,
  ids: readonly number[],
  mode: string,
): Promise<Set<number>> {
  const { rows } = await client.query<{ id: number }>(
    `SELECT id FROM ${table} WHERE id = ANY($1::int[]) ORDER BY id FOR ${mode}`,
    [ids],
  );
  return new Set(rows.map(({ id }) => id));
}

export interface LikeDifference {
  readonly outfits: number;
  readonly likes: number;
  /** The first ids. */
  readonly first: readonly number[];
}

/** Outfits whose number of likes is above the number of their rows, and below it. */
export async function compareLikes(
  pool: pg.Pool,
): Promise<{ readonly above: LikeDifference; readonly below: LikeDifference }> {
  const { rows } = await inTransaction(pool, (client) =>
    client.query<LikeDifference & { isAbove: boolean }>(
      `SELECT c.likes > coalesce(r.number, 0) AS "isAbove", count(*)::int AS outfits,
       abs(sum(c.likes::bigint - coalesce(r.number, 0)))::float8 AS likes, (array_agg(id ORDER BY id))[1:3] AS first
     FROM outfit_like_counts c
     LEFT JOIN (SELECT outfit_id, count(*) AS number FROM outfit_likes GROUP BY 1) r ON r.outfit_id = c.id
     WHERE c.likes <> coalesce(r.number, 0) GROUP BY 1`,
    ),
  );
  const find = (isAbove: boolean) =>
    rows.find((row) => row.isAbove === isAbove) ?? { outfits: 0, likes: 0, first: [] };
  return { above: find(true), below: find(false) };
}

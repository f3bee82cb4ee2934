// Where the ids of outfits that are made here begin, which the database keeps for all who use it.
import type pg from 'pg';

/** Undefined: anywhere. */
export async function readFirstId(pool: Pick<pg.Pool, 'query'>): Promise<number | undefined> {
  const { rows } = await pool.query<{ value: number }>('SELECT value FROM first_id');
  return rows[0]?.value;
}

/**
 * Whether `reserveFirstId` has something to do. A sequence that has not come that far, or a kept id
 * that is lower, while no outfit has been made from it on.
 */
export async function lacksFirstId(
  pool: Pick<pg.Pool, 'query'>,
  firstId: number,
): Promise<boolean> {
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

/**
 * Makes new ids begin at `firstId` or behind it. A lower one than that which is kept changes nothing.
 * A higher one takes its place only while no outfit was made from there on, which would not be told
 * from those of a source any more. The tables must be locked against writers.
 */
export async function reserveFirstId(client: pg.PoolClient, firstId: number): Promise<void> {
  await client.query(
    `INSERT INTO first_id AS kept (value) VALUES ($1)
     ON CONFLICT (is_only) DO UPDATE SET value = excluded.value
     WHERE kept.value < excluded.value AND NOT EXISTS (SELECT FROM outfits WHERE id >= kept.value)`,
    [firstId],
  );
  await moveTo(client, firstId);
}

/** Of emptied tables: keeps `firstId`, or what was kept, and makes new ids begin there. */
export async function renewFirstId(
  client: pg.PoolClient,
  firstId: number | undefined,
): Promise<void> {
  if (firstId !== undefined) {
    await client.query('DELETE FROM first_id');
    await client.query('INSERT INTO first_id (value) VALUES ($1)', [firstId]);
  }
  await moveTo(client, await readFirstId(client));
}

async function moveTo(client: pg.PoolClient, firstId = 1): Promise<void> {
  for (const table of ['users', 'outfits']) {
    await client.query(
      `SELECT setval('${table}_id_seq', $1::bigint - 1) FROM ${table}_id_seq
       WHERE last_value < $1::bigint - 1`,
      [firstId],
    );
  }
}

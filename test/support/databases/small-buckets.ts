// Counts of few outfits as those of very many: so each step of cutting, grouping and seeking is taken all the time.
import type pg from 'pg';

type Queryable = Pick<pg.Client, 'query'>;

/** Makes buckets be cut into pieces of about `size` outfits. */
export async function setBucketSize(client: Queryable, size: number): Promise<void> {
  await client.query(
    `CREATE OR REPLACE FUNCTION outfit_bucket_size() RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT ${size}'`,
  );
}

/** Buckets that are to be cut. */
export const tooLarge =
  'outfit_buckets WHERE NOT is_group AND public + private > 2 * outfit_bucket_size()';

/**
 * Applies pending changes in batches, each in a transaction of its own. Returns how many.
 * @param onBatch called behind each
 */
export async function applyAll(
  client: Queryable,
  batch = 100_000,
  onBatch = async () => {},
): Promise<number> {
  for (let total = 0; ; ) {
    const { rows } = await client.query(
      `SELECT applied::int, is_done AS "isDone" FROM apply_pending_outfit_changes(${batch})`,
    );
    total += rows[0].applied;
    await onBatch();
    if (rows[0].isDone) return total;
  }
}

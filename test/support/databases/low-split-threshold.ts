// Counts of few outfits as those of very many: so each step of splitting and seeking is taken all the time.
import type pg from 'pg';

type Queryable = Pick<pg.Client, 'query'>;

/**
 * Makes the nodes of the counts split, and users get trees, above `splitThreshold` outfits, and seeking walk no further than
 * `walk` entries along an index.
 */
export async function lowerSplitThreshold(
  client: Queryable,
  { splitThreshold, walk }: { readonly splitThreshold: number; readonly walk: number },
): Promise<void> {
  await client.query(
    `CREATE OR REPLACE FUNCTION outfit_split_threshold() RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT ${splitThreshold}'`,
  );
  const { rows } = await client.query(
    `SELECT pg_get_functiondef(oid) AS text FROM pg_proc WHERE proname ~ '^(seek_outfit|outfits)_by_'`,
  );
  for (const { text } of rows) {
    const changed = text.replace(/(?<= )300\b/g, `${walk}`);
    if (changed === text) throw new Error(`It does not say how far it walks: ${text}`);
    await client.query(changed);
  }
}

/** Applies pending changes in batches, each in a transaction of its own. Returns how many. */
export async function applyAll(client: Queryable, batch = 100_000): Promise<number> {
  for (let total = 0; ; ) {
    const { rows } = await client.query(
      `SELECT applied::int, is_done AS "isDone" FROM apply_pending_outfit_changes(${batch})`,
    );
    total += rows[0].applied;
    if (rows[0].isDone) return total;
  }
}

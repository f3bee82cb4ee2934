// import --dry-run: compares each batch with its rows in the database, and writes nothing.
// In SQL: a batch with its likes, users and counts is one statement.
import type pg from 'pg';
import { exactTypes } from '../../database/read.ts';
import { inTransaction } from '../../database/transaction.ts';
import type { IdSet } from '../../old-listing/id-set.ts';
import {
  type Columns,
  type FlatRow,
  joinedRow,
  type OutfitRow,
  outfitColumns,
  rowColumns,
  rowOf,
  userColumns,
} from '../../outfits/row.ts';

/** Records by what an import would do with them, each named by its id, with the columns that would change. */
export type Compared = Readonly<Record<'created' | 'updated' | 'unchanged', string[]>>;

/**
 * @param missing ids of the records so far that the database does not have
 * @param replace whether likes that were given here would be removed
 */
export async function compareOutfits(
  pool: pg.Pool,
  rows: readonly OutfitRow[],
  missing: IdSet,
  replace: boolean,
): Promise<Compared> {
  const compared: Compared = { created: [], updated: [], unchanged: [] };
  const stored = await readStored(pool, rows);
  // The last version of a user in a batch wins, as in the upsert.
  const users = new Map(rows.map(({ user }) => [user.id, user]));
  for (const row of rows) {
    const old = stored.get(row.id);
    const user = users.get(row.userId) ?? row.user;
    const changed = old ? findChanges({ ...row, user }, old, replace) : [];
    if (!old && missing.add(row.id)) compared.created.push(`${row.id}`);
    else if (changed.length > 0) compared.updated.push(`${row.id}: ${changed.join(' and ')}`);
    else compared.unchanged.push(`${row.id}`);
  }
  return compared;
}

/** `given`: the number of likes that were given here. */
type StoredRow = OutfitRow & { readonly given: number };

function readStored(pool: pg.Pool, rows: readonly OutfitRow[]): Promise<Map<number, StoredRow>> {
  return inTransaction(pool, async (client) => {
    await client.query('SET TRANSACTION READ ONLY');
    const found = await client.query<FlatRow & Pick<StoredRow, 'given'>>({
      text: `SELECT ${rowColumns}, (SELECT count(*) FROM outfit_likes WHERE outfit_id = o.id AND NOT imported)::int AS given
        FROM outfits o ${joinedRow} WHERE o.id = ANY($1::int[])`,
      values: [rows.map(({ id }) => id)],
      types: exactTypes,
    });
    return new Map(found.rows.map((row) => [row.id, rowOf(row) as StoredRow]));
  });
}

/** The columns that the upsert of a row would change. */
function findChanges(row: OutfitRow, old: StoredRow, replace: boolean): string[] {
  const find = <Fields extends object>(
    columns: Columns<Fields>,
    a: NoInfer<Fields>,
    b: NoInfer<Fields>,
  ) =>
    (Object.keys(columns) as (keyof Fields)[])
      .filter((field) => a[field] !== b[field])
      .map((field) => columns[field][0]);
  // Likes that were given here are added to those of the source.
  const likes = Math.min(row.likes + (replace ? 0 : old.given), 2_147_483_647);
  return [
    ...find(outfitColumns, row, old),
    ...(likes === old.likes ? [] : ['likes']),
    ...find(userColumns, row.user, old.user).map((column) => `user.${column}`),
  ];
}

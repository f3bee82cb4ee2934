// export --likes and --users: the rows beside the outfits, as import --likes and --users read them.
// In SQL: pages of ten thousand rows, behind keys of two columns.
import type { ReadRows } from '../../database/read.ts';
import { encodeJson } from '../../http/representation.ts';

const pageSize = 10_000;

/** By keyset pagination over $1 and $2, the last keys. The first columns are the keys; users have the shape of REST. */
const statements = {
  likes: `SELECT outfit_id AS outfit, user_id AS user FROM outfit_likes
    WHERE (outfit_id, user_id) > ($1::bigint, $2::bigint) ORDER BY outfit_id, user_id LIMIT ${pageSize}`,
  users: `SELECT id, avatar_key, username, first_name, last_name FROM users
    WHERE id > $1::bigint AND $2::bigint = 0 ORDER BY id LIMIT ${pageSize}`,
};

type Row = { readonly id?: number; readonly outfit?: number; readonly user?: number };

export async function* readTable(
  read: ReadRows,
  table: keyof typeof statements,
): AsyncGenerator<readonly Buffer[]> {
  let last = [-(2 ** 31) - 1, 0];
  for (;;) {
    const rows = await read<Row>(statements[table], last);
    yield rows.map(encodeJson);
    const { id, outfit, user } = rows.at(-1) ?? {};
    if (rows.length < pageSize) return;
    last = [outfit ?? id ?? 0, user ?? 0];
  }
}

// Likes, once per user and outfit.
import type { ReadRows } from '../database/read.ts';
import { type FlatRow, type OutfitRow, rowColumns, rowOf } from './row.ts';
import type { Visibility } from './visibility.ts';
import { explainMissingUser, OutfitNotFoundError } from './writes.ts';

export interface Like {
  readonly id: number;
  readonly userId: number;
  /** Whether the user likes it from now on. */
  readonly liked: boolean;
}

/**
 * Sets whether a user likes an outfit, and gives the outfit with its count, in one statement. Doing
 * it again changes nothing. Neither `modified` nor the device changes: those are about the owner's
 * changes.
 * @throws OutfitNotFoundError, NoSuchUserError
 */
export async function setLike(
  read: ReadRows,
  { id, userId, liked }: Like,
  visibility: Visibility,
): Promise<OutfitRow> {
  const values = [id, userId, liked, visibility.private === 'all'];
  const [row] = await explainMissingUser(read<FlatRow>(likeStatement, values));
  if (!row) throw new OutfitNotFoundError(id);
  return rowOf(row);
}

/** $1 outfit, $2 user, $3 whether it is liked, $4 whether private outfits of others are seen. */
const likeStatement = `
  SELECT ${rowColumns}
  FROM like_outfit($1::int, $2::int, $3::boolean, $4::boolean) l
  CROSS JOIN LATERAL (SELECT (l.outfit).*) o
  JOIN users u ON u.id = o.user_id`;

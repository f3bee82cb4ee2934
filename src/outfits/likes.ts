// Likes, once per user and outfit.
import type { ReadRows } from '../database/read.ts';
import { type FlatRow, type OutfitRow, rowColumns, rowOf } from './row.ts';
import { type Visibility, viewerValues, visibleOf } from './visibility.ts';
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
  const values = [id, userId, liked, ...viewerValues(visibility)];
  const [row] = await explainMissingUser(read<FlatRow>(likeStatement(visibility), values));
  if (!row) throw new OutfitNotFoundError(id);
  return rowOf(row);
}

/**
 * $1 outfit, $2 user, $3 whether it is liked, $4 the viewer. Locked while it is looked at, so that
 * an outfit that has just become private is neither liked nor shown.
 */
function likeStatement(visibility: Visibility): string {
  return `
    WITH seen AS MATERIALIZED (
      SELECT s.id FROM outfits s
      WHERE s.id = $1::int AND ${visibleOf(visibility, 's.user_id', '$4')} FOR NO KEY UPDATE
    )
    SELECT ${rowColumns}
    FROM seen CROSS JOIN LATERAL like_outfit(seen.id, $2::int, $3::boolean) o
    JOIN users u ON u.id = o.user_id`;
}

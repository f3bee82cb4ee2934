// Likes, once per user and outfit.
import DataLoader from 'dataloader';
import type { ReadRows } from '../database/read.ts';
import { type FlatRow, type OutfitRow, rowColumns, rowOf } from './row.ts';
import type { Visibility } from './visibility.ts';
import { explainMissingUser, OutfitNotFoundError } from './writes.ts';

export interface Like {
  readonly id: number;
  readonly userId: number;
  readonly liked: boolean;
}

/** Likes or unlikes; `modified` is of the owner's changes. @throws OutfitNotFoundError, NoSuchUserError */
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

export type ViewerLikes = Pick<DataLoader<number, boolean>, 'load'>;

/** Reads the likes of one user: for all outfits of a page, in one statement. */
export function createViewerLikes(read: ReadRows, userId: number): ViewerLikes {
  const load = async (ids: readonly number[]) => {
    const rows = await read<{ id: number }>(likedStatement, [userId, ids]);
    const liked = new Set(rows.map(({ id }) => id));
    return ids.map((id) => liked.has(id));
  };
  return new DataLoader(load, { cache: false });
}

/** $1 user, $2 outfits. */
const likedStatement = `
  SELECT l.outfit_id AS id FROM unnest($2::int[]) AS asked (id)
  JOIN outfit_likes l ON l.outfit_id = asked.id AND l.user_id = $1::int`;

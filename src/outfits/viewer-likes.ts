// Which outfits a viewer likes: all that a step of a request needs at once.
import DataLoader from 'dataloader';
import type { ReadRows } from '../database/read.ts';

/** Gives whether the viewer likes an outfit, by its number. */
export type ViewerLikes = Pick<DataLoader<number, boolean>, 'load'>;

/** Reads the likes of one user: for all outfits of a page, in one statement. */
export function createViewerLikes(read: ReadRows, userId: number): ViewerLikes {
  const load = async (ids: readonly number[]) => {
    const rows = await read<{ id: number }>(statement, [userId, ids]);
    const liked = new Set(rows.map(({ id }) => id));
    return ids.map((id) => liked.has(id));
  };
  // Nothing is kept: what a document reads after it has written may be another answer.
  return new DataLoader(load, { cache: false });
}

/** $1 user, $2 outfits. */
const statement = `
  SELECT l.outfit_id AS id FROM unnest($2::int[]) AS asked (id)
  JOIN outfit_likes l ON l.outfit_id = asked.id AND l.user_id = $1::int`;

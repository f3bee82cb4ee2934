// Whether a database holds the demonstration set.
import type { ReadRows } from '../database/read.ts';
import { generateOutfits } from './generate.ts';

/** So that some may have been changed or deleted. */
const looked = 20;

/** Whether any of its first outfits is there, with its own picture. */
export async function isDemo(read: ReadRows): Promise<boolean> {
  const outfits = [...generateOutfits({ outfits: looked })];
  const found = await read(
    `SELECT FROM outfits JOIN unnest($1::int[], $2::text[]) AS demo (id, image_key)
     USING (id, image_key) LIMIT 1`,
    [outfits.map(({ id }) => id), outfits.map(({ imageKey }) => imageKey)],
  );
  return found.length > 0;
}

import type pg from 'pg';
import { raiseSequences, saveOutfits } from '../outfits/bulk.ts';
import type { OutfitRow } from '../outfits/row.ts';
import { generateOutfits } from './generate.ts';

const batchSize = 1000;

/**
 * Fills an empty database with the demonstration set.
 * @param onProgress called after each batch with the number of outfits so far
 */
export async function seedDemo(pool: pg.Pool, onProgress: (saved: number) => void): Promise<void> {
  let batch: OutfitRow[] = [];
  let saved = 0;
  const save = async () => {
    await saveOutfits(pool, batch);
    saved += batch.length;
    batch = [];
    onProgress(saved);
  };
  for (const outfit of generateOutfits()) {
    batch.push(outfit);
    if (batch.length === batchSize) await save();
  }
  if (batch.length > 0) await save();
  await raiseSequences(pool);
}

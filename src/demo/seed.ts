// Puts the demonstration set into an empty database.
import type pg from 'pg';
import { saveIfEmpty } from '../outfits/bulk.ts';
import { foldChanges } from '../outfits/fold.ts';
import type { OutfitRow } from '../outfits/row.ts';
import { generateOutfits } from './generate.ts';

const batchSize = 1000;

/**
 * Fills an empty database with the whole demonstration set, or leaves it empty.
 * @param onProgress called after each batch with the number of outfits so far
 */
export async function seedDemo(pool: pg.Pool, onProgress: (saved: number) => void): Promise<void> {
  let saved = 0;
  await saveIfEmpty(pool, batchesOf(generateOutfits()), (rows) => {
    saved += rows;
    onProgress(saved);
  });
  await foldChanges(pool);
}

function* batchesOf(outfits: Iterable<OutfitRow>): Generator<OutfitRow[]> {
  let batch: OutfitRow[] = [];
  for (const outfit of outfits) {
    batch.push(outfit);
    if (batch.length < batchSize) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

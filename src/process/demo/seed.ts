// The demonstration set: seeds an empty database from a listing, and recognises the set in a database.
// In SQL: several keys with their pictures are one look-up.
import { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type pg from 'pg';
import { packageFolder } from '../../config/package.ts';
import type { ReadRows } from '../../database/read.ts';
import { applyPendingChanges } from '../../outfits/counts.ts';
import type { OutfitRow } from '../../outfits/row.ts';
import { saveIfEmpty } from '../../outfits/writes/bulk.ts';
import { readEntries } from '../../transfer/source/entries.ts';
import { createCheck } from '../../transfer/source/record.ts';

const batchSize = 1000;

/** Outfits that identify the set; several, since some may have been changed or deleted. */
const sampleSize = 20;

/** Outfits of the set, oldest first. */
export async function* readDemo(): AsyncGenerator<OutfitRow> {
  const file = fileURLToPath(new URL('dist/demo/outfits.ndjson', packageFolder));
  const check = createCheck({
    media: 'https://media.example.com',
    video: 'https://video.example.com',
  });
  const noInput = Readable.from([]);
  for await (const entry of readEntries(file, noInput, new AbortController().signal)) {
    const { row, reasons = [] } =
      'value' in entry ? check(entry.value) : { reasons: [entry.reason] };
    if (!row) throw new Error(`${entry.where}: ${reasons.join('; ')}`);
    yield row;
  }
}

/** Seeds an empty database. @param onProgress called after each batch with the number of outfits so far */
export async function seedDemo(pool: pg.Pool, onProgress: (saved: number) => void): Promise<void> {
  let saved = 0;
  await saveIfEmpty(pool, readBatches(), (rows) => {
    saved += rows;
    onProgress(saved);
  });
  await applyPendingChanges(pool);
}

async function* readBatches(): AsyncGenerator<OutfitRow[]> {
  let batch: OutfitRow[] = [];
  for await (const outfit of readDemo()) {
    if (batch.push(outfit) < batchSize) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

/** Whether a database contains one of the first outfits of the set with the picture of the set. */
export async function isDemo(read: ReadRows): Promise<boolean> {
  const sample: OutfitRow[] = [];
  for await (const outfit of readDemo()) {
    if (sample.push(outfit) === sampleSize) break;
  }
  const found = await read(
    `SELECT FROM outfits JOIN unnest($1::int[], $2::text[]) AS demo (id, image_key)
     USING (id, image_key) LIMIT 1`,
    [sample.map(({ id }) => id), sample.map(({ imageKey }) => imageKey)],
  );
  return found.length > 0;
}

// The demonstration set: seeds an empty database, and recognises the set in a database.
// In SQL: several keys with their pictures are one look-up.
import { readFileSync } from 'node:fs';
import type pg from 'pg';
import { packageFolder } from '../../config/package.ts';
import type { ReadRows } from '../../database/read.ts';
import { applyPendingChanges } from '../../outfits/counts.ts';
import type { OutfitRow } from '../../outfits/row.ts';
import { saveIfEmpty } from '../../outfits/writes/bulk.ts';
import { createCheck } from '../../transfer/source/record.ts';

/** Outfits of the set, oldest first: a hundred, those of a line of the file, at a time. */
export function* readDemo(): Generator<OutfitRow[]> {
  const file = readFileSync(new URL('dist/demo/outfits.ndjson', packageFolder), 'utf8');
  const check = createCheck({
    media: 'https://media.example.com',
    video: 'https://video.example.com',
  });
  for (const line of file.trim().split('\n')) {
    yield JSON.parse(line).map((record: unknown) => {
      const { row, reasons } = check(record);
      if (!row) throw new Error(`outfits.ndjson: ${reasons.join('; ')}`);
      return row;
    });
  }
}

/** Seeds a database if it is empty. @returns the number of outfits that were saved */
export async function seedDemo(
  pool: pg.Pool,
  onEmpty?: () => void,
  firstId?: number,
): Promise<number> {
  const saved = await saveIfEmpty(pool, readDemo(), onEmpty, firstId);
  if (saved > 0) await applyPendingChanges(pool);
  return saved;
}

/** Whether a database contains one of the first outfits of the set with the picture of the set: some may have been changed or deleted. */
export async function isDemo(read: ReadRows): Promise<boolean> {
  const [sample = []] = readDemo();
  const found = await read(
    `SELECT FROM outfits JOIN unnest($1::int[], $2::text[]) AS demo (id, image_key)
     USING (id, image_key) LIMIT 1`,
    [sample.map(({ id }) => id), sample.map(({ imageKey }) => imageKey)],
  );
  return found.length > 0;
}

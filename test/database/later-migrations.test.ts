// The statements of prisma/later-migrations.md, in their order, on a database that is written meanwhile.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { root } from '../support/documents/page.ts';
import { openGateway } from '../support/gateway.ts';

const page = readFileSync(join(root, 'prisma/later-migrations.md'), 'utf8');
const [trigger, fill, rest, index, ...others] = [...page.matchAll(/^```sql.*?\n(.*?)^```$/gms)].map(
  ([, statement = '']) => statement,
);

test('a migration as the page writes it gives every outfit its value, and holds no writer', async () => {
  expect(others).toEqual([]);
  const outfits = [...generateOutfits({ outfits: 3000, users: 20 })];
  const { database, close } = await openGateway('PostgreSQL', outfits);
  onTestFinished(close);
  const { pool } = database;
  const holder = await pool.connect();
  onTestFinished(() => holder.release());
  const missing = async () => {
    const { rows } = await pool.query(
      'SELECT count(*)::int AS missing FROM outfits WHERE title_key IS DISTINCT FROM lower(title)',
    );
    return rows[0].missing;
  };

  // Simple queries, as the migrator and psql send them.
  await pool.query(`BEGIN; ${trigger}; COMMIT`);
  await pool.query(`UPDATE outfits SET title = 'Changed' WHERE id = $1`, [outfits[0]?.id]);
  expect(await missing()).toBe(2999);

  // A writer of the last outfit that has not ended: the fill waits for it, and no writer for the batches before.
  const last = outfits.reduce((most, { id }) => Math.max(most, id), 0);
  await holder.query('BEGIN');
  await holder.query(`UPDATE outfits SET title = 'Held' WHERE id = $1`, [last]);
  const filled = pool.query(fill as string);
  await expect.poll(missing).toBeLessThan(2000);
  await pool.query(`UPDATE outfits SET title = 'Written' WHERE id = $1`, [outfits[1]?.id]);
  await holder.query('COMMIT');
  await filled;
  expect(await missing()).toBe(0);

  expect((await pool.query(rest as string)).rowCount).toBe(0);
  await pool.query(index as string);
  const { rows } = await pool.query(
    `SELECT indisvalid FROM pg_index WHERE indexrelid = 'outfits_title_key_id_idx'::regclass`,
  );
  expect(rows).toEqual([{ indisvalid: true }]);
});

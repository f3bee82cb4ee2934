// A new ordering, as CONTRIBUTING.md adds it: by quality, in a database of its own.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readFunction } from '../../prisma/functions.ts';
import { type PageRequest, pageStatement } from '../../src/outfits/lists/statements.ts';
import { migratedEnvironmentOf } from '../support/cli/process.ts';
import { connectForTest } from '../support/databases/connections.ts';
import { setBucketSize } from '../support/databases/small-buckets.ts';
import { root } from '../support/documents/page.ts';

const [, section = ''] = readFileSync(join(root, 'CONTRIBUTING.md'), 'utf8').split(
  '## How to add an ordering',
);
const [, statements = ''] = /```sql\n(.*?)```/s.exec(section) ?? [];

/** The function with the columns of the new ordering. */
function withQuality(name: string): string {
  return readFunction(name)
    .replace('CREATE FUNCTION', 'CREATE OR REPLACE FUNCTION')
    .replace(
      /\b((?:old_|new_|o\.|n\.|OLD\.|NEW\.)?)modified\b(?!')( bigint)?/g,
      (found, prefix, type = '') =>
        name === 'pending_outfit_deltas' ? found : `${found}, ${prefix}quality${type}`,
    )
    .replace(/(WHEN 'id' THEN CASE WHEN (old|new)_)/g, "WHEN 'quality' THEN $2_quality $1");
}

test('rows of a table, indexes and columns of the change log give an ordering exact pages', async () => {
  const { DATABASE_URL } = await migratedEnvironmentOf('PostgreSQL');
  const client = await connectForTest(DATABASE_URL);
  await setBucketSize(client, 10);
  const insert = (from: number) =>
    client.query(`INSERT INTO outfits (id, image_key, image_original_key, user_id, private, quality, created, modified)
      SELECT n, 'k', 'k', 1, n % 4 = 0, n * 7919 % 90, n, n FROM generate_series(${from}, ${from + 299}) n`);
  await client.query(`INSERT INTO users (id, username) VALUES (1, 'one')`);
  await insert(1);
  await client.query(`BEGIN; ${statements} SELECT set_config('search_path', 'public, pg_temp', true);
    ${['record_outfits', 'record_replicated', 'pending_outfit_deltas'].map(withQuality).join('')}
    SELECT rebuild_outfit_counts(); COMMIT`);

  const comparePages = async () => {
    for (const direction of ['asc', 'desc'] as const) {
      for (const offset of [0, 25, 150, 333]) {
        const ordering = { field: 'quality', direction } as unknown as PageRequest['ordering'];
        const scope = { visibility: { private: 'own' as const, userId: 1 }, filter: {} };
        const { text, values } = pageStatement(scope, { ordering, offset, pageSize: 20 });
        const { rows: page } = await client.query(text, [...values]);
        const { rows: listed } = await client.query(
          `SELECT id FROM outfits ORDER BY quality ${direction}, id ${direction} OFFSET ${offset} LIMIT 20`,
        );
        expect(page.map(({ id }) => id).filter((id) => id !== null)).toEqual(
          listed.map(({ id }) => id),
        );
      }
    }
    expect((await client.query('SELECT * FROM check_outfit_counts()')).rows).toEqual([]);
  };
  await comparePages();
  await insert(301);
  await client.query('UPDATE outfits SET quality = quality / 2 WHERE id % 3 = 0');
  await client.query('DELETE FROM outfits WHERE id % 11 = 0');
  await client.query(
    'BEGIN; SET LOCAL session_replication_role = replica; UPDATE outfits SET quality = -1 WHERE id = 7; COMMIT',
  );
  await comparePages();
  await client.query('SELECT apply_pending_outfit_changes()');
  await comparePages();
  const { rows } = await client.query(
    `SELECT count(*)::int AS buckets FROM outfit_buckets WHERE ordering = 'quality'`,
  );
  expect(rows[0].buckets).toBeGreaterThan(20);
});

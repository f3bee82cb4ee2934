// import --dry-run: compares each batch with its rows in the database, and writes nothing.
import type pg from 'pg';
import { exactTypes } from '../../database/read.ts';
import { inTransaction } from '../../database/transaction.ts';
import { IdSet } from '../../old-listing/id-set.ts';
import {
  type Columns,
  type FlatRow,
  joinedRow,
  type OutfitRow,
  outfitColumns,
  rowColumns,
  rowOf,
  userColumns,
} from '../../outfits/row.ts';
import { readFirstId } from '../../outfits/writes/bulk.ts';
import type { Reporter } from '../reporter.ts';
import type { Bases } from '../source/record.ts';
import { readRows, type SourceOptions } from '../source/source.ts';
import {
  CountedRecords,
  countUnkept,
  type DryRun,
  reasonAgainstRemoval,
  type Unkept,
} from './outcome.ts';
import { findNotInSource } from './prune.ts';

interface DryRunOptions extends Omit<SourceOptions, 'from' | 'onShortened'> {
  readonly bases: Bases;
  /** Whether the import would empty the database first, with the likes that were given here. */
  readonly replace: boolean;
}

export async function dryRun(
  pool: pg.Pool,
  options: DryRunOptions,
  reporter: Reporter,
): Promise<DryRun> {
  const start = performance.now();
  const keptFirstId = await readFirstId(pool);
  const firstId = options.replace ? options.firstId : (keptFirstId ?? options.firstId);
  const [created, updated, unchanged] = [
    new CountedRecords(),
    new CountedRecords(),
    new CountedRecords(),
  ];
  const [ids, missing] = [new IdSet(), new IdSet()];
  const unkept: Unkept = new Map();
  let { bases } = options;
  let read = 0;
  let broken = 0;
  let count = 0;
  let ending: string | undefined;
  const onShortened = (reason: string) => {
    ending = reason;
  };
  for await (const batch of readRows({ ...options, firstId, onShortened }, bases, reporter)) {
    const stored = await readStored(pool, batch.rows);
    // The last version of a user in a batch wins, as in the upsert.
    const users = new Map(batch.rows.map(({ user }) => [user.id, user]));
    for (const row of batch.rows) {
      const old = stored.get(row.id);
      const user = users.get(row.userId) ?? row.user;
      const changed = old ? findChanges({ ...row, user }, old, options.replace) : [];
      if (!old && missing.add(row.id)) created.add(row.id);
      else if (changed.length > 0) updated.add(`${row.id}: ${changed.join(' and ')}`);
      else unchanged.add(row.id);
    }
    for (const id of batch.ids) ids.add(id);
    for (const record of batch.kept) countUnkept(unkept, record);
    ({ bases } = batch);
    read += batch.read;
    broken += batch.broken;
    count = batch.count ?? 0;
    reporter.progress(read, batch.count);
  }
  const notInSource = await findNotInSource(pool, ids, options.replace ? undefined : keptFirstId);
  const crawl = { ending, broken, count, came: ids.size };
  const partial = options.replace ? reasonAgainstRemoval(crawl) : undefined;
  const seconds = (performance.now() - start) / 1000;
  return {
    read,
    created,
    updated,
    unchanged,
    broken,
    notInSource,
    partial,
    bases,
    unkept,
    seconds,
  };
}

/** `given`: the number of likes that were given here. */
type StoredRow = OutfitRow & { readonly given: number };

function readStored(pool: pg.Pool, rows: readonly OutfitRow[]): Promise<Map<number, StoredRow>> {
  return inTransaction(pool, async (client) => {
    await client.query('SET TRANSACTION READ ONLY');
    const found = await client.query<FlatRow & Pick<StoredRow, 'given'>>({
      text: `SELECT ${rowColumns}, (SELECT count(*) FROM outfit_likes WHERE outfit_id = o.id AND NOT imported)::int AS given
        FROM outfits o ${joinedRow} WHERE o.id = ANY($1::int[])`,
      values: [rows.map(({ id }) => id)],
      types: exactTypes,
    });
    return new Map(found.rows.map((row) => [row.id, rowOf(row) as StoredRow]));
  });
}

/** The columns that the upsert of a row would change. */
function findChanges(row: OutfitRow, old: StoredRow, replace: boolean): string[] {
  const find = <Fields extends object>(
    columns: Columns<Fields>,
    a: NoInfer<Fields>,
    b: NoInfer<Fields>,
  ) =>
    (Object.keys(columns) as (keyof Fields)[])
      .filter((field) => a[field] !== b[field])
      .map((field) => columns[field][0]);
  // Likes that were given here are added to those of the source.
  const likes = Math.min(row.likes + (replace ? 0 : old.given), 2_147_483_647);
  return [
    ...find(outfitColumns, row, old),
    ...(likes === old.likes ? [] : ['likes']),
    ...find(userColumns, row.user, old.user).map((column) => `user.${column}`),
  ];
}

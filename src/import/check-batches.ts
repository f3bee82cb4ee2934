// The records of a source as rows, in batches that are worth a transaction; broken ones are named.
import type { OutfitRow } from '../outfits/row.ts';
import type { Batch } from './batch.ts';
import { type Bases, createCheck, findBases, readProperty } from './record.ts';
import type { Reporter } from './reporter.ts';
import { joinBatches, readSource, type SourceOptions } from './source.ts';

/** Records per transaction, and milliseconds after which fewer will do. */
const batchSize = 1_000;
const batchTime = 5_000;

export interface CheckOptions extends Omit<SourceOptions, 'notify'> {
  /** The URL of a live listing, or files and folders, or `-` for standard input. */
  readonly sources: readonly string[];
  /** An outfit with this id or a higher one cannot be of a source; undefined: any can. */
  readonly firstId: number | undefined;
}

export interface CheckedBatch extends Pick<Batch, 'next' | 'count' | 'firstCount'> {
  readonly rows: readonly OutfitRow[];
  /** The records that became them. */
  readonly kept: readonly unknown[];
  /** Ids of all records, as far as they have one. */
  readonly ids: readonly number[];
  readonly bases: Bases;
  /** Records and unreadable parts. */
  readonly read: number;
  /** Those of them that cannot be saved. */
  readonly broken: number;
}

/** Turns records into rows and reports those that break the contract. */
export async function* checkBatches(
  options: CheckOptions,
  startBases: Bases,
  reporter: Reporter,
): AsyncGenerator<CheckedBatch> {
  const batches = readSource(options.sources, { ...options, notify: reporter.note });
  let bases = startBases;
  for await (const batch of joinBatches(batches, batchSize, batchTime)) {
    const values = batch.records.map((record) => record.value);
    bases = findBases(bases, values);
    const check = createCheck(bases, options.firstId);
    const rows: OutfitRow[] = [];
    const kept: unknown[] = [];
    for (const { where, reason } of batch.unreadable) reporter.fault(`${where}: ${reason}`, reason);
    for (const { where, value } of batch.records) {
      const { row, reasons } = check(value);
      if (row) {
        rows.push(row);
        kept.push(value);
        continue;
      }
      const [name, why] = [nameRecord(value), reasons.join('; ')];
      reporter.fault(`${name} (${where}): ${why}`, `${name}: ${why}`);
    }
    const read = batch.records.length + batch.unreadable.length;
    const ids = values.map(readId).filter((id) => id !== undefined);
    const { next, count, firstCount } = batch;
    yield { rows, kept, ids, bases, read, broken: read - rows.length, next, count, firstCount };
  }
}

function nameRecord(record: unknown): string {
  const id = readId(record);
  return id === undefined ? 'Record without id' : `Outfit ${id}`;
}

function readId(record: unknown): number | undefined {
  const id = readProperty(record, 'id');
  return typeof id === 'number' && (id | 0) === id ? id : undefined;
}

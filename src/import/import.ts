// Reads a source into the database, batch by batch.
import type { Readable } from 'node:stream';
import type pg from 'pg';
import { raiseSequences, saveOutfits } from '../outfits/bulk.ts';
import type { OutfitRow } from '../outfits/row.ts';
import type { Batch } from './batch.ts';
import type { Checkpoint, Progress } from './checkpoint.ts';
import { IdSet } from './id-set.ts';
import { type Bases, createCheck, findBases, readProperty } from './record.ts';
import type { Reporter } from './reporter.ts';
import { joinBatches, readSource } from './source.ts';
import { countUnkept, type Unkept } from './unkept.ts';

/** Records per transaction, and milliseconds after which fewer will do. */
const batchSize = 1_000;
const batchTime = 5_000;

const nothing = { read: 0, created: 0, updated: 0, unchanged: 0, broken: 0 };

export interface ImportOptions {
  /** The URL of a live listing, or files and folders, or `-` for standard input. */
  readonly sources: readonly string[];
  readonly stdin: Readable;
  /** What is sent to a live listing with each request. */
  readonly headers: Headers;
  /** Bases that are given; the others are found in the first records. */
  readonly bases: Bases;
  /** Whether to empty the database before the first batch is saved. */
  readonly replace: boolean;
  /** Where an earlier run stopped, to go on from there. */
  readonly resume: Progress | undefined;
  /** Undefined when nothing can be resumed, as with standard input. */
  readonly checkpoint: Checkpoint | undefined;
  /** Ends the import after the batch that is being saved. */
  readonly signal: AbortSignal;
}

export interface ImportOutcome {
  readonly totals: Progress['totals'];
  readonly bases: Bases;
  /** Fields of the saved records that the contract does not have. */
  readonly unkept: Unkept;
  readonly interrupted: boolean;
  /** Outfits in the database that the source does not have; undefined when part of it was not read. */
  readonly foreign: number | undefined;
  /** Records that a live listing counts beyond those that came; undefined if that is not known. */
  readonly lacking: number | undefined;
}

/**
 * Reads a source and saves what keeps the contract, reading one batch while another is saved.
 * @throws SourceError when the source cannot be read on; what came before is saved all the same
 */
export async function importOutfits(
  pool: pg.Pool,
  options: ImportOptions,
  reporter: Reporter,
): Promise<ImportOutcome> {
  const { resume, checkpoint } = options;
  const totals = { ...(resume?.totals ?? nothing) };
  const ids = new IdSet();
  const unkept: Unkept = new Map(resume?.unkept);
  let bases: Bases = resume?.bases ?? options.bases;
  let savedId = resume?.savedId;
  let count: number | undefined;
  let replace = options.replace && !resume;
  let interrupted = false;

  try {
    for await (const batch of readAhead(checkBatches(options, bases, reporter))) {
      // Not before there is something to put in its place.
      const isFirst = replace && batch.rows.length > 0;
      const saved = await saveOutfits(pool, batch.rows, { replace: isFirst });
      if (batch.rows.length > 0) await raiseSequences(pool);
      if (isFirst) replace = false;
      for (const id of batch.ids) ids.add(id);
      for (const record of batch.kept) countUnkept(unkept, record);
      ({ bases, count } = batch);
      savedId = batch.rows.at(-1)?.id ?? savedId;
      totals.read += batch.read;
      totals.broken += batch.broken;
      totals.created += saved.created;
      totals.updated += saved.updated;
      totals.unchanged += saved.unchanged;
      // A run that goes on does not empty the database, so there is none before that is done.
      if (batch.next && !replace) {
        checkpoint?.write({ position: batch.next, bases, totals, unkept: [...unkept], savedId });
      }
      reporter.progress(totals.read, count);
    }
  } catch (error) {
    if (!options.signal.aborted || !(error instanceof Error && error.name === 'AbortError'))
      throw error;
    interrupted = true;
  }

  const isWhole = !interrupted && !resume;
  if (replace && isWhole && totals.broken === 0) await saveOutfits(pool, [], { replace });
  if (!interrupted) checkpoint?.remove();
  // The embedded database has no process that would do it; without, plans are those of empty tables.
  if (totals.created + totals.updated > 0) await pool.query('ANALYZE users, outfits');
  return {
    totals,
    bases,
    unkept,
    interrupted,
    foreign: isWhole ? await countOthers(pool, ids) : undefined,
    lacking: isWhole && totals.broken === 0 ? Math.max(0, (count ?? 0) - ids.size) : undefined,
  };
}

interface CheckedBatch extends Pick<Batch, 'next' | 'count'> {
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
async function* checkBatches(
  options: ImportOptions,
  startBases: Bases,
  reporter: Reporter,
): AsyncGenerator<CheckedBatch> {
  const from = options.resume?.position;
  const batches = readSource(options.sources, { ...options, from, notify: reporter.note });
  let bases = startBases;
  for await (const batch of joinBatches(batches, batchSize, batchTime)) {
    const values = batch.records.map((record) => record.value);
    bases = findBases(bases, values);
    const check = createCheck(bases);
    const rows: OutfitRow[] = [];
    const kept: unknown[] = [];
    for (const { where, reason } of batch.unreadable) reporter.fault(`${where}: ${reason}`);
    for (const { where, value } of batch.records) {
      const { row, reasons } = check(value);
      if (row) {
        rows.push(row);
        kept.push(value);
      } else reporter.fault(`${nameRecord(value)} (${where}): ${reasons.join('; ')}`);
    }
    const read = batch.records.length + batch.unreadable.length;
    const ids = values.map(readId).filter((id) => id !== undefined);
    const { next, count } = batch;
    yield { rows, kept, ids, bases, read, broken: read - rows.length, next, count };
  }
}

/** Asks for the next item before the current one is dealt with, so that the two overlap. */
async function* readAhead<Item>(items: AsyncGenerator<Item>): AsyncGenerator<Item> {
  let coming = items.next();
  for (let result = await coming; !result.done; result = await coming) {
    coming = items.next();
    // If it fails while the current item is dealt with, that is soon enough to know after it.
    coming.catch(() => {});
    yield result.value;
  }
}

function nameRecord(record: unknown): string {
  const id = readId(record);
  return id === undefined ? 'Record without id' : `Outfit ${id}`;
}

function readId(record: unknown): number | undefined {
  const id = readProperty(record, 'id');
  return Number.isInteger(id) && Math.abs(Number(id)) < 2 ** 31 ? Number(id) : undefined;
}

/** Ids of the database that are compared at a time: in the source there may be millions. */
const idsPerPage = 50_000;

async function countOthers(pool: pg.Pool, ids: IdSet): Promise<number> {
  let others = 0;
  let last = -(2 ** 31) - 1;
  for (;;) {
    const { rows } = await pool.query<{ id: number }>(
      'SELECT id FROM outfits WHERE id > $1::bigint ORDER BY id LIMIT $2',
      [last, idsPerPage],
    );
    for (const { id } of rows) if (!ids.has(id)) others++;
    last = rows.at(-1)?.id ?? last;
    if (rows.length < idsPerPage) return others;
  }
}

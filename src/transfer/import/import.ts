// Reads a source into the database, batch by batch, from where an interrupted import stopped.
import type pg from 'pg';
import { applyPendingChanges } from '../../outfits/counts.ts';
import { raiseSequences, readFirstId, reserveIds, saveOutfits } from '../../outfits/writes/bulk.ts';
import { formatNumber, type Output, type Reporter } from '../reporter.ts';
import { IdSet } from '../source/id-set.ts';
import type { Bases } from '../source/record.ts';
import { readRows, type SourceOptions } from '../source/source.ts';
import type { Checkpoint, Progress } from './checkpoint.ts';
import { countUnkept, type ImportOutcome, type Unkept } from './outcome.ts';
import { findNotInSource } from './prune.ts';

/** Pending changes are added to the counts after this many outfits: see counting.md. */
const applyEvery = 20_000;

const nothing = { read: 0, created: 0, updated: 0, unchanged: 0, broken: 0 };

/** `firstId` is where the ids of outfits made here are to begin; undefined: as the database has it. */
export interface ImportOptions extends Omit<SourceOptions, 'from' | 'onShortened'> {
  /** Bases that are given; the others are found in the first records. */
  readonly bases: Bases;
  readonly replace: boolean;
  /** Undefined when nothing can be resumed, as with standard input. */
  readonly checkpoint: Checkpoint | undefined;
  /** Whether another import follows whatever comes of this one. */
  readonly isRepeated: boolean;
  readonly stderr: Output;
  readonly startReport: (already: number) => Reporter;
}

/** @throws SourceError when the source cannot be read on; what came before is saved all the same */
export async function importOutfits(pool: pg.Pool, options: ImportOptions): Promise<ImportOutcome> {
  const { checkpoint, isRepeated, stderr } = options;
  const found = checkpoint?.read();
  // A database that does not hold what was saved is another one.
  const isKnown = async (id: number) =>
    (await pool.query('SELECT FROM outfits WHERE id = $1', [id])).rowCount === 1;
  const resume = found?.savedId !== undefined && (await isKnown(found.savedId)) ? found : undefined;
  const already = resume?.totals.read ?? 0;
  if (resume) {
    stderr.write(
      `Going on behind the ${formatNumber(already)} records that an interrupted import has read (--restart begins anew).\n`,
    );
  }
  const reporter = options.startReport(already);
  const start = performance.now();
  try {
    const outcome = await readAndSave(pool, options, resume, reporter);
    return { ...outcome, already, seconds: (performance.now() - start) / 1000 };
  } catch (error) {
    const reached = checkpoint?.read();
    if (!isRepeated) {
      if (reached) reporter.note('What came before is saved; the same command goes on from there.');
    } else if (resume && reached?.totals.read === already) {
      // A page that never comes must not keep those before it from being read ever again.
      checkpoint?.remove();
    }
    throw error;
  } finally {
    reporter.finish();
  }
}

async function readAndSave(
  pool: pg.Pool,
  options: ImportOptions,
  resume: Progress | undefined,
  reporter: Reporter,
): Promise<Omit<ImportOutcome, 'already' | 'seconds'>> {
  const { checkpoint, signal } = options;
  const totals = { ...(resume?.totals ?? nothing) };
  const ids = new IdSet();
  const unkept: Unkept = new Map(resume?.unkept);
  let bases: Bases = resume?.bases ?? options.bases;
  let savedId = resume?.savedId;
  let count: number | undefined;
  let firstCount: number | undefined;
  let replace = options.replace && !resume;
  let interrupted = false;
  let isRaised = false;
  let isShortened = false;
  let unapplied = 0;
  const onShortened = () => {
    isShortened = true;
  };

  // Where outfits made here begin. An emptied database has none, so an export that has them may be restored.
  if (!options.replace && options.firstId !== undefined) await reserveIds(pool, options.firstId);
  const firstId = options.replace ? options.firstId : await readFirstId(pool);
  try {
    const from = resume?.position;
    const batches = readRows({ ...options, from, firstId, onShortened }, bases, reporter);
    for await (const batch of readAhead(batches)) {
      // Not before there is something to put in its place.
      const isFirst = replace && batch.rows.length > 0;
      const saved = await saveOutfits(pool, batch.rows, { replace: isFirst, firstId });
      // Writers wait for it. The first batch may follow one of an earlier run that was killed before it.
      if (saved.created > 0 || !isRaised) await raiseSequences(pool);
      isRaised = true;
      if (isFirst) replace = false;
      for (const id of batch.ids) ids.add(id);
      for (const record of batch.kept) countUnkept(unkept, record);
      ({ bases, count } = batch);
      firstCount ??= batch.firstCount ?? count;
      savedId = batch.rows.at(-1)?.id ?? savedId;
      totals.read += batch.read;
      totals.broken += batch.broken;
      for (const key of ['created', 'updated', 'unchanged'] as const) totals[key] += saved[key];
      // A run that goes on does not empty the database, so there is none before that is done.
      if (batch.next && !replace) {
        checkpoint?.write({ position: batch.next, bases, totals, unkept: [...unkept], savedId });
      }
      unapplied += saved.created + saved.updated;
      if (unapplied >= applyEvery) {
        await applyPendingChanges(pool);
        unapplied = 0;
      }
      reporter.progress(totals.read, count);
    }
  } catch (error) {
    if (!signal.aborted || !(error instanceof Error && error.name === 'AbortError')) throw error;
    interrupted = true;
  }

  const isWhole = !interrupted && !resume;
  if (replace && isWhole && totals.broken === 0) await saveOutfits(pool, [], { replace, firstId });
  if (!interrupted) checkpoint?.remove();
  // The embedded database has no process that would do it; without, plans are those of empty tables.
  if (totals.created + totals.updated > 0) {
    await applyPendingChanges(pool);
    await pool.query('ANALYZE users, outfits');
  }
  const isComplete = isWhole && totals.broken === 0;
  const lacking = isComplete ? Math.max(0, (count ?? 0) - ids.size) : undefined;
  // What was created meanwhile stands on a page that had been read: nothing is missing for that.
  const isShort = isComplete && Math.min(firstCount ?? 0, count ?? 0) > ids.size;
  const doubts = [
    [interrupted, 'the import was interrupted'],
    [resume, 'the import went on where another one had ended'],
    [isShortened, 'a page was gone when it was asked for'],
    [totals.broken, 'some records were broken'],
    [isShort, 'the listing counts more than came'],
    [ids.size === 0, 'the source is empty'],
  ] as const;
  return {
    totals,
    bases,
    unkept,
    interrupted,
    foreign: isWhole ? await findNotInSource(pool, ids, await readFirstId(pool)) : undefined,
    lacking,
    came: ids.size,
    partial: doubts.find(([isDoubtful]) => isDoubtful)?.[1],
  };
}

async function* readAhead<Item>(items: AsyncGenerator<Item>): AsyncGenerator<Item> {
  let coming = items.next();
  for (let result = await coming; !result.done; result = await coming) {
    coming = items.next();
    // If it fails while the current item is dealt with, that is soon enough to know after it.
    coming.catch(() => {});
    yield result.value;
  }
}

// Imports a source in batches, resumed from the checkpoint of an interrupted run.
import type pg from 'pg';
import type { Database } from '../../database/database.ts';
import { IdSet } from '../../old-listing/id-set.ts';
import type { Position } from '../../old-listing/page.ts';
import type { Recent } from '../../old-listing/record-lookup.ts';
import { applyPendingChanges } from '../../outfits/counts.ts';
import {
  type Removed,
  raiseSequences,
  readFirstId,
  readMoment,
  removeOlder,
  reserveIds,
  saveOutfits,
} from '../../outfits/writes/bulk.ts';
import { formatNumber, type Output, type Reporter } from '../reporter.ts';
import type { Bases } from '../source/record.ts';
import {
  type CheckedBatch,
  findListingUrl,
  readRows,
  type SourceOptions,
} from '../source/source.ts';
import type { Checkpoint, Progress } from './checkpoint.ts';
import { type Compared, compareOutfits } from './dry-run.ts';
import {
  countOutside,
  countUnkept,
  type ImportOutcome,
  reasonAgainstRemoval,
  type Unkept,
} from './outcome.ts';
import { findNotInSource } from './prune.ts';

/** Pending changes are added to the counts after this many outfits: see docs/counting.md. */
const applyEvery = 20_000;

/** Records of each kind that a dry run names. */
const maxFirst = 3;

/** Outfits of each kind that are remembered as the last that came. */
const maxRecent = 3;

const nothing = { read: 0, created: 0, updated: 0, unchanged: 0, broken: 0 };

/** `firstId`: first id of outfits that are created here; undefined: the value in the database. */
export interface ImportOptions extends Omit<SourceOptions, 'from' | 'onShortened'> {
  /** Bases from options; the others are detected in the first records. */
  readonly bases: Bases;
  readonly replace: boolean;
  /** Whether to save and remove nothing, and name the first records instead. */
  readonly isDry: boolean;
  /** Undefined for a source that cannot be resumed, such as standard input. */
  readonly checkpoint: Checkpoint | undefined;
  /** Whether another run follows, as with --follow. */
  readonly isRepeated: boolean;
  readonly stderr: Output;
  readonly startReport: (already: number) => Reporter;
}

/** @throws SourceError when the source fails; the batches before are saved */
export async function importOutfits(
  { pool, prisma }: Pick<Database, 'pool' | 'prisma'>,
  options: ImportOptions,
): Promise<ImportOutcome> {
  const { checkpoint, isRepeated, stderr } = options;
  const found = checkpoint?.read();
  // Without the last saved outfit it is another database.
  const isSaved = async (id: number) =>
    (await prisma.outfit.findUnique({ where: { id }, select: { id: true } })) !== null;
  const resume = found?.savedId !== undefined && (await isSaved(found.savedId)) ? found : undefined;
  const already = resume?.totals.read ?? 0;
  if (resume) {
    stderr.write(
      `Going on behind the ${formatNumber(already)} records that an interrupted import has read (--restart begins anew).\n`,
    );
  }
  const reporter = options.startReport(already);
  const start = performance.now();
  try {
    const outcome = await new ImportRun(pool, options, resume, reporter).run();
    return { ...outcome, already, seconds: (performance.now() - start) / 1000 };
  } catch (error) {
    const reached = checkpoint?.read();
    if (!isRepeated) {
      if (reached) reporter.note('What came before is saved; the same command goes on from there.');
    } else if (resume && reached?.totals.read === already) {
      // The next run begins anew: one page that always fails must not block the pages before it.
      checkpoint?.remove();
    }
    throw error;
  } finally {
    reporter.finish();
  }
}

/** One run over a source. Its state is what the checkpoint keeps, and what the outcome reports. */
class ImportRun {
  readonly #totals: Progress['totals'];
  readonly #unkept: Unkept;
  readonly #outside: Unkept;
  readonly #ids = new IdSet();
  readonly #recent: Record<keyof Recent, number[]> = { public: [], private: [] };
  /** Records without a valid id: they may be any. */
  #unnamed = 0;
  #bases: Bases;
  #savedId: number | undefined;
  #count: number | undefined;
  #firstCount: number | undefined;
  #shortened: string | undefined;
  #isInterrupted = false;
  #firstId: number | undefined;
  #areSequencesRaised = false;
  #unapplied = 0;
  /** In a dry run: ids that the database does not have, and the first records by what would be done with them. */
  readonly #missing = new IdSet();
  readonly #first: Compared = { created: [], updated: [], unchanged: [] };

  constructor(
    private readonly pool: pg.Pool,
    private readonly options: ImportOptions,
    private readonly resume: Progress | undefined,
    private readonly reporter: Reporter,
  ) {
    this.#totals = { ...(resume?.totals ?? nothing) };
    this.#unkept = new Map(resume?.unkept);
    this.#outside = new Map(resume?.outside);
    this.#bases = resume?.bases ?? options.bases;
    this.#savedId = resume?.savedId;
  }

  async run(): Promise<Omit<ImportOutcome, 'already' | 'seconds'>> {
    const { pool, options } = this;
    const { isDry, replace, firstId } = options;
    // With --replace, an export that has reserved ids may be restored.
    if (!replace && !isDry && firstId !== undefined) await reserveIds(pool, firstId);
    this.#firstId = replace ? firstId : ((await readFirstId(pool)) ?? firstId);
    const moment = await readMoment(pool);
    try {
      await this.#saveBatches();
    } catch (error) {
      const isAbort = error instanceof Error && error.name === 'AbortError';
      if (!options.signal.aborted || !isAbort || isDry) throw error;
      this.#isInterrupted = true;
    }
    const outcome = await this.#judge();
    if (isDry) return { ...outcome, removed: undefined, first: this.#first };
    const removed =
      replace && outcome.notInSource && outcome.partial === undefined
        ? await removeOlder(pool, moment, outcome.notInSource, firstId)
        : undefined;
    await this.#finish(removed);
    return { ...outcome, removed };
  }

  async #saveBatches(): Promise<void> {
    const { options, resume, reporter } = this;
    const onShortened = (reason: string) => {
      this.#shortened = reason;
    };
    const reading = { ...options, from: resume?.position, firstId: this.#firstId, onShortened };
    const isLive = findListingUrl(options.sources) !== undefined;
    // Files may be older than what is here, and replace it all the same.
    const begin = async () => (isLive && !options.isDry ? readMoment(this.pool) : undefined);
    const batches = readRows(reading, this.#bases, reporter);
    for await (const { item: batch, begun } of readAhead(batches, begin)) {
      await (options.isDry ? this.#compare(batch) : this.#save(batch, begun));
      this.#countBatch(batch);
      if (batch.next) this.#writeCheckpoint(batch.next);
      if (this.#unapplied >= applyEvery) {
        await applyPendingChanges(this.pool);
        this.#unapplied = 0;
      }
      reporter.progress(this.#totals.read, this.#count);
    }
  }

  async #compare({ rows }: CheckedBatch): Promise<void> {
    const compared = await compareOutfits(this.pool, rows, this.#missing, this.options.replace);
    for (const key of ['created', 'updated', 'unchanged'] as const) {
      this.#totals[key] += compared[key].length;
      this.#first[key].push(...compared[key].slice(0, maxFirst - this.#first[key].length));
    }
  }

  async #save({ rows }: CheckedBatch, moment: string | undefined): Promise<void> {
    const saved = await saveOutfits(this.pool, rows, moment);
    // Writers wait for it. The first batch may follow one of a run that was killed before this step.
    if (saved.created > 0 || !this.#areSequencesRaised) await raiseSequences(this.pool);
    this.#areSequencesRaised = true;
    this.#savedId = rows.at(-1)?.id ?? this.#savedId;
    for (const key of ['created', 'updated', 'unchanged'] as const) this.#totals[key] += saved[key];
    this.#unapplied += saved.created + saved.updated;
  }

  #countBatch(batch: CheckedBatch): void {
    for (const id of batch.ids) this.#ids.add(id);
    this.#unnamed += batch.read - batch.ids.length;
    for (const { id, private: isPrivate } of batch.rows) {
      const recent = this.#recent[isPrivate ? 'private' : 'public'];
      if (recent.unshift(id) > maxRecent) recent.pop();
    }
    for (const record of batch.kept) {
      countUnkept(this.#unkept, record);
      countOutside(this.#outside, record);
    }
    this.#bases = batch.bases;
    this.#count = batch.count;
    this.#firstCount ??= batch.firstCount ?? batch.count;
    this.#totals.read += batch.read;
    this.#totals.broken += batch.broken;
  }

  #writeCheckpoint(position: Position): void {
    this.options.checkpoint?.write({
      position,
      bases: this.#bases,
      totals: this.#totals,
      unkept: [...this.#unkept],
      outside: [...this.#outside],
      savedId: this.#savedId,
    });
  }

  async #finish(removed: Removed | undefined): Promise<void> {
    const { pool, options } = this;
    const { created, updated } = this.#totals;
    if (!this.#isInterrupted) options.checkpoint?.remove();
    if (created + updated === 0 && !removed) return;
    await applyPendingChanges(pool);
    // The embedded database has no autovacuum: without ANALYZE, plans are those of empty tables.
    await pool.query('ANALYZE users, outfits');
  }

  get #isWhole(): boolean {
    return !this.#isInterrupted && !this.resume;
  }

  async #judge(): Promise<Omit<ImportOutcome, 'already' | 'seconds' | 'removed'>> {
    const { pool, options } = this;
    const came = this.#ids.size;
    const count = this.#count ?? 0;
    const isComplete = this.#isWhole && this.#unnamed === 0;
    const partial = reasonAgainstRemoval({
      ending:
        (this.#isInterrupted && 'the import was interrupted') ||
        (this.resume && 'the import went on where another one had ended') ||
        this.#shortened ||
        (this.#unnamed > 0 && 'some records have no valid id') ||
        // One record must not stop it for good, but a source of another form has none that is valid.
        (2 * this.#totals.broken > this.#totals.read && 'most records were broken'),
      broken: 0,
      // The smaller count: a record that was created meanwhile is on a page that was read before.
      count: Math.min(this.#firstCount ?? 0, count),
      came,
    });
    return {
      totals: this.#totals,
      bases: this.#bases,
      unkept: this.#unkept,
      outside: this.#outside,
      interrupted: this.#isInterrupted,
      notInSource: this.#isWhole
        ? await findNotInSource(
            pool,
            this.#ids,
            options.replace ? undefined : await readFirstId(pool),
          )
        : undefined,
      lacking: isComplete ? Math.max(0, count - came) : undefined,
      isShortened: this.#shortened !== undefined,
      came,
      recent: this.#recent,
      partial,
    };
  }
}

/** Reads the next item while the current one is processed. @param begin called before an item is read */
async function* readAhead<Item, Begun>(
  items: AsyncGenerator<Item>,
  begin: () => Promise<Begun>,
): AsyncGenerator<{ readonly item: Item; readonly begun: Begun }> {
  const read = async () => {
    const begun = await begin();
    return { begun, result: await items.next() };
  };
  let coming = read();
  for (let current = await coming; !current.result.done; current = await coming) {
    coming = read();
    // A rejection counts when it is awaited, after the current item.
    coming.catch(() => {});
    yield { item: current.result.value, begun: current.begun };
  }
}

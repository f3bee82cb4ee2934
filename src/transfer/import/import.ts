// Imports outfits in batches; from a live listing resumed from the checkpoint of an interrupted run.
import type { Config } from '../../config/config.ts';
import type { Database } from '../../database/database.ts';
import { IdSet } from '../../old-listing/id-set.ts';
import { readProperty } from '../../old-listing/page.ts';
import type { Recent } from '../../old-listing/record-lookup.ts';
import { applyPendingChanges } from '../../outfits/counts.ts';
import type { OutfitRow } from '../../outfits/row.ts';
import {
  type Removed,
  raiseSequences,
  readFirstId,
  readMoment,
  removeOlder,
  reserveIds,
  saveOutfits,
} from '../../outfits/writes/bulk.ts';
import { formatNumber, listFirst, type Reporter } from '../reporter.ts';
import { type Bases, createCheck, findBases } from '../source/record.ts';
import { findListingUrl, type SourceBatch } from '../source/source.ts';
import type { Checkpoint, Progress } from './checkpoint.ts';
import { type Compared, compareOutfits } from './dry-run.ts';
import { FieldCounts } from './fields.ts';
import { findNotInSource, type Pruner } from './prune.ts';
import { Run, type RunOptions, type RunOutcome } from './run.ts';

/** Pending changes are added to the counts after this many outfits: see docs/counting.md. */
const applyEvery = 20_000;

/** Records of each kind that a dry run names. */
const maxFirst = 3;

/** Outfits of each kind that are remembered as the last that came. */
const maxRecent = 3;

export interface ImportOptions extends RunOptions {
  readonly config: Pick<Config, 'firstId' | 'mediaUrl' | 'videoUrl'>;
  /** Undefined for files and dry runs, which are not resumed. */
  readonly checkpoint: Checkpoint | undefined;
  /** Whether another run follows, as with --follow. */
  readonly isRepeated: boolean;
  readonly pruner: Pruner | undefined;
}

/** @throws SourceError when the source fails; the batches before are saved */
export async function importOutfits(
  database: Pick<Database, 'pool' | 'prisma'>,
  options: ImportOptions,
  reporter: Reporter,
): Promise<RunOutcome> {
  const { checkpoint, isRepeated } = options;
  const found = checkpoint?.read();
  // Without the last saved outfit it is another database.
  const isSaved = async (id: number) =>
    (await database.prisma.outfit.findUnique({ where: { id }, select: { id: true } })) !== null;
  const resume = found?.savedId !== undefined && (await isSaved(found.savedId)) ? found : undefined;
  try {
    return await new ImportRun(database.pool, { ...options, resume }, reporter).run();
  } catch (error) {
    const reached = checkpoint?.read();
    if (!isRepeated) {
      if (reached)
        reporter.note('What was read before is saved; the same command continues from there.');
    } else if (resume && reached?.totals.read === resume.totals.read) {
      // The next run begins anew: one page that always fails must not block the pages before it.
      checkpoint?.remove();
    }
    throw error;
  }
}

interface ResumedOptions extends ImportOptions {
  readonly resume: Progress | undefined;
}

/** One run over a source. Its state is what the checkpoint keeps. */
class ImportRun extends Run<ResumedOptions> {
  readonly #fields: FieldCounts;
  readonly #ids = new IdSet();
  readonly #recent: Record<keyof Recent, number[]> = { public: [], private: [] };
  /** Records without a valid id: they may be any. */
  #unnamed = 0;
  /** Detected in the first records. */
  #bases: Bases;
  #savedId: number | undefined;
  #areSequencesRaised = false;
  #unapplied = 0;
  /** In a dry run: ids that the database does not have, and the first records by what would be done with them. */
  readonly #missing = new IdSet();
  readonly #first: Compared = { created: [], updated: [], unchanged: [] };

  constructor(...args: ConstructorParameters<typeof Run<ResumedOptions>>) {
    super(...args);
    const { resume } = this.options;
    Object.assign(this.totals, resume?.totals);
    this.#fields = new FieldCounts(resume?.unkept, resume?.outside);
    this.#bases = resume?.bases ?? {};
    this.#savedId = resume?.savedId;
    if (this.options.checkpoint) {
      this.next = 'The same command continues from there; --restart starts again.';
    }
  }

  async run(): Promise<RunOutcome> {
    const { pool, options } = this;
    const { isDry, replace, pruner, resume, config } = options;
    // With --replace, an export that has reserved ids may be restored.
    if (!replace && !isDry && config.firstId !== undefined) await reserveIds(pool, config.firstId);
    const moment = await readMoment(pool);
    await this.#saveBatches(
      replace ? config.firstId : ((await readFirstId(pool)) ?? config.firstId),
    );
    const came = this.#ids.size;
    const partial = this.#whyPartial();
    const isComplete = !this.isInterrupted && !resume;
    const keptFrom = replace ? undefined : await readFirstId(pool);
    const notInSource = isComplete ? await findNotInSource(pool, this.#ids, keptFrom) : undefined;
    const removed =
      replace && !isDry && notInSource && partial === undefined
        ? await removeOlder(pool, moment, notInSource, config.firstId)
        : undefined;
    if (!isDry) await this.#finish(removed);
    const crawl = { came, notInSource, partial, bases: this.#bases, recent: this.#recent };
    const pruned = this.isInterrupted ? undefined : await pruner?.prune(crawl);
    const isCounted = isComplete && this.#unnamed === 0;
    const lacking = isCounted ? (this.count ?? 0) - came : 0;
    const isRefused = pruner?.hasRefused || (replace && partial !== undefined);
    // Files that are not whole remove nothing; of a live listing, each outfit is asked for by itself.
    const removable = partial === undefined || this.#isLive ? notInSource : undefined;
    const lines = [
      ...this.#describe(removable, pruned),
      ...this.#describeRemoval(partial, removable, removed, pruned !== undefined),
    ];
    const outcome = this.conclude('outfits', lines, lacking, isRefused);
    return { ...outcome, isResumed: resume !== undefined };
  }

  /** @param firstId ids from this one on are refused */
  async #saveBatches(firstId: number | undefined): Promise<void> {
    const { isDry, resume } = this.options;
    // Files may be older than what is here, and replace it all the same.
    const isDated = this.#isLive && !isDry;
    const begin = async () => (isDated ? readMoment(this.pool) : undefined);
    await this.readAll(resume?.page, begin, async (batch, moment) => {
      const rows = this.#checkBatch(batch, firstId);
      await (isDry ? this.#compare(rows) : this.#save(rows, moment));
      if (batch.next) this.#writeCheckpoint(batch.next);
      if (this.#unapplied < applyEvery) return;
      await applyPendingChanges(this.pool);
      this.#unapplied = 0;
    });
  }

  #checkBatch(batch: SourceBatch, firstId: number | undefined): OutfitRow[] {
    const values = batch.parts.flatMap((part) => ('value' in part ? [part.value] : []));
    this.#bases = findBases(this.#bases, values);
    const ids = values.map(readId).filter((id) => id !== undefined);
    for (const id of ids) this.#ids.add(id);
    this.#unnamed += batch.parts.length - ids.length;
    const valid = this.check(batch, createCheck(this.#bases, firstId), nameOf);
    return valid.map(({ row, value }) => {
      const recent = this.#recent[row.private ? 'private' : 'public'];
      if (recent.unshift(row.id) > maxRecent) recent.pop();
      this.#fields.add(value);
      return row;
    });
  }

  async #compare(rows: readonly OutfitRow[]): Promise<void> {
    const compared = await compareOutfits(this.pool, rows, this.#missing, this.options.replace);
    for (const key of ['created', 'updated', 'unchanged'] as const) {
      this.totals[key] += compared[key].length;
      this.#first[key].push(...compared[key].slice(0, maxFirst - this.#first[key].length));
    }
  }

  async #save(rows: readonly OutfitRow[], moment: string | undefined): Promise<void> {
    const saved = await saveOutfits(this.pool, rows, moment);
    // Writers wait for it. The first batch may follow one of a run that was killed before this step.
    if (saved.created > 0 || !this.#areSequencesRaised) await raiseSequences(this.pool);
    this.#areSequencesRaised = true;
    this.#savedId = rows.at(-1)?.id ?? this.#savedId;
    this.add(saved);
    this.#unapplied += saved.created + saved.updated;
  }

  #writeCheckpoint(page: string): void {
    this.options.checkpoint?.write({
      page,
      bases: this.#bases,
      totals: this.totals,
      ...this.#fields.entries,
      savedId: this.#savedId,
    });
  }

  async #finish(removed: Removed | undefined): Promise<void> {
    const { pool, options } = this;
    const { created, updated } = this.totals;
    if (!this.isInterrupted) options.checkpoint?.remove();
    if (created + updated === 0 && !removed) return;
    await applyPendingChanges(pool);
    // The embedded database has no autovacuum: without ANALYZE, plans are those of empty tables.
    await pool.query('ANALYZE users, outfits');
  }

  get #isLive(): boolean {
    return findListingUrl(this.options.sources) !== undefined;
  }

  #whyPartial(): string | undefined {
    return this.reasonAgainstRemoval(
      (this.isInterrupted && 'the import was interrupted') ||
        (this.options.resume && 'the import continued where another one had stopped') ||
        this.shortened ||
        (this.#unnamed > 0 && 'some records have no valid id') ||
        // One record must not stop it for good, but a source of another form has none that is valid.
        (2 * this.totals.broken > this.totals.read && 'most records were broken'),
      // The smaller count: a record that was created meanwhile is on a page that was read before.
      Math.min(this.firstCount ?? 0, this.count ?? 0),
      this.#ids.size,
    );
  }

  get #remover(): string {
    return this.#isLive ? '--prune' : '--replace';
  }

  /** @param pruned undefined without --prune */
  #describe(notInSource: IdSet | undefined, pruned: number | undefined): string[] {
    const { created, updated, unchanged, broken } = this.totals;
    const { isDry, resume } = this.options;
    const already = resume?.totals.read ?? 0;
    const show = (number: number, what: string, names?: Iterable<string | number>) => {
      const isNamed = isDry && names && number > 0;
      return `${formatNumber(number)} ${what}${isNamed ? ` (${listFirst(names, number, maxFirst)})` : ''}`;
    };
    const kept = [
      show(created, isDry ? 'would be created' : 'created', this.#first.created),
      show(updated, 'updated', this.#first.updated),
      show(unchanged, 'unchanged', this.#first.unchanged),
      ...(isDry && notInSource
        ? [show(notInSource.size, `removed by ${this.#remover}`, notInSource)]
        : []),
      ...(pruned === undefined ? [] : [show(pruned, 'removed')]),
      show(broken, 'broken'),
    ];
    return [
      ...this.summarize('records', kept, already),
      ...this.#describeBases(),
      ...this.#fields.describe(),
    ];
  }

  #describeBases(): string[] {
    const { mediaUrl, videoUrl } = this.options.config;
    const { media, video } = this.#bases;
    // A source may have addresses without a host.
    const absolute = (base: string) => (/^https?:/.test(base) ? base : `https://<host>${base}`);
    const settings = [
      media !== undefined && media !== mediaUrl && `MEDIA_URL=${absolute(media)}`,
      video !== undefined && video !== videoUrl && `VIDEO_URL=${absolute(video)}`,
    ].filter(Boolean);
    if (settings.length === 0) return [];
    return [`To serve the URLs of the source, set ${settings.join(' and ')}.`];
  }

  #describeRemoval(
    partial: string | undefined,
    notInSource: IdSet | undefined,
    removed: Removed | undefined,
    isPruned: boolean,
  ): string[] {
    const { replace, isDry } = this.options;
    if (removed) {
      const { outfits, users, likes } = removed;
      return [
        `Removed, because the source does not have them: ${formatNumber(outfits)} outfits, ${formatNumber(users)} users, ${formatNumber(likes)} likes.`,
      ];
    }
    if (replace && partial !== undefined) {
      return [`Nothing ${isDry ? 'would be' : 'is'} removed, because ${partial}.`];
    }
    if (!notInSource?.size || isPruned || isDry) return [];
    return [
      `The database holds ${formatNumber(notInSource.size)} more outfits that are not in this source; ${this.#remover} removes them.`,
    ];
  }
}

function readId(record: unknown): number | undefined {
  const id = readProperty(record, 'id');
  return typeof id === 'number' && (id | 0) === id ? id : undefined;
}

function nameOf(record: unknown): string {
  const id = readId(record);
  return id === undefined ? 'Record without a valid id' : `Outfit ${id}`;
}

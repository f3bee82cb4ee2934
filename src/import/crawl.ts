// One import from its checkpoint on, and how long it took.
import type { Database } from '../database/database.ts';
import type { Checkpoint, Progress } from './checkpoint.ts';
import { type ImportOptions, type ImportOutcome, importOutfits } from './import.ts';
import { formatNumber, type Output, type Reporter } from './reporter.ts';

/** An import as it went. */
export interface Crawl extends ImportOutcome {
  readonly seconds: number;
  /** Records that an earlier run had read. */
  readonly already: number;
}

export interface CrawlOptions extends Omit<ImportOptions, 'resume'> {
  /** Whether another crawl follows whatever comes of this one. */
  readonly isRepeated: boolean;
  readonly stderr: Output;
  readonly startReport: (already: number) => Reporter;
}

/**
 * Reads a source from where an interrupted import stopped, or from its beginning.
 * @throws what `importOutfits` throws; what came before is saved
 */
export async function crawl(
  database: Pick<Database, 'pool'>,
  { isRepeated, stderr, startReport, ...options }: CrawlOptions,
): Promise<Crawl> {
  const { checkpoint } = options;
  const resume = await findProgress(checkpoint, database);
  const already = resume?.totals.read ?? 0;
  if (resume) {
    stderr.write(
      `Going on behind the ${formatNumber(already)} records that an interrupted import has read (--restart begins anew).\n`,
    );
  }
  const reporter = startReport(already);
  const start = performance.now();
  try {
    const outcome = await importOutfits(database.pool, { ...options, resume }, reporter);
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

/** What to go on from, unless the database is one that does not hold what was saved. */
async function findProgress(
  checkpoint: Checkpoint | undefined,
  { pool }: Pick<Database, 'pool'>,
): Promise<Progress | undefined> {
  const progress = checkpoint?.read();
  if (progress?.savedId === undefined) return undefined;
  const { rowCount } = await pool.query('SELECT FROM outfits WHERE id = $1', [progress.savedId]);
  return rowCount === 1 ? progress : undefined;
}

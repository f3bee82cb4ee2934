import '../node-version.ts';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type Config, ConfigError, readConfig } from '../config.ts';
import type { Database } from '../database/database.ts';
import { type Checkpoint, openCheckpoint, type Progress } from '../import/checkpoint.ts';
import { fingerprintFiles } from '../import/files.ts';
import { type ImportOutcome, importOutfits } from '../import/import.ts';
import { createReporter, formatNumber } from '../import/reporter.ts';
import { findListingUrl } from '../import/source.ts';
import { describeError, openPreparedDatabase } from './cli.ts';

const help = `Usage: npm run import -- SOURCE [options]

Reads an existing listing into the database that DATABASE_URL or DATA_DIR names.

SOURCE is one of
  https://host/api/outfits/   a live listing, followed by its next links to the end
  FILE or FOLDER ...          saved pages (.json), or records one per line (.ndjson, .jsonl),
                              each also as .gz; folders are read in the order of their names
  -                           standard input, in one of these formats

Options
  --replace        empty the database first
  --restart        begin anew where an interrupted import would go on
  --media-url URL  base of the image URLs of the source (default: what most records have)
  --video-url URL  base of the video URLs of the source (default: what most records have)

Exit code: 0 all is saved, 1 some records broke the contract and were left out, 2 the import could
not be done, 130 it was interrupted (the same command goes on from there).
`;

try {
  process.exitCode = await main();
} catch (error) {
  process.stderr.write(`${describeError(error)}\n`);
  process.exitCode = 2;
}
// A page that is still being fetched, or a standard input that stays open, would keep it running.
process.exit();

async function main(): Promise<number> {
  const { sources, values } = readArguments();
  if (values.help) {
    process.stdout.write(help);
    return 0;
  }
  if (sources.length === 0) throw new ConfigError('SOURCE is missing: see --help.');
  const config = readConfig(process.env);
  const { replace, restart } = values;
  const bases = {
    media: readBase('--media-url', values['media-url']),
    video: readBase('--video-url', values['video-url']),
  };
  const hasFiles = !sources.includes('-') && findListingUrl(sources) === undefined;
  const files = hasFiles ? await fingerprintFiles(sources) : '';

  const database = await openPreparedDatabase(config);
  try {
    const run = JSON.stringify({ database: database.description, replace, bases, files });
    const checkpoint = sources.includes('-')
      ? undefined
      : openCheckpoint(join(config.dataDir, '.import'), sources.join('\n'), run);
    if (restart) checkpoint?.remove();
    const resume = await findProgress(checkpoint, database);
    const outcome = await runImport(database, { sources, bases, replace, resume, checkpoint });
    describeOutcome(outcome, config, checkpoint !== undefined);
    if (outcome.interrupted) return 130;
    return outcome.totals.broken > 0 ? 1 : 0;
  } finally {
    await database.close();
  }
}

function readArguments() {
  try {
    const { positionals, values } = parseArgs({
      allowPositionals: true,
      options: {
        help: { type: 'boolean', short: 'h', default: false },
        replace: { type: 'boolean', default: false },
        restart: { type: 'boolean', default: false },
        'media-url': { type: 'string' },
        'video-url': { type: 'string' },
      },
    });
    return { sources: positionals, values };
  } catch (error) {
    throw new ConfigError(error instanceof Error ? error.message : String(error));
  }
}

function readBase(option: string, value: string | undefined): string | undefined {
  if (value === undefined) return undefined;
  if (/^https?:\/\/[^\s?#]+$/.test(value)) return value.replace(/\/+$/, '');
  throw new ConfigError(
    `${option} is ${JSON.stringify(value)}, but it may be an absolute http or https URL without query.`,
  );
}

/** What to go on from, unless the database is one that does not hold what was saved. */
async function findProgress(
  checkpoint: Checkpoint | undefined,
  { pool }: Database,
): Promise<Progress | undefined> {
  const progress = checkpoint?.read();
  if (progress?.savedId === undefined) return undefined;
  const { rowCount } = await pool.query('SELECT FROM outfits WHERE id = $1', [progress.savedId]);
  return rowCount === 1 ? progress : undefined;
}

type RunOptions = Omit<Parameters<typeof importOutfits>[1], 'signal' | 'stdin'>;

async function runImport({ pool }: Database, options: RunOptions): Promise<ImportOutcome & Timing> {
  const { resume, checkpoint } = options;
  const already = resume?.totals.read ?? 0;
  const reporter = createReporter(process.stderr, already);
  if (resume) {
    reporter.note(
      `Going on behind the ${formatNumber(already)} records that an interrupted import has read (--restart begins anew).`,
    );
  }
  // Once: a second signal ends the process at once.
  const stop = new AbortController();
  process.once('SIGINT', () => stop.abort());
  process.once('SIGTERM', () => stop.abort());
  const start = performance.now();
  try {
    const { stdin } = process;
    const { signal } = stop;
    const outcome = await importOutfits(pool, { ...options, stdin, signal }, reporter);
    return { ...outcome, already, seconds: (performance.now() - start) / 1000 };
  } catch (error) {
    if (checkpoint?.read())
      reporter.note('What came before is saved; the same command goes on from there.');
    throw error;
  } finally {
    reporter.finish();
  }
}

interface Timing {
  readonly seconds: number;
  /** Records that an earlier run had read. */
  readonly already: number;
}

function describeOutcome(
  outcome: ImportOutcome & Timing,
  config: Config,
  canResume: boolean,
): void {
  const { totals, bases, seconds, already, foreign, lacking, interrupted } = outcome;
  const print = (line: string) => process.stdout.write(`${line}\n`);
  const [read, created, updated, unchanged, broken] = [
    totals.read,
    totals.created,
    totals.updated,
    totals.unchanged,
    totals.broken,
  ].map(formatNumber);
  const rate = formatNumber((totals.read - already) / seconds);
  print(
    `${read} records read in ${seconds.toFixed(1)} s (${rate} per second): ${created} created, ${updated} updated, ${unchanged} unchanged, ${broken} broken.`,
  );
  if (already > 0) print(`${formatNumber(already)} of them were read by the interrupted import.`);
  if (interrupted) {
    const next = canResume ? ' The same command goes on from there; --restart begins anew.' : '';
    print(`Interrupted; what was read is saved.${next}`);
  }
  const settings = [
    bases.media !== undefined && bases.media !== config.mediaUrl && `MEDIA_URL=${bases.media}`,
    bases.video !== undefined && bases.video !== config.videoUrl && `VIDEO_URL=${bases.video}`,
  ].filter((setting) => setting !== false);
  if (settings.length > 0) print(`To serve the URLs of the source, set ${settings.join(' and ')}.`);
  if (foreign) {
    print(
      `The database holds ${formatNumber(foreign)} more outfits that are not in this source; --replace removes them.`,
    );
  }
  if (lacking) {
    print(
      `The listing counts ${formatNumber(lacking)} more outfits than came: it changed while it was read, so import it once more.`,
    );
  }
}

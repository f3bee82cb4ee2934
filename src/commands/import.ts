// outfit-gateway import: reads an existing listing into the database, once or again and again.
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Command, Option } from 'commander';
import { type Config, ConfigError, legacyHostFor, readConfig } from '../config/config.ts';
import { baseUrl, duration, wholeNumber } from '../config/values.ts';
import type { Database } from '../database/database.ts';
import { httpErrorFor } from '../database/errors.ts';
import { createFetchPage, parseHeaders } from '../old-listing/fetch-page.ts';
import { SourceError } from '../old-listing/page.ts';
import { type Recent, RecordLookup } from '../old-listing/record-lookup.ts';
import { describeError } from '../process/exit.ts';
import { Checkpoint } from '../transfer/import/checkpoint.ts';
import { type ImportOptions, importOutfits } from '../transfer/import/import.ts';
import { importPeople, type PeopleOutcome } from '../transfer/import/likes-and-users.ts';
import { describeOutcome } from '../transfer/import/outcome.ts';
import { Pruner } from '../transfer/import/prune.ts';
import { Reporter, RoundReporter } from '../transfer/reporter.ts';
import { fingerprintFiles } from '../transfer/source/files.ts';
import { findListingUrl } from '../transfer/source/source.ts';
import type { Io } from './command.ts';
import { withDatabase } from './database.ts';
import { as, asList, createLine, withSettings } from './options/command-line.ts';

const live = 'For a live listing:';

export const line = () =>
  withSettings(
    addLiveOptions(
      createLine('import')
        .description(
          'Reads an existing listing into the database that DATABASE_URL or DATA_DIR names.',
        )
        .argument(
          '<SOURCE...>',
          `https://host/api/outfits/: a live listing, followed by its next links to the end
FILE or FOLDER: saved pages (.json), or records one per line (.ndjson, .jsonl), each also as .gz; folders are read in the order of their names
-: standard input, in one of these formats`,
        )
        .addOption(
          new Option(
            '--dry-run',
            'save nothing: say what would be created, updated, unchanged, removed, and what is broken, with the first records of each',
          ).conflicts(['follow', 'prune', 'restart']),
        )
        .addOption(
          new Option(
            '--likes',
            'SOURCE has likes, such as {"outfit": 7, "user": 5}: who likes what. Import outfits and users before',
          ).conflicts(['users', 'prune', 'restart']),
        )
        .addOption(
          new Option(
            '--users',
            'SOURCE has users, as outfits have them: names and avatars, and users without outfits',
          ).conflicts(['prune', 'restart', 'replace']),
        )
        .addOption(
          new Option(
            '--replace',
            'at the end, remove what the source does not have, users and likes too; with --likes: likes of earlier imports. Nothing is removed when the source is empty, or was not read completely',
          ).conflicts(['follow', 'prune']),
        )
        .option('--restart', 'begin anew where an interrupted import would go on')
        .option(
          "--header <'Name: value'>",
          "sent to the host of a live listing with each request, such as 'Authorization: Token abc'; may be given more than once",
          asList(),
        )
        .option(
          '--media-url <URL>',
          'base of the image URLs of the source (default: what most records have)',
          as(baseUrl),
        )
        .option(
          '--video-url <URL>',
          'base of the video URLs of the source (default: what most records have)',
          as(baseUrl),
        ),
    ),
  ).addHelpText('after', details);

function addLiveOptions(line: Command): Command {
  return line
    .optionsGroup(live)
    .option('--pause <DURATION>', 'wait so long between two pages', as(duration('0', '10m')))
    .option(
      '--follow <DURATION>',
      'read it again and again, with so long between the end and the next start; prints what changed in each round, and ends on Ctrl-C. An unavailable source is tried again in the next round',
      as(duration('1s', '7d')),
    )
    .option(
      '--prune',
      'name the outfits that did not come, and that the source answers with 404 by their ids; where it does not answer by ids, those that two whole crawls in a row did not have: without --follow, the second one is made at once when there is something to prune, and another one after a crawl that went on where an interrupted one had ended',
    )
    .option('--yes', 'with --prune: remove them, after they were named')
    .option(
      '--max-removed <NUMBER>',
      'with --yes: remove nothing when it would be more (default: half of what is there)',
      as(wholeNumber(0, 2_147_483_647)),
    );
}

const details = `
A crawl is whole if it was not interrupted or resumed, no page was lost, each record has an id, and it
had as many outfits as the listing counts. What is at FIRST_ID or above is never pruned, and
refused from a source; the database keeps the first FIRST_ID that it is told, until --replace with
another one. Users stay, also those without outfits.

Exit code: 0 all is saved, 1 some records broke the contract and were left out, the listing counts
more than came, numbers of likes and their rows disagree, or --replace or --prune --yes removed
nothing because the source was empty or not read completely or it would have been too much, 2 the
import could not be done, 130 it was interrupted (the same command goes on from there).`;

export const failureCode = 2;

interface Values {
  readonly likes?: boolean;
  readonly users?: boolean;
  readonly dryRun?: boolean;
  readonly replace?: boolean;
  readonly restart?: boolean;
  readonly header?: readonly string[];
  readonly mediaUrl?: string;
  readonly videoUrl?: string;
  /** Milliseconds between two pages. */
  readonly pause?: number;
  /** Seconds between two crawls; undefined: one crawl. */
  readonly follow?: number;
  readonly prune?: boolean;
  readonly yes?: boolean;
  /** Maximum of outfits that a crawl removes; undefined: half of all. */
  readonly maxRemoved?: number;
}

/** @throws ConfigError for options that do not go together */
function checkValues(values: Values, isLive: boolean): void {
  const { header, pause, follow, prune, yes, maxRemoved } = values;
  const ofLive = { '--header': header, '--pause': pause, '--follow': follow, '--prune': prune };
  const [first] = Object.entries(ofLive).find(([, value]) => value !== undefined) ?? [];
  if (first && !isLive) throw new ConfigError(`${first} needs a live listing as SOURCE.`);
  if (yes && !prune) throw new ConfigError('--yes is about what --prune removes: add --prune.');
  if (maxRemoved !== undefined && !yes) throw new ConfigError('--max-removed needs --yes.');
}

export async function run(io: Io, values: Values, sources: readonly string[]): Promise<number> {
  const config = readConfig(io.env);
  const { replace = false, restart, pause } = values;
  const listing = findListingUrl(sources);
  const isLive = listing !== undefined;
  checkValues(values, isLive);
  const headers = parseHeaders(values.header ?? [], isLive ? legacyHostFor(listing, config) : {});
  const bases = { media: values.mediaUrl, video: values.videoUrl };
  const files = isLive || sources.includes('-') ? '' : await fingerprintFiles(sources);
  return withDatabase(config, async (database) => {
    const { stdin, stdout, stderr, signal } = io;
    const { firstId } = config;
    const isDry = values.dryRun ?? false;
    const reading = { sources, stdin, headers, bases, replace, isDry, firstId, pause, signal };
    if (values.likes || values.users) {
      const kind = values.likes ? 'likes' : 'users';
      const rounds = new RoundReporter(stdout, stderr);
      const importOnce = (reporter: Reporter) =>
        importPeople(kind, database.pool, reading, reporter).finally(() => reporter.finish());
      const show = ({ lines }: PeopleOutcome, prefix = '') =>
        lines.forEach((text, index) => void rounds.printIfNew(index ? text : prefix + text));
      if (values.follow !== undefined && !isDry) {
        return follow(values.follow, database, io, async () => {
          const outcome = await importOnce(rounds.startRound(0));
          show(outcome, `${new Date().toISOString()} `);
          return outcome.code === 130;
        });
      }
      const outcome = await importOnce(new Reporter(stderr));
      show(outcome);
      return outcome.code;
    }
    // With --follow another round always comes: a resumed crawl without progress begins anew.
    const isRepeated = values.follow !== undefined;
    const same = { database: database.description, replace, bases, files, follows: isRepeated };
    const checkpoint =
      isDry || sources.includes('-')
        ? undefined
        : new Checkpoint(join(config.dataDir, '.import'), sources.join('\n'), JSON.stringify(same));
    if (restart) checkpoint?.remove();
    const importing = { ...reading, checkpoint, isRepeated, stderr };
    const rounds = new ImportRounds({ database, config, importing, values, isLive, io });
    if (values.follow === undefined) return rounds.once();
    return follow(values.follow, database, io, () => rounds.round());
  });
}

/** Runs rounds until the signal. @param interval milliseconds between the end of a round and the next one */
async function follow(
  interval: number,
  database: Database,
  { signal, stdout, stderr }: Io,
  round: () => Promise<boolean>,
): Promise<number> {
  // A frozen server gives no error: without the monitor, a round would wait for its answer for ever.
  await database.monitor(() => {});
  const log = (sentence: string) => stderr.write(`${new Date().toISOString()} ${sentence}\n`);
  let isFailing = false;
  let wasInterrupted = false;
  while (!signal.aborted) {
    try {
      wasInterrupted = await round();
      if (isFailing && !signal.aborted) log('It goes on.');
      isFailing = false;
    } catch (error) {
      if (signal.aborted) break;
      if (!(error instanceof SourceError) && httpErrorFor(error) === undefined) throw error;
      if (!isFailing) log(`${describeError(error)} It is tried again every ${interval / 1000} s.`);
      isFailing = true;
    }
    // Rejects at the signal, which the loop checks.
    await sleep(interval, undefined, { signal }).catch(() => {});
  }
  if (!wasInterrupted) stdout.write('Interrupted; what was read is saved.\n');
  return 130;
}

const removerOf = (isLive: boolean): '--prune' | '--replace' => (isLive ? '--prune' : '--replace');

interface RoundsOptions {
  readonly database: Database;
  readonly config: Config;
  readonly importing: Omit<ImportOptions, 'startReport'>;
  readonly values: Values;
  readonly isLive: boolean;
  readonly io: Io;
}

/** Imports a source once, or round by round with --follow. `once` gives the exit code. */
class ImportRounds {
  readonly #reporter: RoundReporter;
  readonly #pruner: Pruner | undefined;
  readonly #removes: boolean;
  #code = 0;
  #isResumed = false;

  constructor(private readonly options: RoundsOptions) {
    const { values, database, io } = options;
    const { yes: confirmed = false, maxRemoved } = values;
    this.#reporter = new RoundReporter(io.stdout, io.stderr);
    const pruning = { pool: database.pool, confirmed, maxRemoved, signal: io.signal };
    const print = (line: string) => this.#reporter.printIfNew(line);
    const { sources, headers, pause, signal } = options.importing;
    const [listing = ''] = sources;
    const lookUp = (ids: Iterable<number>, recent: Recent) => {
      const fetchPage = createFetchPage({ listing, headers });
      const notify = (text: string) => io.stderr.write(`${text}\n`);
      return new RecordLookup({ listing, fetchPage, signal, pause, notify }).find(ids, recent);
    };
    this.#pruner = values.prune ? new Pruner({ ...pruning, print, lookUp }) : undefined;
    this.#removes = Boolean(values.prune || values.replace);
  }

  async once(): Promise<number> {
    const { isLive, io } = this.options;
    const pruner = this.#pruner;
    await this.round();
    if (this.#isResumed && (isLive || this.#removes) && !io.signal.aborted) {
      const stale = 'What changed since in the part that was read before did not come';
      this.#reporter.printIfNew(
        this.#removes ? `${stale}, so all is read once more.` : `${stale}: import once more.`,
      );
      if (this.#removes) await this.round();
    }
    if (pruner?.isWaiting && !io.signal.aborted) await this.round();
    return pruner && io.signal.aborted ? 130 : this.#code;
  }

  /** @returns whether it was interrupted, and said so */
  async round(): Promise<boolean> {
    const { database, config, importing, isLive, io } = this.options;
    const { isRepeated, checkpoint } = importing;
    const startReport = (already: number) =>
      isRepeated ? this.#reporter.startRound(already) : new Reporter(io.stderr, already);
    const outcome = await importOutfits(database, { ...importing, startReport });
    this.#isResumed = outcome.already > 0;
    const pruned = outcome.interrupted ? undefined : await this.#pruner?.prune(outcome);
    const canResume = checkpoint !== undefined;
    const { replace } = importing;
    const described = { config, canResume, pruned, replace, remover: removerOf(isLive) };
    const [first, ...rest] = describeOutcome(outcome, described);
    this.#reporter.printIfNew(`${isRepeated ? `${new Date().toISOString()} ` : ''}${first}`);
    for (const line of rest) this.#reporter.printIfNew(line);
    const { totals, lacking, isShortened, partial } = outcome;
    const isRefused = this.#pruner?.hasRefused || (replace && partial !== undefined);
    this.#code = totals.broken > 0 || lacking || isShortened || isRefused ? 1 : 0;
    if (outcome.interrupted) this.#code = 130;
    return outcome.interrupted;
  }
}

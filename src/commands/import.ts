// outfit-gateway import: reads an existing listing into the database, once or again and again.
import { join } from 'node:path';
import { type Config, ConfigError, readConfig } from '../config.ts';
import type { Database } from '../database/database.ts';
import { httpErrorFor } from '../database/errors.ts';
import { SourceError } from '../import/batch.ts';
import { openCheckpoint } from '../import/checkpoint.ts';
import { crawl } from '../import/crawl.ts';
import { fingerprintFiles } from '../import/files.ts';
import { follow } from '../import/follow.ts';
import type { ImportOptions } from '../import/import.ts';
import { createNews } from '../import/news.ts';
import { describeOutcome } from '../import/outcome.ts';
import { createPruner } from '../import/prune.ts';
import { createReporter } from '../import/reporter.ts';
import { findListingUrl, readHeaders } from '../import/source.ts';
import { readArgumentsAndSettings, settingsHelp } from './arguments.ts';
import { describeError, type Io } from './command.ts';
import { withDatabase } from './database.ts';
import { readBase } from './option-values.ts';
import { readUpkeep, type Upkeep } from './upkeep.ts';

export const help = `Usage: outfit-gateway import SOURCE [options]

Reads an existing listing into the database that DATABASE_URL or DATA_DIR names.

SOURCE is one of
  https://host/api/outfits/   a live listing, followed by its next links to the end
  FILE or FOLDER ...          saved pages (.json), or records one per line (.ndjson, .jsonl),
                              each also as .gz; folders are read in the order of their names
  -                           standard input, in one of these formats

Options
  --replace        empty the database first
  --restart        begin anew where an interrupted import would go on
  --header 'Name: value'
                   sent to the host of a live listing with each request, such as
                   'Authorization: Token abc'; may be given more than once
  --media-url URL  base of the image URLs of the source (default: what most records have)
  --video-url URL  base of the video URLs of the source (default: what most records have)

For a live listing
  --pause MILLISECONDS
                   wait so long between two pages
  --follow SECONDS read it again and again, with so long between the end and the next start; tells
                   what changed in each round, and ends on Ctrl-C. A source that is away is tried
                   again in the next round
  --prune          name the outfits that two whole crawls in a row did not have; without --follow,
                   the second crawl is made at once when there is something to prune, and another
                   one after a crawl that went on where an interrupted one had ended
  --yes            with --prune: remove them, after they were named
  --max-removed NUMBER
                   with --yes: remove nothing when it would be more (default: half of what is there)

A crawl is whole if it was not interrupted or resumed, no page and no record was lost or broken, and
it had as many outfits as the listing counts. What is at FIRST_ID or above is never pruned, and
refused from a source; the database keeps the first FIRST_ID that it is told, until --replace with
another one. Users stay, also those without outfits.

${settingsHelp}
Exit code: 0 all is saved, 1 some records broke the contract and were left out, or --prune --yes
removed nothing because the crawl was not whole or it would have been too much, 2 the import could
not be done, 130 it was interrupted (the same command goes on from there).
`;

export const failureCode = 2;

export async function run(io: Io): Promise<number> {
  const { words: sources, values, env } = readArgumentsAndSettings(io, options, true);
  if (sources.length === 0) throw new ConfigError('SOURCE is missing: see --help.');
  const config = readConfig(env);
  const { replace, restart } = values;
  const headers = readHeaders(values.header ?? [], sources);
  const bases = {
    media: readBase('--media-url', values['media-url']),
    video: readBase('--video-url', values['video-url']),
  };
  const isLive = findListingUrl(sources) !== undefined;
  const upkeep = readUpkeep(values, isLive);
  const hasFiles = !sources.includes('-') && !isLive;
  const files = hasFiles ? await fingerprintFiles(sources) : '';
  return withDatabase(config, async (database) => {
    // What a follower has read may be old: nobody waits for the end of its crawl.
    const follows = upkeep.follow !== undefined;
    const same = JSON.stringify({ database: database.description, replace, bases, files, follows });
    const checkpoint = sources.includes('-')
      ? undefined
      : openCheckpoint(join(config.dataDir, '.import'), sources.join('\n'), same);
    if (restart) checkpoint?.remove();
    const { stdin, signal } = io;
    const { pause } = upkeep;
    const { firstId } = config;
    const importing = {
      sources,
      stdin,
      headers,
      bases,
      replace,
      firstId,
      pause,
      checkpoint,
      signal,
    };
    return keepUp({ database, config, importing, upkeep, isLive }, io);
  });
}

const options = {
  replace: { type: 'boolean', default: false },
  restart: { type: 'boolean', default: false },
  header: { type: 'string', multiple: true },
  'media-url': { type: 'string' },
  'video-url': { type: 'string' },
  pause: { type: 'string' },
  follow: { type: 'string' },
  prune: { type: 'boolean', default: false },
  yes: { type: 'boolean', default: false },
  'max-removed': { type: 'string' },
} as const;

interface Plan {
  readonly database: Database;
  readonly config: Config;
  readonly importing: Omit<ImportOptions, 'resume'>;
  readonly upkeep: Upkeep;
  readonly isLive: boolean;
}

/** Crawls as often as it takes; gives the exit code. */
async function keepUp(plan: Plan, io: Io): Promise<number> {
  const { database, config, importing, upkeep, isLive } = plan;
  const { signal, stdout, stderr } = io;
  const { pool } = database;
  const news = createNews(stdout, stderr);
  const pruner = upkeep.prune
    ? createPruner({
        pool,
        confirmed: upkeep.yes,
        maxRemoved: upkeep.maxRemoved,
        signal,
        say: news.say,
      })
    : undefined;
  const canResume = importing.checkpoint !== undefined;
  const remover = isLive ? '--prune' : '--replace';
  let code = 0;
  let isResumed = false;
  const isRepeated = upkeep.follow !== undefined;
  const startReport = (already: number) =>
    isRepeated ? news.startRound(already) : createReporter(stderr, already);
  const round = async () => {
    const result = await crawl(database, { ...importing, isRepeated, stderr, startReport });
    isResumed = result.already > 0;
    const removed = result.interrupted ? undefined : await pruner?.look(result);
    const lines = describeOutcome(result, { config, canResume, removed, remover });
    const time = isRepeated ? `${new Date().toISOString()} ` : '';
    for (const [index, line] of lines.entries()) news.say(index === 0 ? time + line : line);
    code = result.totals.broken > 0 || pruner?.hasRefused ? 1 : 0;
    if (result.interrupted) code = 130;
  };

  if (upkeep.follow === undefined) {
    await round();
    if (isResumed && isLive && !signal.aborted) {
      const missed = 'What changed since in the part that was read before did not come';
      news.say(pruner ? `${missed}, so all is read once more.` : `${missed}: import once more.`);
      if (pruner) await round();
    }
    if (pruner?.isWaiting && !signal.aborted) await round();
    return pruner && signal.aborted ? 130 : code;
  }
  // A server that freezes gives no error: without it, a round would wait for its answer for ever.
  await database.monitor(() => {});
  await follow(round, {
    seconds: upkeep.follow,
    signal,
    mayPass: (error) => error instanceof SourceError || httpErrorFor(error) !== undefined,
    onFailure: (error) => {
      const time = new Date().toISOString();
      stderr.write(`${time} ${describeError(error)} It is tried again every ${upkeep.follow} s.\n`);
    },
    onRecovery: () => stderr.write(`${new Date().toISOString()} It goes on.\n`),
  });
  if (code !== 130) stdout.write('Interrupted; what was read is saved.\n');
  return 130;
}

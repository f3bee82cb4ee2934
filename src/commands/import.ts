// outfit-gateway import: reads an existing listing into the database, once or again and again.
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Gauge, Registry } from 'prom-client';
import { attachedMapping } from '../attach/attachment.ts';
import { ConfigError, legacyHostFor, readConfig } from '../config/config.ts';
import { commandText } from '../config/package.ts';
import { duration, wholeNumber } from '../config/values.ts';
import type { Database } from '../database/database.ts';
import { httpErrorFor } from '../database/errors.ts';
import { messageOf, OperatorError } from '../errors.ts';
import { serveMetrics } from '../observability/metrics-server.ts';
import { createFetchPage, parseHeaders } from '../old-listing/fetch-page.ts';
import { SourceError } from '../old-listing/page.ts';
import { describeError } from '../process/exit.ts';
import { Checkpoint } from '../transfer/import/checkpoint.ts';
import { importOutfits } from '../transfer/import/import.ts';
import { PeopleImport } from '../transfer/import/likes-and-users.ts';
import { Pruner } from '../transfer/import/prune.ts';
import type { RunOutcome } from '../transfer/import/run.ts';
import { Reporter } from '../transfer/reporter.ts';
import { findListingUrl } from '../transfer/source/source.ts';
import { type Io, withDatabase } from './command.ts';
import { createLine, flag, headerOption, option, type ValuesOf } from './options/command-line.ts';

const ofLive = {
  header: headerOption(
    '--header',
    "sent to the host of the listing with each request, such as 'Authorization: Token abc'",
  ),
  pause: option('--pause <DURATION>', 'wait so long between two pages', duration('0', '10m')),
  follow: option(
    '--follow <DURATION>',
    'read it again and again, with so long between the end and the next start; prints what changed in each round, and ends on Ctrl-C. An unavailable source is tried again in the next round',
    duration('1s', '7d'),
  ),
  metricsPort: option(
    '--metrics-port <PORT>',
    'with --follow: answer GET /metrics on 127.0.0.1 and this port with gateway_follow_lag_seconds, the age of what is here',
    wholeNumber(1, 65_535),
  ),
  restart: flag('--restart', 'start again instead of continuing an interrupted import'),
  prune: flag(
    '--prune',
    'name the outfits that did not come, and that the source answers with 404 by their ids; where it does not answer by ids, those that two complete crawls in a row lack: without --follow, the second one is made at once when there is something to prune',
  ),
  yes: flag('--yes', 'with --prune: remove them, after they were named'),
  maxRemoved: option(
    '--max-removed <NUMBER>',
    'with --yes: remove nothing when it would be more (default: half of what is there)',
    wholeNumber(0, 2_147_483_647),
  ),
};
for (const one of Object.values(ofLive)) one.helpGroup('For a live listing:');

const options = {
  dryRun: flag(
    '--dry-run',
    'save nothing: say what would be created, updated, unchanged, removed, and what is broken, with the first records of each',
  ).conflicts(['follow', 'prune', 'restart']),
  likes: flag(
    '--likes',
    'SOURCE has likes, such as {"outfit": 7, "user": 5}: who likes what. Import outfits and users before',
  ).conflicts(['users', 'prune', 'restart']),
  users: flag(
    '--users',
    'SOURCE has users, as outfits have them: names and avatars, and users without outfits',
  ).conflicts(['prune', 'restart', 'replace']),
  replace: flag(
    '--replace',
    'at the end, remove what the source does not have, users and likes too; with --likes: likes of earlier imports. Nothing is removed when the source is empty, or was not read completely',
  ).conflicts(['follow', 'prune']),
  ...ofLive,
};
type Values = ValuesOf<typeof options>;

export const line = () =>
  createLine('import', options)
    .description('Reads an existing listing into the database that DATABASE_URL or DATA_DIR names.')
    .argument(
      '<SOURCE...>',
      `https://host/api/outfits/: a live listing, followed by its next links to the end
FILE or FOLDER: saved pages (.json), or records one per line (.ndjson, .jsonl), each also as .gz; folders are read in the order of their names
-: standard input, in one of these formats`,
    )
    .addHelpText('after', details);

const details = `
A crawl is complete if it was not interrupted or resumed, no page was lost, each record has an id, and it
had as many outfits as the listing counts. What is at FIRST_ID or above is never pruned, and
refused from a source; the database keeps the first FIRST_ID that it is told, until --replace with
another one. Users stay, also those without outfits.

Exit code: 0 all is saved, 1 some records broke the contract and were left out, the listing counts
more than were read, numbers of likes and their rows disagree, or --replace or --prune --yes removed
nothing because the source was empty or not read completely or it would have been too much, 2 the
import could not be done, 130 it was interrupted (the same command continues from there in a live
listing; with --replace, or --prune without --follow, it begins again, and so with files).`;

export const failureCode = 2;

/** @throws ConfigError for options that do not go together */
function checkValues(values: Values, isLive: boolean): void {
  const { follow, metricsPort, prune, yes, maxRemoved } = values;
  const names = Object.keys(ofLive) as (keyof typeof ofLive)[];
  const first = names.find((name) => values[name] !== undefined);
  if (first && !isLive) {
    throw new ConfigError(`${ofLive[first].long} needs a live listing as SOURCE.`);
  }
  if (metricsPort !== undefined && !follow) {
    throw new ConfigError('--metrics-port has the lag of --follow: add --follow.');
  }
  if (yes && !prune) throw new ConfigError('--yes is about what --prune removes: add --prune.');
  if (maxRemoved !== undefined && !yes) throw new ConfigError('--max-removed needs --yes.');
}

export async function run(io: Io, values: Values, sources: readonly string[]): Promise<number> {
  const config = readConfig(io.env);
  const { replace = false, restart, pause, follow: interval, dryRun: isDry = false } = values;
  const listing = findListingUrl(sources);
  checkValues(values, listing !== undefined);
  const headers = parseHeaders(values.header ?? [], listing ? legacyHostFor(listing, config) : {});
  const { stdin, stdout, stderr, signal } = io;
  // With --follow another round always comes: a resumed crawl without progress begins anew.
  const isRepeated = interval !== undefined;
  const reporter = new Reporter(stderr, stdout, isRepeated);
  return withDatabase(config, async (database) => {
    const { pool } = database;
    if (!isDry && (await attachedMapping(pool))) {
      throw new OperatorError(
        `The tables of the old service are attached, and all they have is here: run ${commandText('detach')} before another import.`,
      );
    }
    const reading = { sources, stdin, headers, replace, isDry, pause, signal };
    const same = { database: database.description, follows: isRepeated };
    const kept =
      listing && !isDry
        ? new Checkpoint(join(config.dataDir, '.import'), listing, JSON.stringify(same))
        : undefined;
    // Only what is read from its beginning to its end may remove; of followers, the next round.
    const isResumable = isRepeated || !(replace || values.prune);
    if (restart || !isResumable) kept?.remove();
    const checkpoint = isResumable ? kept : undefined;
    let pruner: Pruner | undefined;
    if (listing && values.prune) {
      const fetchPage = createFetchPage({ listing, headers });
      const notify = (text: string) => stderr.write(`${text}\n`);
      const lookup = { listing, fetchPage, signal, pause, notify };
      const print = (line: string) => reporter.result(line);
      const { yes: confirmed = false, maxRemoved } = values;
      pruner = new Pruner({ pool, confirmed, maxRemoved, signal, print, lookup });
    }
    const importing = { ...reading, config, checkpoint, isRepeated, pruner };
    const kind = values.likes ? 'likes' : values.users ? 'users' : undefined;
    const round = async () => {
      const outcome = kind
        ? await new PeopleImport(pool, { ...reading, kind }, reporter).run()
        : await importOutfits(database, importing, reporter);
      const prefix = isRepeated ? `${new Date().toISOString()} ` : '';
      outcome.lines.forEach((text, index) => void reporter.result(index ? text : prefix + text));
      return outcome;
    };
    if (interval !== undefined) {
      const { metricsPort } = values;
      if (metricsPort === undefined) return follow(interval, database, io, round);
      const measured = await measureLag(metricsPort, round);
      return follow(interval, database, io, measured.round).finally(() => measured.close());
    }
    let outcome = await round();
    if (outcome.isResumed && !signal.aborted) {
      const stale = 'What changed since in the part that was read before did not come';
      reporter.result(`${stale}: import again.`);
    }
    if (pruner?.isWaiting && !signal.aborted) outcome = await round();
    return pruner && signal.aborted ? 130 : outcome.code;
  });
}

/** Runs rounds until the signal. @param interval milliseconds between the end of a round and the next one */
async function follow(
  interval: number,
  database: Database,
  { signal, stdout, stderr }: Io,
  round: () => Promise<RunOutcome>,
): Promise<number> {
  // A frozen server gives no error: without the monitor, a round would wait for its answer for ever.
  await database.monitor(() => {});
  const log = (sentence: string) => stderr.write(`${new Date().toISOString()} ${sentence}\n`);
  let isFailing = false;
  let wasInterrupted = false;
  while (!signal.aborted) {
    try {
      wasInterrupted = (await round()).code === 130;
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

/** Serves the age of what is here, while the rounds that it gives are run. @throws ConfigError */
async function measureLag(port: number, round: () => Promise<RunOutcome>) {
  let asOf = performance.now();
  const registry = new Registry();
  new Gauge({
    name: 'gateway_follow_lag_seconds',
    help: 'Time since the last round that was read to its end began, or since the start.',
    registers: [registry],
    collect() {
      this.set((performance.now() - asOf) / 1000);
    },
  });
  const print = async () => ({ contentType: registry.contentType, text: await registry.metrics() });
  const { close } = await serveMetrics({ print }, { host: '127.0.0.1', port }).catch((error) => {
    throw new ConfigError(`--metrics-port ${port} cannot be used: ${messageOf(error)}.`);
  });
  const measured = async () => {
    const begun = performance.now();
    const outcome = await round();
    // What a resumed round did not read again is older.
    if (outcome.code !== 130 && !outcome.isResumed) asOf = begun;
    return outcome;
  };
  return { close, round: measured };
}

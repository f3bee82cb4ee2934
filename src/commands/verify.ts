// outfit-gateway verify: compares a source with this service.
import { buildApp } from '../app.ts';
import { typed } from '../command-line.ts';
import { type Config, ConfigError, readConfig } from '../config.ts';
import type { Database } from '../database/database.ts';
import { EmbeddedDatabaseError } from '../database/embedded.ts';
import { toAnswer } from '../http/client.ts';
import { hide, parseHeaders } from '../import/fetch-page.ts';
import { createReporter, formatNumber } from '../import/reporter.ts';
import { findListingUrl } from '../import/source.ts';
import { Report } from '../legacy/report.ts';
import { createOwnSide, type Side } from '../legacy/side.ts';
import { verifyListing } from '../legacy/verify.ts';
import { readArgumentsAndSettings, settingsHelp } from './arguments.ts';
import type { Io } from './command.ts';
import {
  comparisonHelp,
  comparisonOptions,
  conclude,
  readAccepted,
  readNumber,
  readTimes,
} from './comparison.ts';
import { withDatabase } from './database.ts';

export const help = `Usage: outfit-gateway verify URL [options]

Compares a live listing, such as https://host/api/outfits/, with what this service answers: all its
pages in every order that it has, and what apps ask beside. Nothing is written. What differs from
saved files, "outfit-gateway import FILE --dry-run" says.

  --against URL  the listing of a running service, such as http://localhost:4000/api/outfits/
                 (default: a service in this process, on the database of DATABASE_URL or DATA_DIR).
                 It must answer itself: LEGACY_MODE=off or mirror
  --header 'Name: value'
                 sent to the host of URL with each request, such as
                 'Authorization: Token abc'; may be given more than once
  --sample N     compare N pages of each order, the first and the last among them
${comparisonHelp}
${settingsHelp}
Exit code: 0 nothing differs that was not accepted, 1 something does, 2 it could not be compared,
or not to the end, 130 it was interrupted.
`;

export const failureCode = 2;

const options = {
  ...comparisonOptions,
  header: { type: 'string', multiple: true },
  against: { type: 'string' },
  sample: { type: 'string' },
} as const;

/** What the service in this process is like, whatever the operator's is. */
const settings = {
  privateOutfits: 'listed',
  publicUrl: undefined,
  rateLimit: undefined,
  unknownParameters: 'ignore',
  legacyMode: { kind: 'off', percent: 100 },
  /** No page is asked for twice. */
  cacheMaxBytes: 0,
} as const;

export async function run(io: Io): Promise<number> {
  const { words: sources, values, env } = readArgumentsAndSettings(io, options, true);
  if (sources.length === 0) throw new ConfigError('URL is missing: see --help.');
  const listing = findListingUrl(sources);
  if (listing === undefined) {
    throw new ConfigError(
      `verify compares a live listing, by its URL. For saved files, type ${typed(`import ${sources.join(' ')} --dry-run`)}.`,
    );
  }
  const headers = parseHeaders(values.header ?? []);
  const accepted = readAccepted(values.accept);
  const sample = readNumber('--sample', values.sample, 1, 1_000_000, true);
  const times = readTimes(values);
  const report = new Report(accepted, (text) => hide(text, headers));
  const { signal } = io;

  const verify = (openOurs: OpenOurs) => {
    const reporter = createReporter(io.stderr);
    const options = { listing, headers, openOurs, report, signal, sample, ...times };
    return verifyListing(options, reporter).finally(reporter.finish);
  };
  const { against } = values;
  const facts =
    against === undefined
      ? await withService(readConfig(env), verify)
      : await withUrl(readUrl(against), times.timeout, verify);
  const compared = `${formatNumber(facts.records)} records in ${facts.orders} orders, ${formatNumber(facts.answers)} answers`;
  return conclude(report, compared, { sources, against, ...facts }, values.json, io);
}

type OpenOurs = (pageSize: number | undefined) => Promise<Side>;

function readUrl(against: string): string {
  const url = findListingUrl([against]);
  if (url !== undefined && !new URL(url).search) return url;
  throw new ConfigError(
    `--against is ${JSON.stringify(against)}, but it may be the http or https URL of a listing, without a query.`,
  );
}

async function withUrl<Result>(
  url: string,
  timeout: number,
  verify: (openOurs: OpenOurs) => Promise<Result>,
): Promise<Result> {
  const side = createOwnSide({ url, timeout });
  try {
    return await verify(async () => side);
  } finally {
    side.close();
  }
}

/** A service in this process, on the configured database, that answers whoever asks. */
async function withService<Result>(
  config: Config,
  verify: (openOurs: OpenOurs) => Promise<Result>,
): Promise<Result> {
  const opened: Side[] = [];
  try {
    return await withDatabase(config, async (database) => {
      try {
        return await verify(async (pageSize = config.pageSize) => {
          const side = await openService({ ...config, pageSize }, database);
          opened.push(side);
          return side;
        });
      } finally {
        for (const side of opened) await side.close();
      }
    });
  } catch (error) {
    if (!(error instanceof EmbeddedDatabaseError)) throw error;
    throw new EmbeddedDatabaseError(
      `${error.message}\nTo compare with a service that is running, give its URL with --against.`,
    );
  }
}

async function openService(config: Config, database: Database): Promise<Side> {
  const app = await buildApp({ ...config, ...settings }, database);
  return {
    base: 'http://localhost',
    path: '/api/outfits/',
    async ask(method, target) {
      const asked = { method, url: target, headers: { host: 'localhost' } };
      const { statusCode, headers, rawPayload } = await app.inject(asked);
      return toAnswer(statusCode, headers, rawPayload);
    },
    close: () => app.close(),
  };
}

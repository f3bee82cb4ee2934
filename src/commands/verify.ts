// npm run verify: compares a source with this service.
import { buildApp } from '../app.ts';
import { ConfigError, readConfig } from '../config.ts';
import { EmbeddedDatabaseError } from '../database/embedded.ts';
import { createFetchPage, type FetchPage } from '../import/fetch-page.ts';
import { createReporter, formatNumber, type Output } from '../import/reporter.ts';
import { findListingUrl, readHeaders } from '../import/source.ts';
import { type VerifyOutcome, verifyOutfits } from '../legacy/verify.ts';
import { type Io, readArguments } from './command.ts';
import { withDatabase } from './database.ts';

export const help = `Usage: npm run verify -- SOURCE [--against URL]

Compares a source record by record and in order with what this service answers, in the default
order and with ordering=like_count. SOURCE is what "npm run import -- SOURCE" takes.

  --header 'Name: value'
                 sent to the host of a live SOURCE with each request, such as
                 'Authorization: Token abc'; may be given more than once
  --against URL  the listing of a running service, such as http://localhost:4000/api/outfits/
                 (default: a service in this process, on the database of DATABASE_URL or DATA_DIR)

Exit code: 0 nothing differs, 1 something does, 2 it could not be compared,
130 it was interrupted.
`;

/** What the service in this process is like, whatever the operator's is. */
const settings = {
  /** The most that there may be: fewer pages are read sooner, and hold the same records. */
  pageSize: 1_000,
  privateOutfits: 'listed',
  rateLimit: undefined,
  /** No page is asked for twice. */
  cacheMaxBytes: 0,
} as const;

export const failureCode = 2;

export async function run(io: Io): Promise<number> {
  const { words: sources, values } = readArguments(io, options, true);
  if (sources.length === 0) throw new ConfigError('SOURCE is missing: see --help.');
  const headers = readHeaders(values.header ?? [], sources);
  const { against } = values;
  const reporter = createReporter(io.stderr);
  const verify = async (url: string, fetchPage: FetchPage) => {
    const { stdin, signal } = io;
    const ours = { url, fetchPage };
    try {
      return await verifyOutfits({ sources, headers, stdin, signal, ours }, reporter);
    } finally {
      reporter.finish();
    }
  };
  const outcome =
    against === undefined
      ? await withService(io, verify)
      : await verify(readUrl(against), createFetchPage({ listing: against }));
  describeOutcome(outcome, io.stdout);
  return outcome.differences.count > 0 ? 1 : 0;
}

const options = {
  header: { type: 'string', multiple: true },
  against: { type: 'string' },
} as const;

function readUrl(against: string): string {
  const url = findListingUrl([against]);
  if (url !== undefined) return url;
  throw new ConfigError(
    `--against is ${JSON.stringify(against)}, but it may be the http or https URL of a listing.`,
  );
}

/** A service in this process, on the configured database, that answers whoever asks. */
async function withService(
  io: Io,
  verify: (url: string, fetchPage: FetchPage) => Promise<VerifyOutcome>,
): Promise<VerifyOutcome> {
  const config = readConfig(io.env);
  try {
    return await withDatabase(config, async (database) => {
      const app = await buildApp({ ...config, ...settings }, database);
      try {
        return await verify('http://localhost/api/outfits/', async (url) => {
          const { pathname, search } = new URL(url);
          const { statusCode, body, headers } = await app.inject({ url: pathname + search });
          return { status: statusCode, body, retryAfter: headers['retry-after']?.toString() };
        });
      } finally {
        await app.close();
      }
    });
  } catch (error) {
    if (!(error instanceof EmbeddedDatabaseError)) throw error;
    throw new EmbeddedDatabaseError(
      `${error.message}\nTo compare with a service that is running, give its URL with --against.`,
    );
  }
}

function describeOutcome({ compared, differences }: VerifyOutcome, stdout: Output): void {
  const { count, shown } = differences;
  for (const difference of shown) stdout.write(`${difference}\n`);
  const found = count === 0 ? 'nothing differs' : `${formatNumber(count)} differences`;
  const cut = count > shown.length ? ` (the first ${shown.length} are shown)` : '';
  stdout.write(`${formatNumber(compared)} records compared: ${found}${cut}.\n`);
}

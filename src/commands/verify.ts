// npm run verify: compares a source with this service.
import '../node-version.ts';
import { parseArgs } from 'node:util';
import { buildApp } from '../app.ts';
import { ConfigError, readConfig } from '../config.ts';
import { EmbeddedDatabaseError } from '../database/embedded.ts';
import { type FetchPage, fetchOverHttp } from '../import/listing.ts';
import { formatNumber } from '../import/reporter.ts';
import { findListingUrl } from '../import/source.ts';
import { type VerifyOutcome, verifyOutfits } from '../legacy/verify.ts';
import { describeError, openPreparedDatabase } from './cli.ts';

const help = `Usage: npm run verify -- SOURCE [--against URL]

Compares a source record by record and in order with what this service answers, in the default
order and with ordering=like_count. SOURCE is what "npm run import -- SOURCE" takes.

  --against URL  the listing of a running service, such as http://localhost:4000/api/outfits/
                 (default: a service in this process, on the database of DATABASE_URL or DATA_DIR)

Exit code: 0 nothing differs, 1 something does, 2 it could not be compared.
`;

/** Differences that are printed; all are counted. */
const maxPrinted = 20;

/** The most that the setting allows: fewer pages are read sooner, and hold the same records. */
const pageSize = 1_000;

try {
  process.exitCode = await main();
} catch (error) {
  process.stderr.write(`${describeError(error)}\n`);
  if (error instanceof EmbeddedDatabaseError) {
    process.stderr.write(
      'To compare with a service that is running, give its URL with --against.\n',
    );
  }
  process.exitCode = 2;
}
process.exit();

async function main(): Promise<number> {
  const { sources, values } = readArguments();
  if (values.help) {
    process.stdout.write(help);
    return 0;
  }
  if (sources.length === 0) throw new ConfigError('SOURCE is missing: see --help.');
  const { against } = values;
  const outcome =
    against === undefined
      ? await verifyInProcess(sources)
      : await verifyListing(sources, findListingUrl([against]) ?? refuse(against), fetchOverHttp);
  describeOutcome(outcome);
  return outcome.differences.size > 0 ? 1 : 0;
}

function readArguments() {
  try {
    const { positionals, values } = parseArgs({
      allowPositionals: true,
      options: {
        help: { type: 'boolean', short: 'h', default: false },
        against: { type: 'string' },
      },
    });
    return { sources: positionals, values };
  } catch (error) {
    throw new ConfigError(error instanceof Error ? error.message : String(error));
  }
}

function refuse(against: string): never {
  throw new ConfigError(
    `--against is ${JSON.stringify(against)}, but it may be the http or https URL of a listing.`,
  );
}

async function verifyInProcess(sources: readonly string[]): Promise<VerifyOutcome> {
  const config = readConfig(process.env);
  const database = await openPreparedDatabase(config);
  try {
    const app = await buildApp({ ...config, pageSize }, database);
    const fetchPage: FetchPage = async (url) => {
      const { pathname, search } = new URL(url);
      const response = await app.inject({ url: pathname + search });
      return { status: response.statusCode, body: response.body };
    };
    return await verifyListing(sources, 'http://localhost/api/outfits/', fetchPage);
  } finally {
    await database.close();
  }
}

function verifyListing(
  sources: readonly string[],
  url: string,
  fetchPage: FetchPage,
): Promise<VerifyOutcome> {
  return verifyOutfits({
    sources,
    stdin: process.stdin,
    signal: new AbortController().signal,
    notify: (sentence) => process.stderr.write(`${sentence}\n`),
    ours: { url, fetchPage },
  });
}

function describeOutcome({ compared, differences }: VerifyOutcome): void {
  for (const difference of [...differences].slice(0, maxPrinted)) {
    process.stdout.write(`${difference}\n`);
  }
  const found =
    differences.size === 0 ? 'nothing differs' : `${formatNumber(differences.size)} differences`;
  const shown = differences.size > maxPrinted ? ` (the first ${maxPrinted} are shown)` : '';
  process.stdout.write(`${formatNumber(compared)} records compared: ${found}${shown}.\n`);
}

// outfit-gateway verify: compares a live listing with the answers of this service.
import { buildApp, readOwnRoutes } from '../app.ts';
import { type Config, ConfigError, legacyHostFor, readConfig } from '../config/config.ts';
import { commandText } from '../config/package.ts';
import { wholeNumber } from '../config/values.ts';
import type { Database } from '../database/database.ts';
import { EmbeddedDatabaseError } from '../database/embedded/data-folder.ts';
import { toAnswer } from '../http/client.ts';
import { type ComparedService, createOwnService } from '../legacy/verify/compared-service.ts';
import { Report } from '../legacy/verify/report.ts';
import { verifyListing } from '../legacy/verify/verify.ts';
import { hide, parseHeaders } from '../old-listing/fetch-page.ts';
import { formatNumber, Reporter } from '../transfer/reporter.ts';
import { findListingUrl } from '../transfer/source/source.ts';
import { type Io, withDatabase } from './command.ts';
import { createLine, headerOption, option, type ValuesOf } from './options/command-line.ts';
import {
  comparisonHelp,
  comparisonOptions,
  conclude,
  httpUrl,
  originsOf,
} from './options/comparison.ts';

const listingUrl = httpUrl(({ search }) => !search).describe(
  'the http or https URL of a listing, without a query',
);

const options = {
  against: option(
    '--against <URL>',
    'the listing of a running service, such as http://localhost:4000/api/outfits/ (default: a service in this process, on the database of DATABASE_URL or DATA_DIR). It must answer itself: LEGACY_MODE=off or mirror',
    listingUrl,
  ),
  header: headerOption(
    '--header',
    "sent to the host of URL with each request, such as 'Authorization: Token abc'",
  ),
  sample: option(
    '--sample <N>',
    'compare N pages of each order, the first and the last among them',
    wholeNumber(1, 1_000_000),
  ),
  ...comparisonOptions,
};
type Values = ValuesOf<typeof options>;

export const line = () =>
  createLine('verify', options)
    .description(
      'Compares a live listing with this service: all pages in every order that it has, and other requests of apps. Nothing is written. For saved files, use "outfit-gateway import FILE --dry-run".',
    )
    .argument('<URL...>', 'the live listing, such as https://host/api/outfits/')
    .addHelpText('after', comparisonHelp);

export const failureCode = 2;

export async function run(io: Io, values: Values, sources: readonly string[]): Promise<number> {
  const { against, sample } = values;
  const listing = findListingUrl(sources);
  if (listing === undefined) {
    throw new ConfigError(
      `verify compares a live listing, by its URL. For saved files, type ${commandText(`import ${sources.join(' ')} --dry-run`)}.`,
    );
  }
  const config = readConfig(io.env);
  const headers = parseHeaders(values.header ?? [], legacyHostFor(listing, config));
  const { timeout, wait } = values;
  const report = new Report(new Set(values.accept), (text) => hide(text, headers));
  const { signal } = io;

  const origins = originsOf(values.origin, config);
  const routes = readOwnRoutes(config.restDocuments);
  const verify = (ours: ComparedService) => {
    const reporter = new Reporter(io.stderr);
    const options = { listing, headers, ours, report, signal, sample, origins, timeout, wait };
    return verifyListing({ ...options, routes }, reporter).finally(() => {
      reporter.finish();
      return ours.close();
    });
  };
  const facts = against
    ? await verify(createOwnService({ url: against, timeout }))
    : await withService(config, verify);
  const compared = `${formatNumber(facts.records)} records in ${facts.orders} orders, ${formatNumber(facts.answers)} answers`;
  return conclude(report, compared, { sources, against, ...facts }, values.json, io);
}

/** Compares with a service in this process, on the configured database. */
async function withService<Result>(
  config: Config,
  verify: (ours: ComparedService) => Promise<Result>,
): Promise<Result> {
  try {
    return await withDatabase(config, async (database) =>
      verify(await openComparedService(config, database)),
    );
  } catch (error) {
    if (!(error instanceof EmbeddedDatabaseError)) throw error;
    throw new EmbeddedDatabaseError(
      `${error.message}\nTo compare with a service that is running, give its URL with --against.`,
    );
  }
}

/** Settings of a compared service: they override those of the operator. */
const comparedSettings = {
  privateOutfits: 'listed',
  publicUrl: undefined,
  rateLimit: undefined,
  legacyMode: { kind: 'off', percent: 100 },
  cacheMaxSize: 0,
} as const;

/** Builds a service without a port. `close()` leaves the database open. */
async function openComparedService(config: Config, database: Database): Promise<ComparedService> {
  const app = await buildApp({ ...config, ...comparedSettings }, database);
  return {
    base: 'http://localhost',
    path: '/api/outfits/',
    async ask(method, target, _signal, own) {
      const asked = { method, url: target, headers: { host: 'localhost', ...own } };
      const { statusCode, headers, rawPayload } = await app.inject(asked);
      return toAnswer(statusCode, headers, rawPayload);
    },
    close: () => app.close(),
  };
}

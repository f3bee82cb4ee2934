// outfit-gateway replay: sends the requests of apps to the old service and this one, and compares.
import { ConfigError, legacyHostFor, readConfig } from '../config/config.ts';
import { decimal, text, wholeNumber } from '../config/values.ts';
import { createHttpService, createOwnService } from '../legacy/verify/compared-service.ts';
import { unknownOrigin } from '../legacy/verify/cors-checks.ts';
import { type ReplayOutcome, replay } from '../legacy/verify/replay.ts';
import { Report } from '../legacy/verify/report.ts';
import { hide, parseHeaders } from '../old-listing/fetch-page.ts';
import { formatNumber, type Output, Reporter } from '../transfer/reporter.ts';
import type { Io } from './command.ts';
import {
  createLine,
  headerOption,
  optional,
  required,
  type ValuesOf,
} from './options/command-line.ts';
import {
  comparisonHelp,
  comparisonOptions,
  conclude,
  httpUrl,
  originsOf,
} from './options/comparison.ts';

const formats =
  'the common or combined format, that of uWSGI, the router of Heroku, CloudFront or IIS (W3C), or with a JSON object per line (nginx, Docker and others)';

const serviceUrl = httpUrl(({ pathname, search }) => pathname === '/' && !search)
  .transform((value) => new URL(value).href)
  .describe('the http or https URL of a service, without path');

const options = {
  legacy: required(
    '--legacy <URL>',
    'the old service, such as https://old.example.com',
    serviceUrl,
  ),
  against: required(
    '--against <URL>',
    'this service, such as http://localhost:4000. It must answer itself: LEGACY_MODE=off or mirror',
    serviceUrl,
  ),
  header: headerOption('--header', 'sent to the old service with each request'),
  againstHeader: headerOption(
    '--against-header',
    'the same for this service: logs contain no credentials',
  ),
  prefix: optional('/api/', '--prefix <PATH>', 'which paths are requested', text),
  concurrency: optional(
    4,
    '--concurrency <N>',
    'requests that each side gets at a time',
    wholeNumber(1, 64),
  ),
  rate: optional(
    50,
    '--rate <N>',
    'requests a second that each side gets at most, also again',
    decimal(0.1, 10_000),
  ),
  ...comparisonOptions,
};
type Values = ValuesOf<typeof options>;

export const line = () =>
  createLine('replay', options)
    .description(
      'Takes the GET and HEAD requests of access logs, sends each distinct one to the old service and to this one, and compares the responses. Nothing is written.',
    )
    .argument('<ACCESS-LOG...>', `a file in ${formats}, also as .gz, or - for standard input`)
    .addHelpText('after', comparisonHelp);

export const failureCode = 2;

export async function run(io: Io, values: Values, files: readonly string[]): Promise<number> {
  const { against, legacy, prefix, concurrency, rate, timeout, wait } = values;
  const config = readConfig(io.env);
  const headers = parseHeaders(values.header ?? [], legacyHostFor(legacy, config));
  const ourHeaders = parseHeaders(values.againstHeader ?? []);
  const report = new Report(new Set(values.accept), (text) =>
    hide(hide(text, headers), ourHeaders),
  );

  const { stdin, stdout, stderr, signal } = io;
  const [origin = unknownOrigin] = originsOf(values.origin, config);
  const theirs = createHttpService({ url: legacy, headers, timeout });
  const ours = createOwnService({ url: against, headers: ourHeaders, timeout });
  const reporter = new Reporter(stderr);
  try {
    const outcome = await replay(
      { files, stdin, theirs, ours, report, signal, prefix, concurrency, rate, wait, origin },
      reporter,
    );
    if (outcome.distinct === 0) {
      const lines = `${formatNumber(outcome.lines)} lines`;
      throw new ConfigError(
        outcome.left.unreadable === outcome.lines && outcome.lines > 0
          ? `None of the ${lines} has a request in a format that can be read: ${formats}.`
          : `No GET request of the ${lines} has a path that begins with ${prefix}.`,
      );
    }
    reporter.finish();
    describeLeft(outcome, stdout);
    const { broken, ...facts } = outcome;
    const compared = broken
      ? `${formatNumber(broken.asked)} of ${formatNumber(facts.distinct)} requests`
      : `${formatNumber(facts.distinct)} requests, asked ${formatNumber(facts.requests)} times,`;
    const described = { legacy, against, ...facts, broken: broken?.sentence };
    return conclude(report, compared, described, values.json, io);
  } finally {
    reporter.finish();
    theirs.close();
    ours.close();
  }
}

function describeLeft({ left }: ReplayOutcome, stdout: Output): void {
  const parts = [
    [left.method, 'other methods'],
    [left.path, 'other paths'],
    [left.unreadable, 'lines without a request that can be sent again'],
    [left.tooMany, 'requests beyond the first 1,000,000 distinct ones, or 256 MiB of them'],
  ] as const;
  const found = parts.filter(([number]) => number > 0);
  if (found.length === 0) return;
  const list = found.map(([number, what]) => `${formatNumber(number)} ${what}`);
  stdout.write(`Left out: ${list.join(', ')}.\n`);
}

// outfit-gateway replay: asks the old service and this one what apps have asked, and compares.
import { ConfigError } from '../config.ts';
import { parseUrl } from '../http/url.ts';
import { hide, parseHeaders } from '../import/fetch-page.ts';
import { createReporter, formatNumber, type Output } from '../import/reporter.ts';
import { type ReplayOutcome, replay } from '../legacy/replay.ts';
import { Report } from '../legacy/report.ts';
import { createHttpSide, createOwnSide } from '../legacy/side.ts';
import { readArguments } from './arguments.ts';
import type { Io } from './command.ts';
import {
  comparisonHelp,
  comparisonOptions,
  conclude,
  readAccepted,
  readNumber,
  readTimes,
} from './comparison.ts';

export const help = `Usage: outfit-gateway replay ACCESS-LOG ... --legacy URL --against URL [options]

Takes the GET and HEAD requests of access logs, asks each distinct one of the old service and of
this one, and compares the answers. Nothing is written. ACCESS-LOG is a file in the common or combined
format or with a JSON object per line (nginx, Docker and others), also as .gz, or - for standard input.

  --legacy URL   the old service, such as https://old.example.com
  --against URL  this service, such as http://localhost:4000. It must answer itself: LEGACY_MODE=off
                 or mirror
  --header 'Name: value'
                 sent to the old service with each request; may be given more than once
  --against-header 'Name: value'
                 the same for this service: logs hold no credentials
  --prefix PATH  which paths are asked (default: /api/)
  --concurrency N
                 requests that each side is asked at a time (default: 4)
  --rate N       requests a second that each side is asked at most, also again (default: 50)
${comparisonHelp}
Exit code: 0 nothing differs that was not accepted, 1 something does, 2 it could not be compared,
or not to the end, 130 it was interrupted.
`;

export const failureCode = 2;

const options = {
  ...comparisonOptions,
  legacy: { type: 'string' },
  against: { type: 'string' },
  header: { type: 'string', multiple: true },
  'against-header': { type: 'string', multiple: true },
  prefix: { type: 'string', default: '/api/' },
  concurrency: { type: 'string' },
  rate: { type: 'string' },
} as const;

export async function run(io: Io): Promise<number> {
  const { words: files, values } = readArguments(io, options, true);
  if (files.length === 0) throw new ConfigError('ACCESS-LOG is missing: see --help.');
  const { against, legacy, prefix } = values;
  const [theirUrl, ourUrl] = [readBase('--legacy', legacy), readBase('--against', against)];
  const headers = parseHeaders(values.header ?? []);
  const ourHeaders = parseHeaders(values['against-header'] ?? []);
  const concurrency = readNumber('--concurrency', values.concurrency, 1, 64, true) ?? 4;
  const rate = readNumber('--rate', values.rate, 0.1, 10_000) ?? 50;
  const { timeout, wait } = readTimes(values);
  const report = new Report(readAccepted(values.accept), (text) =>
    hide(hide(text, headers), ourHeaders),
  );

  const { stdin, stdout, stderr, signal } = io;
  const theirs = createHttpSide({ url: theirUrl, headers, timeout });
  const ours = createOwnSide({ url: ourUrl, headers: ourHeaders, timeout });
  const reporter = createReporter(stderr);
  try {
    const outcome = await replay(
      { files, stdin, theirs, ours, report, signal, prefix, concurrency, rate, wait },
      reporter,
    );
    if (outcome.distinct === 0) {
      throw new ConfigError(
        `No GET request of the ${formatNumber(outcome.lines)} lines has a path that begins with ${prefix}.`,
      );
    }
    reporter.finish();
    describeLeft(outcome, stdout);
    const { broken, ...facts } = outcome;
    const compared = broken
      ? `${formatNumber(broken.asked)} of ${formatNumber(facts.distinct)} requests`
      : `${formatNumber(facts.distinct)} requests, asked ${formatNumber(facts.requests)} times,`;
    const known = { legacy, against, ...facts, broken: broken?.sentence };
    return conclude(report, compared, known, values.json, io);
  } finally {
    reporter.finish();
    theirs.close();
    ours.close();
  }
}

/** @throws ConfigError */
function readBase(option: string, value: string | undefined): string {
  if (value === undefined) throw new ConfigError(`${option} is missing: see --help.`);
  const url = /^https?:\/\//i.test(value) ? parseUrl(value) : undefined;
  if (url && !url.username && !url.password && url.pathname === '/' && !url.search) return url.href;
  throw new ConfigError(
    `${option} is ${JSON.stringify(value)}, but it may be the http or https URL of a service, without path.`,
  );
}

function describeLeft({ left }: ReplayOutcome, stdout: Output): void {
  const parts = [
    [left.method, 'other methods'],
    [left.path, 'other paths'],
    [left.unreadable, 'lines without a request that can be asked again'],
    [left.tooMany, 'requests beyond the first 1,000,000 distinct ones, or 256 MiB of them'],
  ] as const;
  const found = parts.filter(([number]) => number > 0);
  if (found.length === 0) return;
  const list = found.map(([number, what]) => `${formatNumber(number)} ${what}`);
  stdout.write(`Left out: ${list.join(', ')}.\n`);
}

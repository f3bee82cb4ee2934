// Options and report of verify and replay: `--accept`, `--json`, and the printed lines.
import { renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { type Config, ConfigError } from '../../config/config.ts';
import { duration, parseUrl, text } from '../../config/values.ts';
import { cut, messageOf } from '../../errors.ts';
import { isAcceptable, kindMeanings, kinds } from '../../legacy/compare/difference.ts';
import { countTimes, type Group, type Report } from '../../legacy/verify/report.ts';
import { formatNumber, listFirst, type Output } from '../../transfer/reporter.ts';
import { list, option, optional } from './command-line.ts';

const width = Math.max(...kinds.map((kind) => kind.length));

export const comparisonHelp = `
Kinds of differences
${kinds.map((kind) => `  ${kind.padEnd(width)}  ${kindMeanings[kind]}\n`).join('')}
Exit code: 0 nothing differs that was not accepted, 1 something does, 2 it could not be compared,
or not to the end, 130 it was interrupted.`;

const acceptable = text.refine(isAcceptable).describe(`one of ${kinds.join(', ')}`);

const origin = text
  .refine((value) => /^https?:/.test(value) && parseUrl(value)?.origin === value)
  .describe('an origin, such as https://app.example.com');

/** @param isAllowed a further condition; credentials are always refused */
export const httpUrl = (isAllowed: (url: URL) => boolean) =>
  text.refine((value) => {
    const url = /^https?:\/\//i.test(value) ? parseUrl(value) : undefined;
    return url && !url.username && !url.password && isAllowed(url);
  });

export const comparisonOptions = {
  timeout: optional(
    30_000,
    '--timeout <DURATION>',
    'how long an answer may take',
    duration('100ms', '1h'),
  ).default(30_000, '30s'),
  wait: optional(
    2_000,
    '--wait <DURATION>',
    'both services may change while they are compared: what differs is requested again after a quarter of this time, and once more after all of it. Where this one follows the other, it takes longer than a round of that',
    duration('0', '1h'),
  ).default(2_000, '2s'),
  accept: list(
    '--accept <KIND>',
    'a kind of difference that is accepted: counted, but not a failure. KIND:WHERE accepts it in one place only, such as value:results.likes',
    acceptable,
  ),
  origin: list(
    '--origin <ORIGIN>',
    'the origin of a web app, such as https://app.example.com, that is sent to both services (default: those of CORS_ORIGINS). verify sends each with preflights, and one that no service names; replay the first one',
    origin,
  ),
  json: option(
    '--json <FILE>',
    'writes the report to a file, with ten examples of each difference and up to 10,000 of records',
    text,
  ),
};

export const originsOf = (origin: readonly string[] | undefined, { corsOrigins }: Config) =>
  origin ?? corsOrigins.filter((named) => named !== '*');

/** Lines of a report before the summary, and characters of what they quote; --json has all of it. */
const maxLines = 15;
const maxGroups = 5;
const maxShown = 300;

/**
 * Prints the report, and writes it to the file of --json.
 * @param compared what was compared, such as `45 records`
 * @param facts for the file; `broken` is the reason for an incomplete comparison
 * @returns the exit code
 */
export function conclude(
  report: Report,
  compared: string,
  facts: Readonly<Record<string, unknown>> & { readonly broken?: string | undefined },
  file: string | undefined,
  { stdout, stderr }: { readonly stdout: Output; readonly stderr: Output },
): number {
  const { broken } = facts;
  const { notes } = report;
  const { different, accepted } = report.groups();
  const isSame = different.length === 0;
  const lines = [...describeGroups(different), ...notes];
  if (accepted.length > 0) lines.push(`Accepted: ${accepted.map(nameWithTimes).join(', ')}.`);
  const found = isSame
    ? `nothing differs${accepted.length > 0 ? ' but what was accepted' : ''}`
    : `${formatNumber(countTimes(different))} difference${countTimes(different) === 1 ? '' : 's'}`;
  lines.push(`${compared} compared: ${found}.`);
  stdout.write(`${lines.join('\n')}\n`);
  if (file !== undefined) {
    const same = isSame && broken === undefined;
    writeReport(file, { ...facts, same, differences: different, accepted, notes });
  }
  if (broken !== undefined) {
    stderr.write(`Not everything could be compared: ${broken}\n`);
    return 2;
  }
  return isSame ? 0 : 1;
}

/** Of few groups more examples. */
function describeGroups(groups: readonly Group[]): string[] {
  const most = Math.max(1, Math.floor((maxLines / groups.length - 1) / 2));
  const lines = groups.slice(0, maxGroups).flatMap((group) => describeGroup(group, most));
  const rest = groups.slice(maxGroups).map(nameWithTimes);
  return rest.length === 0 ? lines : [...lines, `Also: ${listFirst(rest, rest.length, 12)}.`];
}

function describeGroup(group: Group, most: number): string[] {
  return [
    `${nameOf(group)}: ${formatNumber(group.times)} time${group.times === 1 ? '' : 's'}`,
    ...group.examples
      .slice(0, most)
      .flatMap(({ sentence, asked }) => [
        `  ${cut(sentence, maxShown)}`,
        `    ${cut(asked.there, maxShown)} | ${cut(asked.here, maxShown)}`,
      ]),
  ];
}

const nameOf = ({ kind, where }: Group) => (where === undefined ? kind : `${kind} (${where})`);
const nameWithTimes = (group: Group) => `${nameOf(group)} ${formatNumber(group.times)}`;

/** On a full disk, the report of the run before stays. A pipe or a device is written itself. */
function writeReport(file: string, content: unknown): void {
  const part = `${file}.part`;
  try {
    const isReplaced = statSync(file, { throwIfNoEntry: false })?.isFile() ?? true;
    writeFileSync(isReplaced ? part : file, `${JSON.stringify(content, undefined, 2)}\n`);
    if (isReplaced) renameSync(part, file);
  } catch (error) {
    rmSync(part, { force: true });
    throw new ConfigError(`--json cannot be written (${messageOf(error)}).`);
  }
}

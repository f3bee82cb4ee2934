// What the commands that compare have in common: `--accept`, `--json`, and what they print.
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { ConfigError } from '../config.ts';
import { messageOf } from '../errors.ts';
import { formatNumber, listFirst, type Output } from '../import/reporter.ts';
import { type Accepted, isAcceptable, kindMeanings, kinds } from '../legacy/difference.ts';
import { countTimes, type Group, type Report } from '../legacy/report.ts';

export const comparisonOptions = {
  accept: { type: 'string', multiple: true },
  json: { type: 'string' },
  wait: { type: 'string' },
  timeout: { type: 'string' },
} as const;

const width = Math.max(...kinds.map((kind) => kind.length));

export const comparisonHelp = `  --timeout SECONDS
                 how long an answer may take (default: 30)
  --wait SECONDS
                 both services may change while they are compared: what differs is asked again after
                 a quarter of this time, and once more after all of it (default: 2). Where this one
                 follows the other, it takes longer than a round of that
  --accept KIND  a kind of difference that is no failure; it is still counted. May be given more than
                 once. KIND:WHERE accepts it in one place only, such as value:results.likes
  --json FILE    writes the report to a file, with ten examples of each difference and up to 10,000
                 of record-number

Kinds of differences
${kinds.map((kind) => `  ${kind.padEnd(width)}  ${kindMeanings[kind]}\n`).join('')}`;

/** @throws ConfigError for a kind that there is not */
export function readAccepted(values: readonly string[] = []): Accepted {
  for (const value of values) {
    if (isAcceptable(value)) continue;
    throw new ConfigError(
      `--accept is ${JSON.stringify(value)}, but it may be one of ${kinds.join(', ')}.`,
    );
  }
  return new Set(values);
}

/** @throws ConfigError */
export function readNumber(
  option: string,
  value: string | undefined,
  min: number,
  max: number,
  isWhole = false,
): number | undefined {
  if (value === undefined) return undefined;
  const pattern = isWhole ? /^\d+$/ : /^\d+(?:\.\d+)?$/;
  const number = pattern.test(value) ? Number(value) : Number.NaN;
  if (number >= min && number <= max) return number;
  const range = `from ${min} to ${formatNumber(max)}`;
  throw new ConfigError(
    `${option} is ${JSON.stringify(value)}, but it may be a ${isWhole ? 'whole ' : ''}number ${range}.`,
  );
}

/** `--timeout` and `--wait` in milliseconds. @throws ConfigError */
export function readTimes(values: {
  readonly timeout?: string | undefined;
  readonly wait?: string | undefined;
}) {
  return {
    timeout: 1000 * (readNumber('--timeout', values.timeout, 0.1, 3_600) ?? 30),
    wait: 1000 * (readNumber('--wait', values.wait, 0, 3_600) ?? 2),
  };
}

/** Lines of a report, without the last one. */
const maxLines = 15;

/**
 * Prints the report, and writes it where it was asked for.
 * @param compared what was compared, such as `45 records`
 * @param facts for the file; `broken` says why not all was compared
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
  const { different, accepted, notes } = report;
  const isSame = different.length === 0;
  if (file !== undefined) {
    const same = isSame && broken === undefined;
    writeWhole(file, { ...facts, same, differences: different, accepted, notes });
  }
  const lines = [...describeGroups(different), ...notes];
  if (accepted.length > 0) lines.push(`Accepted: ${accepted.map(nameWithTimes).join(', ')}.`);
  const found = isSame
    ? `nothing differs${accepted.length > 0 ? ' but what was accepted' : ''}`
    : `${formatNumber(countTimes(different))} difference${countTimes(different) === 1 ? '' : 's'}`;
  lines.push(`${compared} compared: ${found}.`);
  stdout.write(`${lines.join('\n')}\n`);
  if (broken !== undefined) {
    stderr.write(`Not everything could be compared: ${broken}\n`);
    return 2;
  }
  return isSame ? 0 : 1;
}

/** As many examples of each kind as there is room for, but at least one. */
function describeGroups(groups: readonly Group[]): string[] {
  for (let most = maxLines; most > 1; most--) {
    const lines = groups.flatMap((group) => describeGroup(group, most));
    if (lines.length <= maxLines) return lines;
  }
  const shown: string[] = [];
  const rest = [...groups];
  for (const group of groups) {
    const lines = describeGroup(group, 1);
    if (shown.length + lines.length > maxLines) break;
    shown.push(...lines);
    rest.shift();
  }
  if (rest.length === 0) return shown;
  return [...shown, `Also: ${listFirst(rest.map(nameWithTimes), rest.length, 12)}.`];
}

function describeGroup(group: Group, most: number): string[] {
  return [
    `${nameOf(group)}: ${formatNumber(group.times)} time${group.times === 1 ? '' : 's'}`,
    ...group.examples
      .slice(0, most)
      .flatMap(({ sentence, asked }) => [
        `  ${sentence}`,
        ...(asked ? [`    ${asked.there} | ${asked.here}`] : []),
      ]),
  ];
}

const nameOf = ({ kind, where }: Group) => (where === undefined ? kind : `${kind} (${where})`);
const nameWithTimes = (group: Group) => `${nameOf(group)} ${formatNumber(group.times)}`;

/** Whole or not at all: half a report could be taken for a good one. */
function writeWhole(file: string, content: unknown): void {
  const part = `${file}.part`;
  try {
    writeFileSync(part, `${JSON.stringify(content, undefined, 2)}\n`);
    renameSync(part, file);
  } catch (error) {
    rmSync(part, { force: true });
    throw new ConfigError(`--json cannot be written (${messageOf(error)}).`);
  }
}

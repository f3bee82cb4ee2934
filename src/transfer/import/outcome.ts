// The report of an import or a dry run, line by line, with the fields that are not saved.
import type { Config } from '../../config.ts';
import { formatNumber, listFirst } from '../reporter.ts';
import type { IdSet } from '../source/id-set.ts';
import { type Bases, fieldNames, readProperty, shorten, userFieldNames } from '../source/record.ts';
import type { Progress } from './checkpoint.ts';

export interface ImportOutcome {
  readonly totals: Progress['totals'];
  readonly bases: Bases;
  readonly unkept: Unkept;
  readonly interrupted: boolean;
  /** Outfits of the database that the source does not have; undefined: it was not read completely. */
  readonly notInSource: IdSet | undefined;
  /** Records that a live listing counts beyond those that were read; undefined: unknown. */
  readonly lacking: number | undefined;
  readonly came: number;
  /** Why the source may have more records than were read, as a clause; undefined: it has not. */
  readonly partial: string | undefined;
  readonly seconds: number;
  readonly already: number;
}

/** A number of records, with the first of them as examples. */
export class CountedRecords {
  number = 0;
  readonly first: (number | string)[] = [];

  add(name: number | string): void {
    this.number++;
    if (this.first.length < 3) this.first.push(name);
  }
}

export interface DryRun {
  readonly read: number;
  readonly created: CountedRecords;
  readonly updated: CountedRecords;
  readonly unchanged: CountedRecords;
  readonly broken: number;
  /** Outfits of the database that the source does not have. */
  readonly notInSource: IdSet;
  readonly bases: Bases;
  readonly unkept: Unkept;
  readonly seconds: number;
}

interface OutcomeOptions {
  readonly config: Pick<Config, 'mediaUrl' | 'videoUrl'>;
  readonly canResume: boolean;
  /** Outfits that were pruned; undefined without --prune. */
  readonly removed: number | undefined;
  /** The option that removes what the source does not have. */
  readonly remover: '--prune' | '--replace';
}

export function describeOutcome(outcome: ImportOutcome, options: OutcomeOptions): string[] {
  const { config, canResume, removed, remover } = options;
  const { totals, seconds, already, notInSource, lacking, interrupted } = outcome;
  const { created, updated, unchanged, broken } = totals;
  const kept = `${formatNumber(created)} created, ${formatNumber(updated)} updated, ${formatNumber(unchanged)} unchanged`;
  const pruned = removed === undefined ? '' : `${formatNumber(removed)} removed, `;
  const lines = [
    `${describeReading(totals.read, totals.read - already, seconds)}: ${kept}, ${pruned}${formatNumber(broken)} broken.`,
  ];
  if (already > 0) {
    lines.push(`${formatNumber(already)} of them were read by the interrupted import.`);
  }
  if (interrupted) {
    const next = canResume ? ' The same command goes on from there; --restart begins anew.' : '';
    lines.push(`Interrupted; what was read is saved.${next}`);
  }
  lines.push(...describeSource(outcome, config));
  if (notInSource && notInSource.size > 0 && removed === undefined) {
    lines.push(
      `The database holds ${formatNumber(notInSource.size)} more outfits that are not in this source; ${remover} removes them.`,
    );
  }
  if (lacking) {
    lines.push(
      `The listing counts ${formatNumber(lacking)} more outfits than came: it changed while it was read, so import it once more.`,
    );
  }
  return lines;
}

export function describeDryRun(
  { read, created, updated, unchanged, notInSource, broken, seconds, ...source }: DryRun,
  { config, remover }: Pick<OutcomeOptions, 'config' | 'remover'>,
): string[] {
  const name = (number: number, what: string, ids: Iterable<string | number>) =>
    `${formatNumber(number)} ${what}${number > 0 ? ` (${listFirst(ids, number, 3)})` : ''}`;
  const show = ({ number, first }: CountedRecords, what: string) => name(number, what, first);
  const removed = name(notInSource.size, `removed by ${remover}`, notInSource);
  return [
    `${describeReading(read, read, seconds)}, nothing is saved: ${show(created, 'would be created')}, ${show(updated, 'updated')}, ${show(unchanged, 'unchanged')}, ${removed}, ${formatNumber(broken)} broken.`,
    ...describeSource(source, config),
  ];
}

function describeReading(read: number, now: number, seconds: number): string {
  return `${formatNumber(read)} records read in ${seconds.toFixed(1)} s (${formatNumber(now / seconds)} per second)`;
}

function describeSource(
  { bases, unkept }: { readonly bases: Bases; readonly unkept: Unkept },
  config: OutcomeOptions['config'],
): string[] {
  const lines: string[] = [];
  const settings = [
    bases.media !== undefined && bases.media !== config.mediaUrl && `MEDIA_URL=${bases.media}`,
    bases.video !== undefined && bases.video !== config.videoUrl && `VIDEO_URL=${bases.video}`,
  ].filter((setting) => setting !== false);
  if (settings.length > 0) {
    lines.push(`To serve the URLs of the source, set ${settings.join(' and ')}.`);
  }
  if (unkept.size > 0) {
    const fields = [...unkept].map(
      ([name, number]) => `${name} (${formatNumber(number)} record${number === 1 ? '' : 's'})`,
    );
    lines.push(`Fields that are not kept: ${listFirst(fields, unkept.size, 20)}.`);
  }
  return lines;
}

/** Distinct names that are counted: a source may have another one in each record. */
const maxCounted = 1_000;

export type Unkept = Map<string, number>;

export function countUnkept(unkept: Unkept, record: unknown): void {
  const add = (holder: unknown, savedFields: ReadonlySet<string>, prefix: string) => {
    for (const key of Object.keys(Object(holder))) {
      if (savedFields.has(key)) continue;
      const name = prefix + (/^[\w-]{1,60}$/.test(key) ? key : shorten(key));
      const number = unkept.get(name);
      if (number !== undefined || unkept.size < maxCounted) unkept.set(name, (number ?? 0) + 1);
    }
  };
  add(record, fieldNames, '');
  add(readProperty(record, 'user'), userFieldNames, 'user.');
}

// What an import or a dry run tells at its end, line by line; and the fields that are not kept.
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
  /** Outfits that the source does not have, without those made here; undefined: not all of it was read. */
  readonly notInSource: IdSet | undefined;
  /** Records that a live listing counts beyond those that came; undefined if that is not known. */
  readonly lacking: number | undefined;
  readonly came: number;
  /** Why the source may have more than what came, as a clause; undefined: that was all of it. */
  readonly partial: string | undefined;
  readonly seconds: number;
  readonly already: number;
}

/** Records of one kind: how many there are, and the first of them. */
export class Found {
  number = 0;
  readonly first: (number | string)[] = [];

  add(name: number | string): void {
    this.number++;
    if (this.first.length < 3) this.first.push(name);
  }
}

export interface DryRun {
  readonly read: number;
  readonly created: Found;
  readonly updated: Found;
  readonly unchanged: Found;
  readonly broken: number;
  /** Outfits in the database that the source does not have, without those that are made here. */
  readonly notInSource: IdSet;
  readonly bases: Bases;
  readonly unkept: Unkept;
  readonly seconds: number;
}

interface OutcomeOptions {
  readonly config: Pick<Config, 'mediaUrl' | 'videoUrl'>;
  readonly canResume: boolean;
  /** Outfits that were pruned; undefined: that was not asked for. */
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
  const show = ({ number, first }: Found, what: string) => name(number, what, first);
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

/** Different names that are counted: a source may have one for each record. */
const maxCounted = 1_000;

export type Unkept = Map<string, number>;

export function countUnkept(unkept: Unkept, record: unknown): void {
  const add = (holder: unknown, known: ReadonlySet<string>, prefix: string) => {
    for (const key of Object.keys(Object(holder))) {
      if (known.has(key)) continue;
      const name = prefix + (/^[\w-]{1,60}$/.test(key) ? key : shorten(key));
      const number = unkept.get(name);
      if (number !== undefined || unkept.size < maxCounted) unkept.set(name, (number ?? 0) + 1);
    }
  };
  add(record, fieldNames, '');
  add(readProperty(record, 'user'), userFieldNames, 'user.');
}

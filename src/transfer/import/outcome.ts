// The report of an import or a dry run, line by line, with the fields that are not saved.
import type { Config } from '../../config.ts';
import type { IdSet } from '../../old-listing/id-set.ts';
import { readProperty } from '../../old-listing/page.ts';
import type { Removed } from '../../outfits/writes/bulk.ts';
import { formatNumber, listFirst } from '../reporter.ts';
import { type Bases, fieldNames, shorten, userFieldNames } from '../source/record.ts';
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
  /** Whether a page did not come that another one links to. */
  readonly isShortened: boolean;
  readonly came: number;
  /** What --replace removed; undefined: nothing, without it or because the import is `partial`. */
  readonly removed: Removed | undefined;
  /** Why the source may have more records than were read, as a clause; undefined: it has not. */
  readonly partial: string | undefined;
  readonly seconds: number;
  readonly already: number;
}

interface Crawl {
  /** How it ended, as a clause, if not at the end of the source. */
  readonly ending?: string | false | undefined;
  readonly broken: number;
  readonly count: number;
  readonly came: number;
}

/** Why nothing may be removed because it did not come, as a clause: the source may have more. */
export function reasonAgainstRemoval({ ending, broken, count, came }: Crawl): string | undefined {
  if (ending) return ending;
  if (broken > 0) return 'some records were broken';
  if (count > came) return 'the listing counts more than came';
  return came === 0 ? 'the source is empty' : undefined;
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
  /** Why --replace would remove nothing. */
  readonly partial: string | undefined;
  readonly bases: Bases;
  readonly unkept: Unkept;
  readonly seconds: number;
}

interface OutcomeOptions {
  readonly config: Pick<Config, 'mediaUrl' | 'videoUrl'>;
  readonly canResume: boolean;
  /** Outfits that were pruned; undefined without --prune. */
  readonly pruned: number | undefined;
  /** Whether --replace was given. */
  readonly replace: boolean;
  /** The option that removes what the source does not have. */
  readonly remover: '--prune' | '--replace';
}

export function describeOutcome(outcome: ImportOutcome, options: OutcomeOptions): string[] {
  const { config, canResume, pruned, replace, remover } = options;
  const { totals, seconds, already, notInSource, lacking, interrupted, removed, partial } = outcome;
  const { created, updated, unchanged, broken } = totals;
  const kept = `${formatNumber(created)} created, ${formatNumber(updated)} updated, ${formatNumber(unchanged)} unchanged`;
  const less = pruned === undefined ? '' : `${formatNumber(pruned)} removed, `;
  const lines = [
    `${describeReading(totals.read, totals.read - already, seconds)}: ${kept}, ${less}${formatNumber(broken)} broken.`,
  ];
  if (already > 0) {
    lines.push(`${formatNumber(already)} of them were read by the interrupted import.`);
  }
  if (interrupted) {
    const next = canResume ? ' The same command goes on from there; --restart begins anew.' : '';
    lines.push(`Interrupted; what was read is saved.${next}`);
  }
  lines.push(...describeSource(outcome, config));
  if (removed) {
    const { outfits, users, likes } = removed;
    lines.push(
      `Removed, because the source does not have them: ${formatNumber(outfits)} outfits, ${formatNumber(users)} users, ${formatNumber(likes)} likes.`,
    );
  } else if (replace) {
    lines.push(`Nothing is removed, because ${partial}.`);
  } else if (notInSource && notInSource.size > 0 && pruned === undefined) {
    lines.push(
      `The database holds ${formatNumber(notInSource.size)} more outfits that are not in this source; ${remover} removes them.`,
    );
  }
  if (lacking) {
    lines.push(
      `The listing counts ${formatNumber(lacking)} more outfits than came: import it once more, or find the page that is missing.`,
    );
  }
  return lines;
}

export function describeDryRun(
  { read, created, updated, unchanged, notInSource, broken, seconds, partial, ...source }: DryRun,
  { config, remover }: Pick<OutcomeOptions, 'config' | 'remover'>,
): string[] {
  const name = (number: number, what: string, ids: Iterable<string | number>) =>
    `${formatNumber(number)} ${what}${number > 0 ? ` (${listFirst(ids, number, 3)})` : ''}`;
  const show = ({ number, first }: CountedRecords, what: string) => name(number, what, first);
  const removed = name(notInSource.size, `removed by ${remover}`, notInSource);
  return [
    `${describeReading(read, read, seconds)}, nothing is saved: ${show(created, 'would be created')}, ${show(updated, 'updated')}, ${show(unchanged, 'unchanged')}, ${removed}, ${formatNumber(broken)} broken.`,
    ...(partial ? [`Nothing would be removed, because ${partial}.`] : []),
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

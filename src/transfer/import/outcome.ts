// The report of an import or a dry run, line by line, with the fields that are not saved.
import type { Config } from '../../config/config.ts';
import type { IdSet } from '../../old-listing/id-set.ts';
import { readProperty } from '../../old-listing/page.ts';
import type { Recent } from '../../old-listing/record-lookup.ts';
import type { Removed } from '../../outfits/writes/bulk.ts';
import { formatNumber, listFirst } from '../reporter.ts';
import { type Bases, fieldNames, findOutside, shorten, userFieldNames } from '../source/record.ts';
import type { Progress } from './checkpoint.ts';
import type { Compared } from './dry-run.ts';

export interface ImportOutcome {
  readonly totals: Progress['totals'];
  readonly bases: Bases;
  readonly unkept: Unkept;
  /** Fields of saved records that the contract does not allow. */
  readonly outside: Unkept;
  readonly interrupted: boolean;
  /** Outfits of the database that the source does not have; undefined: it was not read completely. */
  readonly notInSource: IdSet | undefined;
  /** Records that a live listing counts beyond those that were read; undefined: unknown. */
  readonly lacking: number | undefined;
  /** Whether a page did not come that another one links to. */
  readonly isShortened: boolean;
  readonly came: number;
  /** The last outfits that came. */
  readonly recent: Recent;
  /** What --replace removed; undefined: nothing, without it or because the import is `partial`. */
  readonly removed: Removed | undefined;
  /** Why the source may have more records than were read, as a clause; undefined: it has not. */
  readonly partial: string | undefined;
  readonly seconds: number;
  readonly already: number;
  /** Of a dry run: the first records by what an import would do with them. */
  readonly first?: Compared;
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
  const { first } = outcome;
  const show = (number: number, what: string, names?: Iterable<string | number>) =>
    `${formatNumber(number)} ${what}${names && number > 0 ? ` (${listFirst(names, number, 3)})` : ''}`;
  const kept = [
    show(created, first ? 'would be created' : 'created', first?.created),
    show(updated, 'updated', first?.updated),
    show(unchanged, 'unchanged', first?.unchanged),
    ...(first && notInSource ? [show(notInSource.size, `removed by ${remover}`, notInSource)] : []),
    ...(pruned === undefined ? [] : [show(pruned, 'removed')]),
    show(broken, 'broken'),
  ].join(', ');
  const lines = [
    `${formatNumber(totals.read)} records read in ${seconds.toFixed(1)} s (${formatNumber((totals.read - already) / seconds)} per second)${first ? ', nothing is saved' : ''}: ${kept}.`,
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
  } else if (replace && partial !== undefined) {
    lines.push(`Nothing ${first ? 'would be' : 'is'} removed, because ${partial}.`);
  } else if (notInSource && notInSource.size > 0 && pruned === undefined && !first) {
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

function describeSource(
  { bases, unkept, outside }: Pick<ImportOutcome, 'bases' | 'unkept' | 'outside'>,
  config: OutcomeOptions['config'],
): string[] {
  const lines: string[] = [];
  const settings = [
    bases.media !== undefined &&
      bases.media !== config.mediaUrl &&
      `MEDIA_URL=${absolute(bases.media)}`,
    bases.video !== undefined &&
      bases.video !== config.videoUrl &&
      `VIDEO_URL=${absolute(bases.video)}`,
  ].filter((setting) => setting !== false);
  if (settings.length > 0) {
    lines.push(`To serve the URLs of the source, set ${settings.join(' and ')}.`);
  }
  const name = (fields: Unkept) => {
    const named = [...fields].map(
      ([name, number]) => `${name} (${formatNumber(number)} record${number === 1 ? '' : 's'})`,
    );
    return listFirst(named, named.length, 20);
  };
  if (outside.size > 0) lines.push(`Saved, but outside of the contract: ${name(outside)}.`);
  if (unkept.size > 0) lines.push(`Fields that are not kept: ${name(unkept)}.`);
  return lines;
}

/** A source may have addresses without a host. */
const absolute = (base: string) => (/^https?:/.test(base) ? base : `https://<host>${base}`);

/** Distinct names that are counted: a source may have another one in each record. */
const maxCounted = 1_000;

/** Numbers of records by the names of fields. */
export type Unkept = Map<string, number>;

/** The first value of each field is in its name. */
export function countOutside(outside: Unkept, record: unknown): void {
  for (const [name, value] of findOutside(record)) {
    const known = [...outside.keys()].find((key) => key.startsWith(`${name} such as `));
    const key = known ?? `${name} such as ${shorten(value)}`;
    outside.set(key, (outside.get(key) ?? 0) + 1);
  }
}

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

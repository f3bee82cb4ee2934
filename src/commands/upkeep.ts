// Options of the import that keep a database like a live listing.
import { ConfigError } from '../config.ts';
import { readWholeNumber } from './option-values.ts';

/** How the database is kept like a live listing. */
export interface Upkeep {
  /** Milliseconds between two pages. */
  readonly pause: number | undefined;
  /** Seconds between two crawls; undefined: one is enough. */
  readonly follow: number | undefined;
  readonly prune: boolean;
  readonly yes: boolean;
  /** Most outfits that are removed at a time; undefined: half of those that are there. */
  readonly maxRemoved: number | undefined;
}

interface UpkeepValues {
  readonly pause?: string;
  readonly follow?: string;
  readonly prune: boolean;
  readonly yes: boolean;
  readonly replace: boolean;
  readonly 'max-removed'?: string;
}

/** @throws ConfigError for options that do not go together */
export function readUpkeep(values: UpkeepValues, isLive: boolean): Upkeep {
  const { prune, yes, replace } = values;
  const maxRemoved = readWholeNumber('--max-removed', values['max-removed'], 0, 2_147_483_647);
  const pause = readWholeNumber('--pause', values.pause, 0, 600_000);
  const follow = readWholeNumber('--follow', values.follow, 1, 604_800);
  const used = [
    pause !== undefined && '--pause',
    follow !== undefined && '--follow',
    prune && '--prune',
  ];
  const [first] = used.filter((option) => option !== false);
  if (first && !isLive) throw new ConfigError(`${first} needs a live listing as SOURCE.`);
  if (yes && !prune) throw new ConfigError('--yes is about what --prune removes: add --prune.');
  if (maxRemoved !== undefined && !yes) throw new ConfigError('--max-removed needs --yes.');
  if (replace && (follow !== undefined || prune)) {
    throw new ConfigError(
      '--replace empties the database, and --follow and --prune keep it: import once with --replace first.',
    );
  }
  return { pause, follow, prune, yes, maxRemoved };
}

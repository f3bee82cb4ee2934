// Outfits of the database that a source does not have, and the removal of those that it has lost.
import type pg from 'pg';
import { deleteOutfits } from '../../outfits/writes/bulk.ts';
import { formatNumber, listFirst } from '../reporter.ts';
import { IdSet } from '../source/id-set.ts';
import type { ImportOutcome } from './outcome.ts';

const idsPerPage = 50_000;
/** Ids that are named before they are removed, and that are removed at a time. */
const maxNamed = 10;
const batchSize = 1_000;

/** @param firstId outfits from there on are made here, and not looked at */
export async function findNotInSource(
  pool: pg.Pool,
  source: IdSet,
  firstId = Number.POSITIVE_INFINITY,
): Promise<IdSet> {
  const found = new IdSet();
  let last = -(2 ** 31) - 1;
  for (;;) {
    const { rows } = await pool.query<{ id: number }>(
      'SELECT id FROM outfits WHERE id > $1::bigint ORDER BY id LIMIT $2',
      [last, idsPerPage],
    );
    for (const { id } of rows) if (id < firstId && !source.has(id)) found.add(id);
    last = rows.at(-1)?.id ?? last;
    if (rows.length < idsPerPage) return found;
  }
}

interface PruneOptions {
  readonly pool: pg.Pool;
  /** Whether to remove at all; otherwise only what would be removed is named. */
  readonly confirmed: boolean;
  /** Most outfits to remove at a time; undefined: half of those that are there. */
  readonly maxRemoved: number | undefined;
  readonly signal: AbortSignal;
  readonly say: (sentence: string) => void;
}

/** One crawl proves nothing: an outfit may move to a page that was read before, because another was deleted there. */
export class Pruner {
  /** Whether another whole crawl would make something removable. */
  isWaiting = false;
  /** Whether the last crawl removed nothing, though it was to, for a reason that was said. */
  hasRefused = false;
  #missed = new IdSet();

  constructor(private readonly options: PruneOptions) {}

  /** Removes what this crawl and the one before did not have, if this one is whole. @returns how many */
  async prune({ came, notInSource, partial }: ImportOutcome): Promise<number> {
    const { pool, confirmed, maxRemoved, signal, say } = this.options;
    const before = this.#missed;
    this.#missed = new IdSet();
    this.isWaiting = false;
    this.hasRefused = false;
    if (partial !== undefined || !notInSource) {
      this.hasRefused = confirmed;
      say(`Nothing is removed, because ${partial}.`);
      return 0;
    }
    this.#missed = notInSource;
    const lost = new IdSet();
    for (const id of notInSource) if (before.has(id)) lost.add(id);
    this.isWaiting = lost.size < notInSource.size;
    if (this.isWaiting) {
      say(
        `${name(notInSource.without(lost), notInSource.size - lost.size)} did not come: what the next whole crawl does not have either is lost.`,
      );
    }
    if (lost.size === 0) return 0;
    const what = `${name(lost, lost.size)} did not come in two whole crawls`;
    // A source that lost so much is more likely to be broken than to mean it.
    const most = maxRemoved ?? Math.floor((came + notInSource.size) / 2);
    if (!confirmed) {
      say(`${what}. Nothing is removed without --yes.`);
      return 0;
    }
    if (lost.size > most) {
      this.hasRefused = true;
      say(
        `${what}. That is more than ${formatNumber(most)}, so nothing is removed: if it is right, add --max-removed ${lost.size}.`,
      );
      return 0;
    }
    say(`${what}, and will be removed now.`);
    let removed = 0;
    const ids = [...lost];
    for (let start = 0; start < ids.length && !signal.aborted; start += batchSize) {
      removed += await deleteOutfits(pool, ids.slice(start, start + batchSize));
    }
    return removed;
  }
}

function name(ids: Iterable<number>, size: number): string {
  return `${formatNumber(size)} outfit${size === 1 ? '' : 's'} (${listFirst(ids, size, maxNamed)})`;
}

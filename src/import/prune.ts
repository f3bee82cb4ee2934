// Removes the outfits that a source has lost: those that two whole crawls in a row did not have.
import type pg from 'pg';
import { deleteOutfits } from '../outfits/bulk.ts';
import { IdSet } from './id-set.ts';
import type { ImportOutcome } from './import.ts';
import { formatNumber } from './reporter.ts';

/** Ids that are named before they are removed, and that are removed at a time. */
const maxNamed = 10;
const batchSize = 1_000;

export interface PruneOptions {
  readonly pool: pg.Pool;
  /** Whether to remove at all; otherwise only what would be removed is named. */
  readonly confirmed: boolean;
  /** Most outfits to remove at a time; undefined: half of those that are there. */
  readonly maxRemoved: number | undefined;
  /** Ends the removing after the batch that is being removed. */
  readonly signal: AbortSignal;
  readonly say: (sentence: string) => void;
}

export interface Pruner {
  /**
   * Looks at a crawl, and removes what it and the one before did not have. A crawl that is not whole
   * removes nothing, and what others missed before it does not count any more.
   * @returns the number of removed outfits
   */
  look(crawl: Pick<ImportOutcome, 'came' | 'foreign' | 'partial'>): Promise<number>;
  /** Whether another whole crawl would make something removable. */
  readonly isWaiting: boolean;
  /** Whether nothing was removed by the last look, though it was to be, for a reason that it said. */
  readonly hasRefused: boolean;
}

/**
 * One crawl proves nothing: an outfit may move to a page that has been read already, while it goes on,
 * because another one was deleted there.
 */
export function createPruner({ pool, confirmed, maxRemoved, signal, say }: PruneOptions): Pruner {
  let missed = new IdSet();
  let isWaiting = false;
  let hasRefused = false;
  return {
    get isWaiting() {
      return isWaiting;
    },
    get hasRefused() {
      return hasRefused;
    },
    async look({ came, foreign, partial }) {
      const before = missed;
      missed = new IdSet();
      isWaiting = false;
      hasRefused = false;
      if (partial !== undefined || !foreign) {
        hasRefused = confirmed;
        say(`Nothing is removed, because ${partial}.`);
        return 0;
      }
      missed = foreign;
      const lost = new IdSet();
      for (const id of foreign) if (before.has(id)) lost.add(id);
      isWaiting = lost.size < foreign.size;
      if (isWaiting) {
        say(
          `${name(foreign.without(lost), foreign.size - lost.size)} did not come: what the next whole crawl does not have either is lost.`,
        );
      }
      if (lost.size === 0) return 0;
      const what = `${name(lost, lost.size)} did not come in two whole crawls`;
      // A source that lost so much is more likely to be broken than to mean it.
      const most = maxRemoved ?? Math.floor((came + foreign.size) / 2);
      if (!confirmed) {
        say(`${what}. Nothing is removed without --yes.`);
        return 0;
      }
      if (lost.size > most) {
        hasRefused = true;
        say(
          `${what}. That is more than ${formatNumber(most)}, so nothing is removed: if it is right, add --max-removed ${lost.size}.`,
        );
        return 0;
      }
      say(`${what}, and will be removed now.`);
      return remove(lost);
    },
  };

  async function remove(lost: IdSet): Promise<number> {
    let removed = 0;
    let batch: number[] = [];
    for (const id of lost) {
      batch.push(id);
      if (batch.length < batchSize) continue;
      removed += await deleteOutfits(pool, batch);
      batch = [];
      if (signal.aborted) return removed;
    }
    return removed + (await deleteOutfits(pool, batch));
  }
}

function name(ids: Iterable<number>, size: number): string {
  const named: number[] = [];
  for (const id of ids) {
    if (named.length === maxNamed) break;
    named.push(id);
  }
  const more = size > named.length ? ` and ${formatNumber(size - named.length)} more` : '';
  return `${formatNumber(size)} outfit${size === 1 ? '' : 's'} (${named.join(', ')}${more})`;
}

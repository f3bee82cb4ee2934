// Finds outfits of the database that a source does not have, and removes those that two crawls did not have.
// In SQL: millions of ids, fifty thousand a statement.
import type pg from 'pg';
import { IdSet } from '../../old-listing/id-set.ts';
import { deleteOutfits } from '../../outfits/writes/bulk.ts';
import { formatNumber, listFirst } from '../reporter.ts';
import type { ImportOutcome } from './outcome.ts';

const idsPerPage = 50_000;
/** Ids in a message, and ids per transaction. */
const maxNamed = 10;
const batchSize = 1_000;

/** @param firstId ids from this one on are excluded: they are created here */
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
  /** Whether to remove outfits; otherwise only print them. */
  readonly confirmed: boolean;
  /** Maximum of outfits to remove after a crawl; undefined: half of all. */
  readonly maxRemoved: number | undefined;
  readonly signal: AbortSignal;
  readonly print: (sentence: string) => void;
}

/** Needs two crawls: a deletion may move an outfit onto a page that was read before. */
export class Pruner {
  /** Whether outfits are to be confirmed by another complete crawl. */
  isWaiting = false;
  /** Whether the last crawl removed nothing although --yes was given; the reason was printed. */
  hasRefused = false;
  #absent = new IdSet();

  constructor(private readonly options: PruneOptions) {}

  /** Removes outfits that neither this crawl nor the one before had, if this one is complete. @returns how many */
  async prune({ came, notInSource, partial }: ImportOutcome): Promise<number> {
    const { pool, confirmed, maxRemoved, signal, print } = this.options;
    const before = this.#absent;
    this.#absent = new IdSet();
    this.isWaiting = false;
    this.hasRefused = false;
    if (partial !== undefined || !notInSource) {
      this.hasRefused = confirmed;
      print(`Nothing is removed, because ${partial}.`);
      return 0;
    }
    this.#absent = notInSource;
    const absentTwice = new IdSet();
    for (const id of notInSource) if (before.has(id)) absentTwice.add(id);
    this.isWaiting = absentTwice.size < notInSource.size;
    if (this.isWaiting) {
      print(
        `${name(notInSource.without(absentTwice), notInSource.size - absentTwice.size)} did not come: what the next whole crawl does not have either is lost.`,
      );
    }
    if (absentTwice.size === 0) return 0;
    const what = `${name(absentTwice, absentTwice.size)} did not come in two whole crawls`;
    // Safety limit: a source without so many outfits is probably broken.
    const most = maxRemoved ?? Math.floor((came + notInSource.size) / 2);
    if (!confirmed) {
      print(`${what}. Nothing is removed without --yes.`);
      return 0;
    }
    if (absentTwice.size > most) {
      this.hasRefused = true;
      print(
        `${what}. That is more than ${formatNumber(most)}, so nothing is removed: if it is right, add --max-removed ${absentTwice.size}.`,
      );
      return 0;
    }
    print(`${what}, and will be removed now.`);
    let removed = 0;
    const ids = [...absentTwice];
    for (let start = 0; start < ids.length && !signal.aborted; start += batchSize) {
      removed += await deleteOutfits(pool, ids.slice(start, start + batchSize));
    }
    return removed;
  }
}

function name(ids: Iterable<number>, size: number): string {
  return `${formatNumber(size)} outfit${size === 1 ? '' : 's'} (${listFirst(ids, size, maxNamed)})`;
}

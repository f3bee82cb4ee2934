// Removes outfits that a live listing no longer has.
// In SQL: millions of ids, fifty thousand a statement.
import type pg from 'pg';
import { IdSet } from '../../old-listing/id-set.ts';
import { type LookupOptions, lookUpRecords, type Recent } from '../../old-listing/record-lookup.ts';
import { deleteOutfits, readMoment, saveOutfits } from '../../outfits/writes/bulk.ts';
import { formatNumber, listFirst } from '../reporter.ts';
import { type Bases, createCheck } from '../source/record.ts';

const idsPerPage = 50_000;
/** Ids in a message, and ids per transaction. */
const maxNamed = 10;
const batchSize = 1_000;
/** Outfits that are asked for by themselves after a crawl: more are only removed by two crawls. */
const maxLookedUp = 10_000;

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
  readonly lookup: LookupOptions;
}

/** What one run over a source has found. */
interface Crawl {
  readonly came: number;
  /** Outfits of the database that the source does not have; undefined: it was not read completely. */
  readonly notInSource: IdSet | undefined;
  /** Why the source may have more records than were read, as a clause; undefined: it has not. */
  readonly partial: string | undefined;
  readonly bases: Bases;
  /** The last outfits that came. */
  readonly recent: Recent;
}

/** Asks for each outfit that did not come. Where the source does not say, two crawls in a row must lack it. */
export class Pruner {
  /** Whether outfits are to be confirmed by another complete crawl. */
  isWaiting = false;
  /** Whether the last crawl removed nothing although --yes was given; the reason was printed. */
  hasRefused = false;
  #absent = new IdSet();

  constructor(private readonly options: PruneOptions) {}

  /** @returns how many outfits were removed */
  async prune(crawl: Crawl): Promise<number> {
    const before = this.#absent;
    this.#absent = new IdSet();
    this.isWaiting = false;
    this.hasRefused = false;
    const { came, notInSource, partial } = crawl;
    if (!notInSource || came === 0) return this.#refuse(partial);
    const most = this.options.maxRemoved ?? Math.floor((came + notInSource.size) / 2);
    const gone = await this.#findGone(crawl, notInSource);
    if (gone) return this.#remove(gone, 'did not come, and the source answers 404 for each', most);
    if (partial !== undefined) return this.#refuse(partial);
    this.#absent = notInSource;
    const absentTwice = new IdSet();
    for (const id of notInSource) if (before.has(id)) absentTwice.add(id);
    this.isWaiting = absentTwice.size < notInSource.size;
    if (this.isWaiting) {
      this.options.print(
        `${name(notInSource.without(absentTwice), notInSource.size - absentTwice.size)} did not come: those that the next complete crawl lacks too are to be removed.`,
      );
    }
    return this.#remove(absentTwice, 'did not come in two complete crawls', most);
  }

  #refuse(reason = 'it was interrupted'): number {
    this.hasRefused = this.options.confirmed;
    this.options.print(`Nothing is removed, because ${reason}.`);
    return 0;
  }

  /** Outfits that are gone, of those that did not come; undefined when the source does not say. Saves the others. */
  async #findGone({ bases, recent }: Crawl, ids: IdSet): Promise<IdSet | undefined> {
    const { pool, lookup, print } = this.options;
    if (ids.size === 0) return ids;
    if (ids.size > maxLookedUp) return undefined;
    const moment = await readMoment(pool);
    const { rows: hidden } = await pool.query<{ id: number }>(
      'SELECT id FROM outfits WHERE private AND id = ANY($1::int[])',
      [recent.private.length > 0 ? [] : [...ids]],
    );
    const unknown = new IdSet();
    for (const { id } of hidden) unknown.add(id);
    const found = await lookUpRecords(lookup, ids.without(unknown), recent);
    if (!found) return undefined;
    if (unknown.size > 0) {
      this.hasRefused = this.options.confirmed;
      const which = name(unknown, unknown.size);
      print(
        `Private: ${which} did not come, and no other private outfit did: they stay. Give the --header of a user who sees them.`,
      );
    }
    const check = createCheck(bases);
    const rows = found.records.flatMap((record) => check(record).row ?? []);
    await saveOutfits(pool, rows, moment);
    const gone = new IdSet();
    for (const id of found.gone) gone.add(id);
    return gone;
  }

  /** @param reason a clause behind the outfits */
  async #remove(ids: IdSet, reason: string, most: number): Promise<number> {
    const { pool, confirmed, signal, print } = this.options;
    if (ids.size === 0) return 0;
    const what = `${name(ids, ids.size)} ${reason}`;
    if (!confirmed) {
      print(`${what}. Nothing is removed without --yes.`);
      return 0;
    }
    // Safety limit: a source without so many outfits is probably broken.
    if (ids.size > most) {
      this.hasRefused = true;
      print(
        `${what}. That is more than ${formatNumber(most)}, so nothing is removed: if it is right, add --max-removed ${ids.size}.`,
      );
      return 0;
    }
    print(`${what}, and will be removed now.`);
    let removed = 0;
    const all = [...ids];
    for (let start = 0; start < all.length && !signal.aborted; start += batchSize) {
      removed += await deleteOutfits(pool, all.slice(start, start + batchSize));
    }
    return removed;
  }
}

function name(ids: Iterable<number>, size: number): string {
  return `${formatNumber(size)} outfit${size === 1 ? '' : 's'} (${listFirst(ids, size, maxNamed)})`;
}

import type { ReadRows } from '../database/read.ts';
import type { Ordering } from './ordering.ts';
import { type FlatRow, type OutfitRow, rowColumns, rowOf } from './row.ts';

/** One page of a numbered list. */
export interface OutfitPage {
  /** Outfits in the whole list. */
  readonly count: number;
  /** Pages in the whole list; 1 when it is empty. */
  readonly pageCount: number;
  /** Number of this page, from 1. */
  readonly page: number;
  readonly rows: readonly OutfitRow[];
}

export interface PageRequest {
  readonly ordering: Ordering;
  /** From 1, or the last page, whichever that is when the list is read. */
  readonly page: number | 'last';
  /** Outfits per page. */
  readonly pageSize: number;
}

/** There is no such page. */
export class PastTheEndError extends Error {
  constructor(
    readonly page: number,
    readonly pageCount: number,
  ) {
    super(`Page ${page} does not exist: the last page is ${pageCount}.`);
  }
}

/**
 * Reads count, rows and owners in one statement, so that they belong together whatever is written
 * meanwhile. Costs the same for every page of a table of any size: see counting.md.
 * @throws PastTheEndError
 */
export async function findPage(read: ReadRows, request: PageRequest): Promise<OutfitPage> {
  const { ordering, page, pageSize } = request;
  const skip = page === 'last' ? null : (page - 1) * pageSize;
  const rows = await read<PageRow>(pageStatement(ordering), [withPrivate, skip, pageSize]);
  return pageOf(rows, page, pageSize);
}

/** Outfits in the list of all. */
export async function countOutfits(read: ReadRows): Promise<number> {
  const statement = 'SELECT count_outfits($1::boolean)::int AS count';
  const [row] = await read<{ count: number }>(statement, [withPrivate]);
  return row?.count ?? 0;
}

/** Every list has the private outfits too. */
const withPrivate = true;

/** A row of a page statement; one without an outfit when the page has none. */
export type PageRow = { count: number } & (FlatRow | { id: null });

/** @throws PastTheEndError */
export function pageOf(
  rows: readonly PageRow[],
  page: number | 'last',
  pageSize: number,
): OutfitPage {
  const count = rows[0]?.count ?? 0;
  const pageCount = Math.max(1, Math.ceil(count / pageSize));
  const found = page === 'last' ? pageCount : page;
  if (found > pageCount) throw new PastTheEndError(found, pageCount);
  return {
    count,
    pageCount,
    page: found,
    rows: rows.flatMap((row) => (row.id === null ? [] : [rowOf(row)])),
  };
}

/**
 * $1 whether with the private ones, $2 outfits to skip (null: to the last page), $3 page size. The
 * functions walk in ascending order: a descending page is the mirrored range, read from its end.
 */
function pageStatement({ field, direction }: Ordering): string {
  const skipped = direction === 'asc' ? 'skip' : 'greatest(count - skip - $3::int, 0)';
  return `
    SELECT page.count, ${rowColumns}
    FROM (
      SELECT count, coalesce($2::bigint, greatest(count - 1, 0) / $3::int * $3::int) AS skip
      FROM (
        -- count_outfits, but inline: the planner would call the function once for each use.
        SELECT coalesce(sum(public + CASE WHEN $1::boolean THEN private ELSE 0 END), 0)::int AS count
        FROM outfit_counts WHERE level = 20
      ) total
    ) page
    LEFT JOIN LATERAL outfits_by_${field}(
      $1::boolean, ${skipped}, least(greatest(count - skip, 0), $3::int)::int
    ) place ON true
    LEFT JOIN outfits o ON o.id = place.id
    LEFT JOIN users u ON u.id = o.user_id
    ORDER BY place.position ${direction}`;
}

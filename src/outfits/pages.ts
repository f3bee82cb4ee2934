// Numbered pages: count, rows and owners in one statement.
import { builtOnce, type ReadRows } from '../database/read.ts';
import { madeOfCount, madeOfPage, membersOf } from './made-of.ts';
import type { Ordering } from './ordering.ts';
import { countOf, givenMembers, nearPageStatement, pageStatement } from './page-statement.ts';
import { rangeLimit } from './ranges.ts';
import { type FlatRow, type OutfitRow, rowOf } from './row.ts';
import { membersIn, type Visibility, viewerValues } from './visibility.ts';

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
export async function findPage(
  read: ReadRows,
  visibility: Visibility,
  request: PageRequest,
): Promise<OutfitPage> {
  const { ordering, page, pageSize } = request;
  const skip = page === 'last' ? null : (page - 1) * pageSize;
  const nearLimit = rangeLimit(pageSize);
  const isNear = skip !== null && skip + pageSize <= nearLimit;
  const rows = await read<PageRow>(
    builtOnce(
      `page ${isNear ? `${nearLimit} ${visibility.private}` : ''} ${ordering.field} ${ordering.direction}`,
      () => (isNear ? nearPageStatement(visibility, ordering, nearLimit) : pageStatement(ordering)),
    ),
    [...membersIn(visibility), skip, pageSize, ...(isNear ? viewerValues(visibility) : [])],
    { madeOf: (found) => madeOfPage(membersOf(visibility), ordering, outfitsIn(found)) },
  );
  return pageOf(rows, page, pageSize);
}

/** Outfits in the whole visible list. */
export async function countOutfits(read: ReadRows, visibility: Visibility): Promise<number> {
  const statement = `SELECT ${countOf(givenMembers)} AS count`;
  const [row] = await read<{ count: number }>(statement, membersIn(visibility), {
    madeOf: () => madeOfCount(membersOf(visibility)),
  });
  return row?.count ?? 0;
}

/** A row of a page statement; one without an outfit when the page has none. */
export type PageRow = { count: number } & (FlatRow | { id: null });

/** The outfits of a page, as they were read. */
export function outfitsIn(rows: readonly PageRow[]): FlatRow[] {
  return rows.filter((row) => row.id !== null);
}

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
    rows: outfitsIn(rows).map(rowOf),
  };
}

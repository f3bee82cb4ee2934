import type { PrismaClient } from '../generated/prisma/client.ts';
import { type Ordering, orderBy } from './ordering.ts';
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
  /** Only the outfits of this user; everyone's when absent. */
  readonly userId?: number;
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
 * meanwhile.
 * @throws PastTheEndError
 */
export async function findPage(prisma: PrismaClient, request: PageRequest): Promise<OutfitPage> {
  const { ordering, page, pageSize, userId } = request;
  const rows = await prisma.$queryRawUnsafe<({ count: number } & (FlatRow | { id: null }))[]>(
    pageStatement(ordering, userId !== undefined),
    page === 'last' ? null : (page - 1) * pageSize,
    pageSize,
    ...(userId === undefined ? [] : [userId]),
  );
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

/** $1 rows to skip (null: to the last page), $2 page size, $3 user. Gives a row also when empty. */
function pageStatement(ordering: Ordering, ofUser: boolean): string {
  const where = ofUser ? 'WHERE user_id = $3::int' : '';
  return `
    SELECT total.count, ${rowColumns}
    FROM (SELECT count(*)::int AS count FROM outfits ${where}) total
    LEFT JOIN LATERAL (
      SELECT * FROM outfits o ${where}
      ORDER BY ${orderBy(ordering)}
      OFFSET coalesce($1::bigint, greatest(total.count - 1, 0) / $2::int * $2::int) LIMIT $2::int
    ) o ON true
    LEFT JOIN users u ON u.id = o.user_id
    ORDER BY ${orderBy(ordering)}`;
}

/** Outfits in the list of all. */
export async function countOutfits(prisma: PrismaClient): Promise<number> {
  return prisma.outfit.count();
}

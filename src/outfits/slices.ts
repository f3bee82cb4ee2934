import type { PrismaClient } from '../generated/prisma/client.ts';
import { keyColumns, type Ordering, orderBy, reverse, type SortKey } from './ordering.ts';
import { type FlatRow, type OutfitRow, rowColumns, rowOf } from './row.ts';

/** The outfits strictly between two places of a list. */
export interface SliceRequest {
  readonly ordering: Ordering;
  readonly after?: SortKey | undefined;
  readonly before?: SortKey | undefined;
  /** Most outfits to read. */
  readonly limit: number;
  /** Which end of the range to read from. */
  readonly from: 'start' | 'end';
}

/**
 * Reads a slice, in list order. Seeks the index at the given place: the cost is that of the rows
 * read, wherever in the list they are.
 */
export async function findSlice(
  prisma: PrismaClient,
  { ordering, after, before, limit, from }: SliceRequest,
): Promise<OutfitRow[]> {
  const reading = from === 'start' ? ordering : reverse(ordering);
  const [low, high] = from === 'start' ? [after, before] : [before, after];
  const flat = await prisma.$queryRawUnsafe<FlatRow[]>(
    sliceStatement(reading, low !== undefined, high !== undefined),
    limit,
    ...keyValues(reading, low),
    ...keyValues(reading, high),
  );
  const rows = flat.map(rowOf);
  return from === 'start' ? rows : rows.reverse();
}

/** Whether the list has an outfit at `key` or beyond it, towards `side`. */
export async function hasOutfitAt(
  prisma: PrismaClient,
  ordering: Ordering,
  key: SortKey,
  side: 'before' | 'after',
): Promise<boolean> {
  const reading = side === 'after' ? ordering : reverse(ordering);
  const columns = keyColumns(reading.field);
  const operator = reading.direction === 'asc' ? '>=' : '<=';
  const bounds = `(${columns.join(', ')}) ${operator} (${placeholders(reading, 1)})`;
  const [found] = await prisma.$queryRawUnsafe<{ exists: boolean }[]>(
    // Not EXISTS: it ignores the order, and then reads the table from its start for the first match.
    `SELECT ${bothSegments((segment) => `(SELECT true FROM outfits o WHERE ${segment} AND ${bounds} ORDER BY ${orderBy(reading)} LIMIT 1)`).join(' IS NOT NULL OR ')} IS NOT NULL AS exists`,
    ...keyValues(reading, key),
  );
  return found?.exists ?? false;
}

/** The indexes lead with `private`, so the whole list is a merge of two ranges of each. */
function bothSegments(write: (condition: string) => string): string[] {
  return ['NOT private', 'private'].map(write);
}

/** $1 limit, then the sort key to start after, then the one to stop before. */
export function sliceStatement(ordering: Ordering, hasLow: boolean, hasHigh: boolean): string {
  const columns = keyColumns(ordering.field);
  const [beyond, short] = ordering.direction === 'asc' ? ['>', '<'] : ['<', '>'];
  const lowBound = hasLow
    ? ` AND (${columns.join(', ')}) ${beyond} (${placeholders(ordering, 2)})`
    : '';
  const highStart = 2 + (hasLow ? columns.length : 0);
  const highBound = hasHigh
    ? ` AND (${columns.join(', ')}) ${short} (${placeholders(ordering, highStart)})`
    : '';
  const segments = bothSegments(
    (segment) => `
      (SELECT * FROM outfits s WHERE ${segment}${lowBound}${highBound}
       ORDER BY ${orderBy(ordering, 's')} LIMIT $1::int)`,
  );
  return `
    SELECT ${rowColumns}
    FROM (
      SELECT * FROM (${segments.join(' UNION ALL ')}) o ORDER BY ${orderBy(ordering)} LIMIT $1::int
    ) o
    JOIN users u ON u.id = o.user_id
    ORDER BY ${orderBy(ordering)}`;
}

function placeholders({ field }: Ordering, first: number): string {
  return keyColumns(field)
    .map((column, index) => `$${first + index}::${column === 'id' ? 'int' : 'bigint'}`)
    .join(', ');
}

function keyValues({ field }: Ordering, key: SortKey | undefined): (bigint | number)[] {
  if (key === undefined) return [];
  return field === 'id' ? [key.id] : [key.value, key.id];
}

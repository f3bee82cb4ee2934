// What is between two places of a list, as index seeks.
import type { ReadRows } from '../database/read.ts';
import { madeOfRange, madeOfRecords, membersOf } from './made-of.ts';
import { keyColumns, type Ordering, orderBy, reverse, type SortKey, stepBack } from './ordering.ts';
import { boundOf, maxRows, rangeLimit, rangesOf } from './ranges.ts';
import { type FlatRow, type OutfitRow, rowColumns, rowOf, rowSource } from './row.ts';
import { type Visibility, viewerValues } from './visibility.ts';

/** The outfits strictly between two places of a list. */
export interface KeysetPageRequest {
  readonly ordering: Ordering;
  readonly after?: SortKey | undefined;
  readonly before?: SortKey | undefined;
  /** Most outfits to read, at most `maxRows`. */
  readonly limit: number;
  /** Which end of the range to read from. */
  readonly from: 'start' | 'end';
}

/**
 * Reads a slice, in list order. Seeks the index at the given place: the cost is that of the rows
 * read, wherever in the list they are.
 * @throws RangeError when the limit is above `maxRows`
 */
export async function findKeysetPage(
  read: ReadRows,
  visibility: Visibility,
  request: KeysetPageRequest,
): Promise<OutfitRow[]> {
  const { ordering, after, before, limit, from } = request;
  // More would be taken from ranges that end before it, and skip what lies behind those.
  if (limit > maxRows) throw new RangeError(`A slice has at most ${maxRows} rows, not ${limit}.`);
  const reading = from === 'start' ? ordering : reverse(ordering);
  const [low, high] = from === 'start' ? [after, before] : [before, after];
  const flat = await read<FlatRow>(
    keysetStatement(visibility, reading, limit, low !== undefined, high !== undefined),
    [limit, ...keyValues(reading, low), ...keyValues(reading, high), ...viewerValues(visibility)],
    { madeOf: (found) => madeOfRange(membersOf(visibility), request, inOrder(found, from)) },
  );
  return inOrder(flat.map(rowOf), from);
}

/** What was read from an end of a range, in the order of the list. */
export function inOrder<Row>(rows: readonly Row[], from: KeysetPageRequest['from']): Row[] {
  return from === 'start' ? [...rows] : rows.toReversed();
}

/** Whether the list has an outfit at `key` or beyond it, towards `side`. */
export async function hasOutfitAt(
  read: ReadRows,
  visibility: Visibility,
  ordering: Ordering,
  key: SortKey,
  side: 'before' | 'after',
): Promise<boolean> {
  const reading = side === 'after' ? ordering : reverse(ordering);
  const operator = reading.direction === 'asc' ? '>=' : '<=';
  const bound = boundOf(reading, operator, 1);
  const viewer = `$${1 + keyColumns(reading.field).length}`;
  // Not EXISTS: it ignores the order, and then reads the table from its start for the first match.
  const found = rangesOf(visibility, viewer, reading, 1, [bound]).map(
    (range) => `(SELECT id FROM ${range} s)`,
  );
  const statement = `SELECT coalesce(${found.join(', ')}) AS id`;
  const values = [...keyValues(reading, key), ...viewerValues(visibility)];
  const [row] = await read<{ id: number | null }>(statement, values, {
    // As long as this one stays there, it is no matter what becomes of others.
    madeOf: ([witness]) =>
      witness?.id == null
        ? madeOfRange(membersOf(visibility), beyond(ordering, key, side), [])
        : madeOfRecords([witness.id], []),
  });
  return row?.id != null;
}

/** The one outfit that is next to a place, or at it, towards a side of the list. */
export function beyond(
  ordering: Ordering,
  key: SortKey,
  side: 'before' | 'after',
): KeysetPageRequest {
  const place = stepBack(ordering, key, side === 'after' ? 'start' : 'end');
  return side === 'after'
    ? { ordering, after: place, limit: 1, from: 'start' }
    : { ordering, before: place, limit: 1, from: 'end' };
}

/**
 * $1 limit, then the sort key to start after, then the one to stop before, then the viewer.
 * @param limit decides which of a few texts it is, so that few statements are prepared
 */
function keysetStatement(
  visibility: Visibility,
  ordering: Ordering,
  limit: number,
  hasLow: boolean,
  hasHigh: boolean,
): string {
  const [beyond, short] = ordering.direction === 'asc' ? ['>', '<'] : ['<', '>'];
  const keySize = keyColumns(ordering.field).length;
  const highStart = 2 + (hasLow ? keySize : 0);
  const viewer = `$${highStart + (hasHigh ? keySize : 0)}`;
  const ranges = rangesOf(visibility, viewer, ordering, rangeLimit(limit), [
    ...(hasLow ? [boundOf(ordering, beyond, 2)] : []),
    ...(hasHigh ? [boundOf(ordering, short, highStart)] : []),
  ]);
  return `
    SELECT ${rowColumns}
    FROM ${rowSource(ordering, ranges, 'LIMIT $1::int')}
    ORDER BY ${orderBy(ordering)}`;
}

/**
 * The bounds of a range in SQL, for outfits `s`, and the order to read it in: from the end that is asked
 * for.
 * @param add takes a value in and gives its placeholder
 */
export function keysetBounds(
  { ordering, after, before, from }: KeysetPageRequest,
  add: (value: unknown) => string,
): { readonly reading: Ordering; readonly bounds: readonly string[] } {
  const reading = from === 'start' ? ordering : reverse(ordering);
  const [beyond, short] = ordering.direction === 'asc' ? ['>', '<'] : ['<', '>'];
  const boundAt = (key: SortKey | undefined, operator: string) => {
    const [first] = keyValues(ordering, key).map(add);
    return first ? [boundOf(ordering, operator, Number(first.slice(1)))] : [];
  };
  return { reading, bounds: [...boundAt(after, beyond), ...boundAt(before, short)] };
}

function keyValues({ field }: Ordering, key: SortKey | undefined): (bigint | number)[] {
  if (key === undefined) return [];
  return field === 'id' ? [key.id] : [key.value, key.id];
}

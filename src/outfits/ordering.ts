// What lists are sorted by, the sort keys of rows, and cursors that carry them.

/** What a list of outfits can be sorted by; ties are broken by `id` in the same direction. */
export interface Ordering {
  readonly field: OrderingField;
  readonly direction: 'asc' | 'desc';
}

export const orderingFields = {
  created: 'created',
  modified: 'modified',
  like_count: 'likes',
  id: 'id',
} as const;

export type OrderingField = (typeof orderingFields)[keyof typeof orderingFields];

/** Newest first. */
export const defaultOrdering: Ordering = { field: 'created', direction: 'desc' };

export interface SortKey {
  readonly value: bigint;
  readonly id: number;
}

export function sortKeyOf(
  row: { id: number; likes: number; created: bigint; modified: bigint },
  field: OrderingField,
): SortKey {
  return { value: BigInt(row[field]), id: row.id };
}

/** The columns that order a list, all in the same direction; they end the index that serves it. */
export function keyColumns(field: OrderingField): readonly string[] {
  return field === 'id' ? ['id'] : [field, 'id'];
}

/** The columns of the sort key, of outfits by this alias, or of their likes by the other one. */
export function keyOf(field: OrderingField, outfits = 'o', likes = 'l'): string[] {
  const table = field === 'likes' ? likes : outfits;
  return keyColumns(field).map((column) => `${table}.${column}`);
}

/** The `ORDER BY` list of an ordering, or of its reverse, with aliases as `keyOf` has them. */
export function orderBy({ field, direction }: Ordering, outfits = 'o', likes = 'l'): string {
  return keyOf(field, outfits, likes)
    .map((column) => `${column} ${direction}`)
    .join(', ');
}

export function reverse({ field, direction }: Ordering): Ordering {
  return { field, direction: direction === 'asc' ? 'desc' : 'asc' };
}

/** Below 0 when `a` comes before `b` in ascending order. */
export function compareKeys(a: SortKey, b: SortKey): number {
  return a.value === b.value ? a.id - b.id : a.value < b.value ? -1 : 1;
}

/** The place just before `key`, towards an end of the list; undefined: nothing can be there. */
export function stepBack(
  { field, direction }: Ordering,
  { value, id }: SortKey,
  towards: 'start' | 'end',
): SortKey | undefined {
  const step = (direction === 'asc') === (towards === 'start') ? -1 : 1;
  if (((id + step) | 0) === id + step) return { value, id: id + step };
  // Behind the last id comes the next value, which no sort key by id alone has.
  const next = value + BigInt(step);
  if (field === 'id' || BigInt.asIntN(64, next) !== next) return undefined;
  return { value: next, id: -id - 1 };
}

const pattern = /^(created|id|likes|modified):(-?\d{1,19}):(-?\d{1,10})$/;

/** An opaque cursor that carries the sort key, so that it marks its place also after its row has been deleted. */
export function formatCursor(field: OrderingField, { value, id }: SortKey): string {
  return Buffer.from(`${field}:${value}:${id}`).toString('base64url');
}

export function parseCursor(cursor: string): { field: OrderingField; key: SortKey } | undefined {
  const match = pattern.exec(Buffer.from(cursor, 'base64url').toString('latin1'));
  if (!match) return undefined;
  const key = { value: BigInt(match[2] ?? ''), id: Number(match[3]) };
  const field = match[1] as OrderingField;
  // Other texts decode to the same bytes, and numbers like 007 or 2^63 are nobody's sort key.
  const inRange = BigInt.asIntN(64, key.value) === key.value && (key.id | 0) === key.id;
  return inRange && formatCursor(field, key) === cursor ? { field, key } : undefined;
}

/** What a list of outfits can be sorted by; ties are broken by `id` in the same direction. */
export interface Ordering {
  readonly field: OrderingField;
  readonly direction: 'asc' | 'desc';
}

export type OrderingField = 'created' | 'id' | 'likes' | 'modified';

/** Newest first. */
export const defaultOrdering: Ordering = { field: 'created', direction: 'desc' };

/** The sort key of a row: the value of the ordering's field, and the id. */
export interface SortKey {
  readonly value: bigint;
  readonly id: number;
}

/** The sort key of `row` in the orderings by `field`. */
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

/** The `ORDER BY` list of an ordering, or of its reverse. */
export function orderBy({ field, direction }: Ordering, table = 'o'): string {
  return keyColumns(field)
    .map((column) => `${table}.${column} ${direction}`)
    .join(', ');
}

/** The same order from its other end. */
export function reverse({ field, direction }: Ordering): Ordering {
  return { field, direction: direction === 'asc' ? 'desc' : 'asc' };
}

// Sort key <-> opaque cursor.
import type { OrderingField, SortKey } from './ordering.ts';

const pattern = /^(created|id|likes|modified):(-?\d{1,19}):(-?\d{1,10})$/;

/**
 * An opaque cursor that carries the sort key itself, so that it marks its place in the list also
 * after its row has been deleted.
 */
export function formatCursor(field: OrderingField, { value, id }: SortKey): string {
  return Buffer.from(`${field}:${value}:${id}`).toString('base64url');
}

/** @returns the ordering's field and the sort key, or undefined when `cursor` is not a cursor */
export function parseCursor(cursor: string): { field: OrderingField; key: SortKey } | undefined {
  const match = pattern.exec(Buffer.from(cursor, 'base64url').toString('latin1'));
  if (!match) return undefined;
  const key = { value: BigInt(match[2] ?? ''), id: Number(match[3]) };
  const field = match[1] as OrderingField;
  // Other texts decode to the same bytes, and numbers like 007 or 2^63 are nobody's sort key.
  const inRange = BigInt.asIntN(64, key.value) === key.value && (key.id | 0) === key.id;
  return inRange && formatCursor(field, key) === cursor ? { field, key } : undefined;
}

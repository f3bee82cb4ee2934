// Orderings of lists, sort keys of rows, and cursors for keyset pagination.

/** Ordering of a list. The tie-breaker is `id` in the same direction. */
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

/** Orderings that REST can spell: a field, or `-` and a field. */
export type Spelling = `${'' | '-'}${keyof typeof orderingFields}`;

/**
 * Reduces fields separated by commas to one field. Terms after `id` and repeated fields do not change the order.
 * `several`: all fields exist, but no ordering of a list has this order. Undefined: a field does not exist.
 */
export function simplifyOrdering(text: string): Spelling | 'several' | undefined {
  const sorting = new Map<string, string>();
  for (const term of text.split(',').map((one) => one.trim())) {
    const field = term.replace(/^-/, '');
    if (!Object.hasOwn(orderingFields, field)) return undefined;
    if (!sorting.has('id') && !sorting.has(field)) sorting.set(field, term);
  }
  const [first = '', second, ...others] = sorting.values();
  // Ties are broken by `id` in the same direction.
  const isOwn = second === undefined || second === (first.startsWith('-') ? '-id' : 'id');
  return isOwn && others.length === 0 ? (first as Spelling) : 'several';
}

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

/** What the statements of a list name, by the table that has the field. */
export function namesOf({ field, direction }: Ordering) {
  const reversed = direction === 'asc' ? 'desc' : 'asc';
  const names = { value: field, direction, reversed } as const;
  return field === 'likes' ? { ...names, ...byLikes } : { ...names, ...byOutfits };
}

/**
 * `table`: it has the field, the id, the user and `private`. `key`: its alias where outfits `s` and their likes `l` are joined.
 * `before`, `after`: they join outfits `o` and likes `l` to rows of this table. Outfits come first, so that tables are locked in
 * the order of TRUNCATE. `likes`: the likes of a place, which has them already in an ordering by likes.
 */
const byOutfits = {
  table: 'outfits',
  key: 's',
  before: 'LATERAL',
  after: 'o LEFT JOIN outfit_like_counts l ON l.id = o.id',
  row: 'o',
  likes: 'outfit_like_counts',
} as const;
const byLikes = {
  table: 'outfit_like_counts',
  key: 'l',
  before: 'outfits o JOIN LATERAL',
  after: 'l ON l.id = o.id',
  row: 'l',
  likes: 'LATERAL (SELECT place.id, place.value AS likes)',
} as const;

export function reverse({ field, direction }: Ordering): Ordering {
  return { field, direction: direction === 'asc' ? 'desc' : 'asc' };
}

/** Below 0 when `a` comes before `b` in ascending order. */
export function compareKeys(a: SortKey, b: SortKey): number {
  return a.value === b.value ? a.id - b.id : a.value < b.value ? -1 : 1;
}

/** Of the longest cursor, in base64. */
const maxCursorLength = 60;
const pattern = /^(created|id|likes|modified):(-?\d{1,19}):(-?\d{1,10})$/;

/** An opaque cursor with the sort key, which stays valid after its row has been deleted. */
export function formatCursor(field: OrderingField, { value, id }: SortKey): string {
  return Buffer.from(`${field}:${value}:${id}`).toString('base64url');
}

export function parseCursor(cursor: string): { field: OrderingField; key: SortKey } | undefined {
  if (cursor.length > maxCursorLength) return undefined;
  const match = pattern.exec(Buffer.from(cursor, 'base64url').toString('latin1'));
  if (!match) return undefined;
  const key = { value: BigInt(match[2] ?? ''), id: Number(match[3]) };
  const field = match[1] as OrderingField;
  // Rejects other texts that decode to the same bytes, and numbers such as 007 or 2^63.
  const inRange = BigInt.asIntN(64, key.value) === key.value && (key.id | 0) === key.id;
  return inRange && formatCursor(field, key) === cursor ? { field, key } : undefined;
}

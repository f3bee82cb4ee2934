// The orders of lists as the interfaces name them, and what each means.
import { compareKeys, sortKeyOf } from '../../../src/outfits/ordering.ts';
import type { OutfitRow } from '../../../src/outfits/row.ts';

const fields = ['created', 'id', 'likes', 'modified'] as const;
export type Sortable = Pick<OutfitRow, (typeof fields)[number]>;

export const orderings = fields.flatMap((field) =>
  ([1, -1] as const).map((sign) => {
    const name = field === 'likes' ? 'like_count' : field;
    const rest = sign === 1 ? name : `-${name}`;
    return { field, sign, rest, enum: `${name.toUpperCase()}_${sign === 1 ? 'ASC' : 'DESC'}` };
  }),
);
export type Ordering = (typeof orderings)[number];

/** Below 0 when `a` comes before `b` in a list. */
export function compare(a: Sortable, b: Sortable, { field, sign }: Ordering): number {
  return sign * compareKeys(sortKeyOf(a, field), sortKeyOf(b, field));
}

/** The ids in the order that the list must have. */
export function sortIds(rows: readonly Sortable[], ordering: Ordering): number[] {
  return rows.toSorted((a, b) => compare(a, b, ordering)).map(({ id }) => id);
}

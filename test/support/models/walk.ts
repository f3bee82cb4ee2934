// Walks through a whole list in each of the ways that GraphQL has.
import { expect } from 'vitest';
import type { Filter } from './filter-model.ts';
import type { Ordering } from './orderings.ts';

export const ways = ['page', 'forward', 'backward'] as const;

export interface Walk {
  readonly way: (typeof ways)[number];
  readonly ordering: Ordering;
  /** Outfits of a page or slice. */
  readonly size: number;
  readonly filter?: Filter | null;
  /** The field with the list: `viewer` for its liked outfits, or a user. Without it, the list of all. */
  readonly parent?: string;
  /** Called after each slice with the id at the end where the walk goes on. */
  readonly onSlice?: (last: number) => Promise<void>;
}

/** Asks with a document and its variables, and gives the whole answer. */
export type Ask = (
  query: string,
  variables: object,
) => Promise<{ readonly data?: unknown; readonly errors?: readonly unknown[] }>;

interface List {
  readonly count: number;
  readonly pageCount: number;
  readonly nextPage: number | null;
  readonly results: readonly { readonly databaseId: number }[];
  readonly pageInfo: {
    readonly startCursor: string | null;
    readonly endCursor: string | null;
    readonly hasNextPage: boolean;
    readonly hasPreviousPage: boolean;
  };
}

/** The ids in the order of the list, and the counts that came with them. */
export async function walk(
  ask: Ask,
  { way, ordering, size, filter = null, parent = '', onSlice }: Walk,
): Promise<{ ids: number[]; counts: Set<number> }> {
  const isPages = way === 'page';
  const isForward = way !== 'backward';
  const connection = parent === 'viewer' ? 'likedOutfits' : 'outfitConnection';
  const range = isForward ? 'first: $size, after: $place' : 'last: $size, before: $place';
  const order = `ordering: ${ordering.enum}, filter: $filter`;
  const lists = isPages
    ? `list: outfits(${order}, pageSize: $size, page: $place) { count pageCount nextPage results { databaseId } }
       last: outfits(${order}, pageSize: $size, last: true) { results { databaseId } }`
    : `list: ${connection}(${order}, ${range}) { count: totalCount results: nodes { databaseId }
         pageInfo { startCursor endCursor hasNextPage hasPreviousPage } }`;
  const document = `query ($filter: OutfitFilter, $size: Int, $place: ${isPages ? 'Int' : 'String'}) {
    ${parent ? `parent: ${parent} { ${lists} }` : lists} }`;
  const slices: number[][] = [];
  const counts = new Set<number>();
  let place: number | string | null = null;
  for (let more = true; more; ) {
    // More slices than that are a circle.
    expect(slices.length).toBeLessThan(300);
    const { data, errors } = await ask(document, { filter, size, place });
    expect(errors).toBeUndefined();
    type Lists = { readonly list: List; readonly last: List };
    const given = data as Lists & { readonly parent?: Lists };
    const { list, last } = given.parent ?? given;
    const ids = list.results.map(({ databaseId }) => databaseId);
    if (isForward) slices.push(ids);
    else slices.unshift(ids);
    counts.add(list.count);
    if (isPages) {
      place = list.nextPage;
      more = place !== null;
      if (!more) {
        expect(list.pageCount).toBe(slices.length);
        expect(last.results).toEqual(list.results);
      }
    } else {
      const { startCursor, endCursor, hasNextPage, hasPreviousPage } = list.pageInfo;
      const [isBehind, isAhead] = isForward
        ? [hasPreviousPage, hasNextPage]
        : [hasNextPage, hasPreviousPage];
      expect(isBehind).toBe(place !== null);
      more = isAhead;
      place = isForward ? endCursor : startCursor;
    }
    if (more) expect(ids).toHaveLength(size);
    const end = ids.at(isForward ? -1 : 0);
    if (end !== undefined) await onSlice?.(end);
  }
  return { ids: slices.flat(), counts };
}

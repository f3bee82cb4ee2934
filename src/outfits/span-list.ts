// Lists of a range of one field: their counts, and their pages in the order of that field, come from
// the bucket counts, and cost what those of the whole list cost.
import type { ReadRows } from '../database/read.ts';
import type { OutfitFilter } from './filter.ts';
import { beyond, findKeysetPage, type KeysetPageRequest } from './keyset-page.ts';
import type { OutfitList } from './list.ts';
import { madeOfCount, madeOfPage, membersOf } from './made-of.ts';
import { compareKeys, type SortKey } from './ordering.ts';
import { pageStatement, type SpanPlaceholders, spanTotal } from './page-statement.ts';
import { outfitsIn, type PageRow, pageOf } from './pages.ts';
import { membersIn, type Visibility } from './visibility.ts';

/** A range of one field, half-open. */
interface Span {
  readonly field: 'created' | 'likes';
  readonly from: bigint | undefined;
  readonly below: bigint | undefined;
  readonly filter: OutfitFilter;
}

/** The range that a filter is, if it is nothing else. */
export function spanOf(filter: OutfitFilter): Span | undefined {
  const { createdFrom, createdBefore, likesFrom, likesBelow, ...others } = filter;
  if (Object.values(others).some((value) => value !== undefined)) return undefined;
  const created = { field: 'created', from: createdFrom, below: createdBefore } as const;
  const likes = { field: 'likes', from: toBigInt(likesFrom), below: toBigInt(likesBelow) } as const;
  const given = [created, likes].filter(
    ({ from, below }) => from !== undefined || below !== undefined,
  );
  return given.length === 1 && given[0] ? { ...given[0], filter } : undefined;
}

function toBigInt(value: number | undefined): bigint | undefined {
  return value === undefined ? undefined : BigInt(value);
}

/** @param matched the same list, for orders in which it is no range */
export function createSpanList(
  read: ReadRows,
  visibility: Visibility,
  span: Span,
  matched: OutfitList,
): OutfitList {
  const members = membersOf(visibility, span.filter);
  const ends = [span.from, span.below].filter((end) => end !== undefined);
  const placeholders = (first: number): SpanPlaceholders => ({
    field: span.field,
    from: span.from === undefined ? undefined : `$${first}`,
    below: span.below === undefined ? undefined : `$${first + (span.from === undefined ? 0 : 1)}`,
  });
  const keysetPage = (request: KeysetPageRequest) =>
    request.ordering.field === span.field
      ? findKeysetPage(read, visibility, within(span, request))
      : matched.keysetPage(request);

  return {
    async page(request) {
      const { ordering, page, pageSize } = request;
      if (ordering.field !== span.field) return matched.page(request);
      const skip = page === 'last' ? null : (page - 1) * pageSize;
      const statement = pageStatement(ordering, placeholders(5));
      const values = [...membersIn(visibility), skip, pageSize, ...ends];
      const rows = await read<PageRow>(statement, values, {
        madeOf: (found) => madeOfPage(members, ordering, outfitsIn(found)),
      });
      return pageOf(rows, page, pageSize);
    },
    keysetPage,
    async hasOutfitAt(ordering, key, side) {
      return (await keysetPage(beyond(ordering, key, side))).length > 0;
    },
    async count() {
      const statement = spanTotal(placeholders(3));
      const values = [...membersIn(visibility), ...ends];
      const [row] = await read<{ count: number }>(statement, values, {
        madeOf: () => madeOfCount(members),
      });
      return row?.count ?? 0;
    },
  };
}

const lowestId = -2_147_483_648;
const highestId = 2_147_483_647;

/**
 * The same range of outfits, no further than the ends of the span. These are places of the list too,
 * between any two outfits, so the statement is that of the whole list.
 */
function within({ from, below }: Span, request: KeysetPageRequest): KeysetPageRequest {
  const low = from === undefined ? undefined : { value: from - 1n, id: highestId };
  const high = below === undefined ? undefined : { value: below, id: lowestId };
  const { ordering, after, before } = request;
  return ordering.direction === 'asc'
    ? { ...request, after: highest(after, low), before: lowest(before, high) }
    : { ...request, after: lowest(after, high), before: highest(before, low) };
}

function highest(a: SortKey | undefined, b: SortKey | undefined): SortKey | undefined {
  return a && b ? (compareKeys(a, b) < 0 ? b : a) : (a ?? b);
}

function lowest(a: SortKey | undefined, b: SortKey | undefined): SortKey | undefined {
  return a && b ? (compareKeys(a, b) < 0 ? a : b) : (a ?? b);
}

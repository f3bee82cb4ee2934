// Pages of users' outfits, for all users of a query at once.
import DataLoader from 'dataloader';
import { madeOfAll } from '../database/changes.ts';
import { builtOnce, type ReadRows } from '../database/read.ts';
import { conditionsOf, createValues, type OutfitFilter, sourceOf } from './filter.ts';
import { simplify } from './list.ts';
import { madeOfPage, membersOfUser } from './made-of.ts';
import { type Ordering, orderBy } from './ordering.ts';
import { pageOfList, wholeTotal } from './page-statement.ts';
import { type OutfitPage, outfitsIn, type PageRequest, type PageRow, pageOf } from './pages.ts';
import { placedRow, rowColumns } from './row.ts';
import { groupBy, keyOf, membersOfOwner, planFor } from './user-lists.ts';
import { type Visibility, viewerValues, visibleOf } from './visibility.ts';

/** A page of the outfits of one user. */
export interface UserPageRequest extends PageRequest {
  readonly userId: number;
  readonly filter?: OutfitFilter;
}

export type UserPageLoader = DataLoader<UserPageRequest, OutfitPage, string>;

/**
 * Reads pages of users' outfits: all that one step of a query asks for together, in one statement
 * for as many users as there are. A page past the end rejects with PastTheEndError.
 */
export function createUserPageLoader(read: ReadRows, visibility: Visibility): UserPageLoader {
  return new DataLoader((requests) => loadPages(read, visibility, requests), {
    cacheKeyFn: (request) => `${listOf(request)} ${request.userId}`,
  });
}

/** Requests that differ in the user only can share a statement. */
function listOf({ ordering, page, pageSize, filter = {} }: UserPageRequest): string {
  return `${ordering.field} ${ordering.direction} ${page} ${pageSize} ${keyOf(filter)}`;
}

async function loadPages(
  read: ReadRows,
  visibility: Visibility,
  requests: readonly UserPageRequest[],
): Promise<(OutfitPage | Error)[]> {
  const lists = groupBy(requests, listOf);
  const rows = groupBy(
    (
      await Promise.all([...lists.values()].map((sameList) => loadRows(read, visibility, sameList)))
    ).flat(),
    (row) => `${row.list} ${row.ownerId}`,
  );
  return requests.map((request) => {
    try {
      const found = rows.get(`${listOf(request)} ${request.userId}`) ?? [];
      return pageOf(found, request.page, request.pageSize);
    } catch (error) {
      return error as Error;
    }
  });
}

async function loadRows(
  read: ReadRows,
  visibility: Visibility,
  requests: readonly UserPageRequest[],
) {
  const [first] = requests;
  if (!first) return [];
  const { ordering, page, pageSize, filter = {} } = first;
  const { isEmpty, visibility: visible, conditions } = simplify(filter, visibility);
  if (isEmpty) return [];
  const users = requests.map((request) => request.userId);
  // For a list of one, PostgreSQL would make a new plan each time.
  const isOne = users.length === 1;
  const values = createValues(
    ...(isOne ? users : [users]),
    page === 'last' ? null : (page - 1) * pageSize,
    pageSize,
    ...viewerValues(visible),
  );
  const owners = isOne ? '(SELECT $1::int) AS owner (id)' : 'unnest($1::int[]) AS owner (id)';
  const filtered = conditionsOf(conditions, values.add);
  const statement =
    filtered.length === 0
      ? builtOnce(
          `user pages ${ordering.field} ${ordering.direction} ${visible.private} ${isOne}`,
          () => userPagesStatement(ordering, visible, owners),
        )
      : filteredStatement(ordering, visible, owners, conditions, filtered);
  const rows = await read<PageRow & { ownerId: number }>(statement, values.list, {
    ...planFor(filter),
    madeOf(read) {
      const pages = groupBy(outfitsIn(read), ({ userId }) => userId);
      return madeOfAll(
        users.map((id) =>
          madeOfPage(membersOfUser(id, visibility, filter), ordering, pages.get(id) ?? []),
        ),
      );
    },
  });
  return rows.map((row) => ({ ...row, list: listOf(first) }));
}

/** $1 users, as `owners`, $2 outfits of each to skip (null: to the last page), $3 page size, $4 the viewer. */
function userPagesStatement(ordering: Ordering, visibility: Visibility, owners: string): string {
  const members = membersOfOwner(visibility, '$4');
  const slice = { skip: '$2', size: '$3' };
  const page = pageOfList(ordering, members, slice, wholeTotal(members));
  return `
    SELECT owner.id AS "ownerId", page.count, ${rowColumns}
    FROM ${owners} CROSS JOIN LATERAL ${page}
    ORDER BY owner.id, place.position ${ordering.direction}`;
}

/** The same of those outfits `s` that meet conditions, which are all read. */
function filteredStatement(
  ordering: Ordering,
  visibility: Visibility,
  owners: string,
  filter: OutfitFilter,
  conditions: readonly string[],
): string {
  const all = ['s.user_id = owner.id', visibleOf(visibility, 'owner.id', '$4'), ...conditions];
  const outfits = `${sourceOf(ordering, filter, true)} WHERE ${all.join(' AND ')}`;
  return `
    SELECT owner.id AS "ownerId", total.count, ${rowColumns}
    FROM ${owners}
    CROSS JOIN LATERAL (SELECT count(*)::int AS count FROM ${outfits}) total
    LEFT JOIN LATERAL (
      SELECT s.id FROM ${outfits} ORDER BY ${orderBy(ordering, 's')}
      OFFSET coalesce($2::bigint, greatest(total.count - 1, 0) / $3::int * $3::int) LIMIT $3::int
    ) place ON true
    ${placedRow}
    ORDER BY owner.id, ${orderBy(ordering)}`;
}

// Lists of users, sorted by id: those whose names match a search, and the likers of an outfit.
// In SQL: searches by an index on an expression, and lists of several owners in one statement.
import type { Access, ReadRows } from '../../database/read.ts';
import { inTurn } from '../../database/turns.ts';
import type { User } from '../../generated/prisma/client.ts';
import { createValues, type Values } from '../filter.ts';
import { int4 } from '../row.ts';
import { type Visibility, viewerOf, visibleOf } from '../visibility.ts';
import { columnsOfUser } from './by-id.ts';
import {
  type Counted,
  createListLoader,
  emptyList,
  inOrder,
  type Owned,
  type RangeList,
} from './list.ts';
import { type KeysetPageRequest, likedAt, ownersIn } from './statements.ts';

/** Where a statement finds the ids of users. */
interface Source {
  /** For the lists of several owners: the column of the owner, and the FROM items before those of each list. */
  readonly owner?: string;
  readonly owners?: string;
  readonly likedAt?: string;
  readonly ids: string;
}

/** The users in whose names all words occur; without words, none. @param words as `readWords` gives them */
export function createUserSearch(read: ReadRows, words: readonly string[]): RangeList<User> {
  if (words.length === 0) return emptyList;
  const find = <Row extends object>(build: (source: Source, add: Values['add']) => string) => {
    const { list, add } = createValues();
    const text = build({ ids: matching(words, add) }, add);
    const dependencies = () => ({ tables: ['users'] });
    return read<Row>(text, list, { planForValues: true, access: 'unbounded', dependencies });
  };
  return {
    keysetPage: async (request) => {
      const rows = await find<User>((source, add) => rangeOf(source, request, add));
      return inOrder(await inTurn(rows, rows.length), request.from);
    },
    count: async () => (await find<Counted>(countOf))[0]?.count ?? 0,
  };
}

export type Likers = (outfitId: number, likes: Visibility) => RangeList<Liker>;

type Liker = User & { readonly likedAt: bigint | null };

/** The users who like an outfit, as far as the outfit and these likes are visible. Any commit may change them. */
export function createLikers(read: ReadRows, visibility: Visibility): Likers {
  const find = async <Row extends object>(
    outfits: readonly number[],
    likes: Visibility,
    access: Access,
    build: (source: Source, add: Values['add']) => string,
  ): Promise<Row[]> => {
    if (likes.private === 'none') return [];
    const { list, add } = createValues();
    const text = build(likersOf(outfits, likes, visibility, add), add);
    return read<Row>(text, list, { access });
  };
  const ranges = createListLoader((outfits, likes: Visibility, request: KeysetPageRequest) =>
    find<Liker & Owned>(outfits, likes, 'bounded', (source, add) => rangeOf(source, request, add)),
  );
  const counts = createListLoader((outfits, likes: Visibility, _request: undefined) =>
    find<Counted>(outfits, likes, 'unbounded', countOf),
  );
  return (outfitId, likes) => ({
    keysetPage: async (request) => inOrder(await ranges(outfitId, likes, request), request.from),
    count: async () => (await counts(outfitId, likes, undefined))[0]?.count ?? 0,
  });
}

/** A range of ids rather than OR, so that the index finds the viewer among the likers of an outfit of another user. */
function likersOf(
  outfits: readonly number[],
  likes: Visibility,
  visibility: Visibility,
  add: Values['add'],
): Required<Source> {
  const isVisible = visibleOf(visibility, viewerOf(visibility, add));
  const viewer = viewerOf(likes, add);
  const end = (all: number) => `CASE WHEN s.user_id = ${viewer} THEN ${all} ELSE ${viewer} END`;
  const range = viewer && ` AND l.user_id BETWEEN ${end(int4.min)} AND ${end(int4.max)}`;
  return {
    owner: 'owner.id AS "ownerId", ',
    likedAt: `${likedAt('owner.id', 'u.id')}, `,
    owners: `${ownersIn(outfits, add)} JOIN outfits s ON s.id = owner.id AND ${isVisible} CROSS JOIN LATERAL `,
    ids: `SELECT l.user_id AS id FROM outfit_likes l WHERE l.outfit_id = s.id${range}`,
  };
}

/** The expression of the index `users_terms`. */
const names = `outfit_unaccent(outfit_casefold(left(u.username || E'\\n' || u.first_name || E'\\n' || u.last_name, 1000)))`;

/** Names may contain all trigrams of a word, but not the word: recheck. Materialized: a walk by id would read all users. */
function matching(words: readonly string[], add: Values['add']): string {
  const conditions = [
    `outfit_terms(${names}) @@ outfit_search(${add(words)}::text[])`,
    ...words.map(
      (word) => `strpos(${names}, outfit_unaccent(outfit_casefold(${add(word)}::text))) > 0`,
    ),
  ];
  return `WITH matched AS MATERIALIZED (SELECT u.id FROM users u WHERE ${conditions.join(' AND ')}) SELECT id FROM matched`;
}

function countOf({ owner = '', owners = '', ids }: Source): string {
  const total = `(SELECT count(*)::int AS count FROM (${ids}) found) total`;
  return `SELECT ${owner}count FROM ${owners}${total}`;
}

function rangeOf(
  { owner = '', owners = '', likedAt = '', ids }: Source,
  { after, before, isClosed, limit, from }: KeysetPageRequest,
  add: Values['add'],
): string {
  const order = `id ${from === 'start' ? 'asc' : 'desc'}`;
  const equal = isClosed ? '=' : '';
  const bounds = [
    'true',
    ...(after ? [`id >${equal} ${add(after.id)}::int`] : []),
    ...(before ? [`id <${equal} ${add(before.id)}::int`] : []),
  ].join(' AND ');
  return `
    SELECT ${owner}${likedAt}${columnsOfUser}
    FROM ${owners}(SELECT id FROM (${ids}) found WHERE ${bounds} ORDER BY ${order} LIMIT ${add(limit)}::int) place
    JOIN users u ON u.id = place.id
    ORDER BY u.${order}`;
}

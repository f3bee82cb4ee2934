// Lists of users, sorted by id: those whose names match a search, and the likers of an outfit.
// In SQL: searches by an index on an expression, and lists of several owners in one statement.
import type { ReadRows } from '../../database/read.ts';
import { inTurn } from '../../database/turns.ts';
import type { User } from '../../generated/prisma/client.ts';
import { int4, named } from '../row.ts';
import { isVisible, sightOf, type Visibility } from '../visibility.ts';
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

/** The users in whose names all words occur; without words, none. @param words as `readWords` gives them */
export function createUserSearch(read: ReadRows, words: readonly string[]): RangeList<User> {
  if (words.length === 0) return emptyList;
  const find = <Row extends object>(statement: string, request?: KeysetPageRequest) => {
    const { text, values } = named(statement, { words, ...(request && boundsOf(request)) });
    const dependencies = () => ({ tables: ['users'] });
    return read<Row>(text, values, { planForValues: true, access: 'unbounded', dependencies });
  };
  return {
    keysetPage: async (request) => {
      const rows = await find<User>(foundUsers(request), request);
      return inOrder(await inTurn(rows, rows.length), request.from);
    },
    count: async () => (await find<Counted>(countOfFound))[0]?.count ?? 0,
  };
}

/** The expression of the index `users_terms`. */
const names = `outfit_unaccent(outfit_casefold(left(u.username || E'\\n' || u.first_name || E'\\n' || u.last_name, 1000)))`;

/** Names may contain all trigrams of a word, but not the word: hence LIKE. */
const isFound = `outfit_terms(${names}) @@ outfit_search(:words::text[]) AND ${names} LIKE ALL (outfit_patterns(:words))`;

const countOfFound = `SELECT count(*)::int AS count FROM users u WHERE ${isFound}`;

/** Materialized: a walk by id would read all users. */
const foundUsers = ({ from }: KeysetPageRequest) => `
    WITH matched AS MATERIALIZED (SELECT u.* FROM users u WHERE ${isFound})
    SELECT ${columnsOfUser}
    FROM matched u
    WHERE u.id BETWEEN :low::bigint AND :high::bigint
    ORDER BY u.id ${directionOf(from)} LIMIT :limit::int`;

const directionOf = (from: KeysetPageRequest['from']) => (from === 'start' ? 'asc' : 'desc');

function boundsOf({ after, before, limit }: KeysetPageRequest) {
  const low = after ? after.id + 1 : int4.min;
  const high = before ? before.id - 1 : int4.max;
  return { low, high, limit };
}

export type Likers = (outfitId: number, likes: Visibility) => RangeList<Liker>;

type Liker = User & { readonly likedAt: bigint | null };

/** The users who like an outfit, as far as the outfit and these likes are visible. Any commit may change them. */
export function createLikers(read: ReadRows, visibility: Visibility): Likers {
  const find = async <Row extends object>(
    outfits: readonly number[],
    likes: Visibility,
    statement: string,
    request?: KeysetPageRequest,
  ): Promise<Row[]> => {
    if (likes.private === 'none') return [];
    const { all: allLikes, viewer: liker } = sightOf(likes);
    const { text, values } = named(statement, {
      ...{ users: outfits, user: outfits[0], allLikes, liker },
      ...sightOf(visibility),
      ...(request && boundsOf(request)),
    });
    return read<Row>(text, values, { access: request ? 'bounded' : 'unbounded' });
  };
  const ranges = createListLoader((outfits, likes: Visibility, request: KeysetPageRequest) =>
    find<Liker & Owned>(outfits, likes, likersOf(outfits, request), request),
  );
  const counts = createListLoader((outfits, likes: Visibility, _request: undefined) =>
    find<Counted>(outfits, likes, countOfLikers(outfits)),
  );
  return (outfitId, likes) => ({
    keysetPage: async (request) => inOrder(await ranges(outfitId, likes, request), request.from),
    count: async () => (await counts(outfitId, likes, undefined))[0]?.count ?? 0,
  });
}

/**
 * The likers of outfits, each an `owner` of a list. A range of ids rather than OR, so that the index finds the viewer among the
 * likers of an outfit of another user.
 */
const likersOf = (outfits: readonly number[], { from }: KeysetPageRequest) => `
    SELECT owner.id AS "ownerId", ${likedAt('owner.id', 'u.id')}, ${columnsOfUser}
    FROM ${ownersIn(outfits)}
    JOIN outfits s ON s.id = owner.id AND ${isVisible}
    CROSS JOIN LATERAL (
      SELECT g.user_id AS id FROM outfit_likes g
      WHERE g.outfit_id = s.id AND g.user_id BETWEEN ${lowestLiker} AND ${highestLiker} AND g.user_id BETWEEN :low::bigint AND :high::bigint
      ORDER BY g.user_id ${directionOf(from)} LIMIT :limit::int
    ) place
    JOIN users u ON u.id = place.id
    ORDER BY u.id ${directionOf(from)}`;

const countOfLikers = (outfits: readonly number[]) => `
    SELECT owner.id AS "ownerId", total.count
    FROM ${ownersIn(outfits)}
    JOIN outfits s ON s.id = owner.id AND ${isVisible}
    CROSS JOIN LATERAL (
      SELECT count(*)::int AS count FROM outfit_likes g
      WHERE g.outfit_id = s.id AND g.user_id BETWEEN ${lowestLiker} AND ${highestLiker}
    ) total`;

/** All likers are visible, also where the outfit is the viewer's own; otherwise the viewer. */
const lowestLiker = `CASE WHEN :allLikes::boolean OR s.user_id = :liker::int THEN ${int4.min} ELSE :liker END`;
const highestLiker = `CASE WHEN :allLikes OR s.user_id = :liker THEN ${int4.max} ELSE :liker END`;

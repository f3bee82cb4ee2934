// Lists of users, sorted by id: those whose names match a search.
import type { ReadRows } from '../../database/read.ts';
import type { User } from '../../generated/prisma/client.ts';
import { createValues, type Values } from '../filter.ts';
import { columnsOfUser } from './by-id.ts';
import { inOrder, type RangeList } from './list.ts';
import type { KeysetPageRequest } from './statements.ts';

/** The users in whose names all words occur. @param words as `readWords` gives them */
export function createUserSearch(read: ReadRows, words: readonly string[]): RangeList<User> {
  const find = <Row extends object>(build: (ids: string, add: Values['add']) => string) => {
    const { list, add } = createValues();
    const text = build(matching(words, add), add);
    const dependencies = () => ({ anyUser: true });
    return read<Row>(text, list, { planForValues: true, access: 'unbounded', dependencies });
  };
  return {
    keysetPage: async (request) =>
      inOrder(await find<User>((ids, add) => rangeOf(ids, request, add)), request.from),
    count: async () => (await find<{ count: number }>(countOf))[0]?.count ?? 0,
  };
}

/** The expression of the index `users_terms`. */
const names = `outfit_casefold(left(u.username || E'\\n' || u.first_name || E'\\n' || u.last_name, 1000))`;

/** Names may contain all trigrams of a word, but not the word: recheck. Materialized: a walk by id would read all users. */
function matching(words: readonly string[], add: Values['add']): string {
  const conditions = [
    `outfit_terms(${names}) @@ outfit_search(${add(words)}::text[])`,
    ...words.map((word) => `strpos(${names}, outfit_casefold(${add(word)}::text)) > 0`),
  ];
  return `WITH matched AS MATERIALIZED (SELECT u.id FROM users u WHERE ${conditions.join(' AND ')}) SELECT id FROM matched`;
}

function countOf(ids: string): string {
  return `SELECT count(*)::int AS count FROM (${ids}) found`;
}

function rangeOf(ids: string, request: KeysetPageRequest, add: Values['add']): string {
  const { after, before, limit, from } = request;
  const order = `id ${from === 'start' ? 'asc' : 'desc'}`;
  const bounds = [
    'true',
    ...(after ? [`id > ${add(after.id)}::int`] : []),
    ...(before ? [`id < ${add(before.id)}::int`] : []),
  ].join(' AND ');
  return `
    SELECT ${columnsOfUser}
    FROM (SELECT id FROM (${ids}) found WHERE ${bounds} ORDER BY ${order} LIMIT ${add(limit)}::int) place
    JOIN users u ON u.id = place.id
    ORDER BY u.${order}`;
}

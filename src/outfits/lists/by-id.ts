// Loaders of single records: one statement for all ids that a step of a request needs.
import { memoizeText, type ReadRows } from '../../database/read.ts';
import type { User } from '../../generated/prisma/client.ts';
import { createValues, type Values } from '../filter.ts';
import { type FlatRow, joinedRow, rowColumns, rowOf, userColumns } from '../row.ts';
import { type Visibility, viewerOf, visibleOf } from '../visibility.ts';
import { dependenciesOfRecords } from './dependencies.ts';
import { createLoaderInTurns, type Loader } from './loader.ts';

export type RecordLoaders = ReturnType<typeof createRecordLoaders>;

export function createRecordLoaders(read: ReadRows, visibility: Visibility) {
  return {
    outfits: createLoader(async (ids) => {
      const { list, add } = createValues();
      const condition = `s.id ${among(ids, add)} AND ${visibleOf(visibility, viewerOf(visibility, add))}`;
      const statement = memoizeText(
        `outfits ${condition}`,
        () =>
          `SELECT ${rowColumns} FROM (SELECT * FROM outfits s WHERE ${condition}) o ${joinedRow}`,
      );
      const dependencies = (rows: readonly FlatRow[]) => dependenciesOfRecords(ids, rows);
      return (await read<FlatRow>(statement, list, { dependencies })).map(rowOf);
    }),
    users: createLoader((ids) => {
      const { list, add } = createValues();
      const dependencies = () => ({ rows: { users: ids } });
      return read<User>(usersStatement(`id ${among(ids, add)}`), list, { dependencies });
    }),
    /** Usernames are not unique: returns the user with the lowest id. */
    async userNamed(username: string): Promise<User | undefined> {
      const statement = `${usersStatement('username = $1')} ORDER BY id LIMIT 1`;
      const dependencies = () => ({ tables: ['users'] });
      const [user] = await read<User>(statement, [username], { dependencies });
      return user;
    },
  };
}

function createLoader<Row extends { readonly id: number }>(
  find: (ids: readonly number[]) => Promise<Row[]>,
): Loader<number, Row | undefined> {
  return createLoaderInTurns(async (ids) => {
    const rows = new Map((await find(ids)).map((row) => [row.id, row]));
    return ids.map((id) => rows.get(id));
  });
}

/** Not ANY for one id: PostgreSQL would replan each time, which takes seven times as long as the rest. */
function among(ids: readonly number[], add: Values['add']): string {
  return ids.length === 1 ? `= ${add(ids[0])}::int` : `= ANY(${add(ids)}::int[])`;
}

function usersStatement(condition: string): string {
  return memoizeText(
    `users ${condition}`,
    () => `SELECT ${columnsOfUser} FROM users u WHERE ${condition}`,
  );
}

/** SELECT list for users `u`. */
export const columnsOfUser = Object.entries(userColumns)
  .map(([field, [column]]) => `u.${column} AS "${field}"`)
  .join(', ');

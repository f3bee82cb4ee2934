// Loader of single outfits: one statement for all ids that a step of a request needs.
// In SQL, since likes and the user are joined: Prisma would send three statements, of three moments.
import type { ReadRows } from '../../database/read.ts';
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
      const statement = `SELECT ${rowColumns} FROM (SELECT * FROM outfits s WHERE ${condition}) o ${joinedRow}`;
      const dependencies = (rows: readonly FlatRow[]) => dependenciesOfRecords(ids, rows);
      return (await read<FlatRow>(statement, list, { dependencies })).map(rowOf);
    }),
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

/** SELECT list for users `u`. */
export const columnsOfUser = Object.entries(userColumns)
  .map(([field, [column]]) => `u.${column} AS "${field}"`)
  .join(', ');

// Loader of single outfits: one statement for all ids that a step of a request needs.
// In SQL, since likes and the user are joined: Prisma would send three statements, of three moments.
import type { ReadRows } from '../../database/read.ts';
import { type FlatRow, joinedRow, rowColumns, rowOf, userColumns } from '../row.ts';
import { isVisible, sightOf, type Visibility } from '../visibility.ts';
import { dependenciesOfRecords } from './dependencies.ts';
import { createLoaderInTurns, type Loader } from './loader.ts';
import { named } from './named.ts';

export type RecordLoaders = ReturnType<typeof createRecordLoaders>;

/** Not ANY for one id: PostgreSQL would replan each time, which takes seven times as long as the rest. */
export function createRecordLoaders(read: ReadRows, visibility: Visibility) {
  return {
    outfits: createLoader(async (ids) => {
      const { text, values } = named(
        `
        SELECT ${rowColumns}
        FROM (SELECT * FROM outfits s WHERE s.id ${ids.length === 1 ? '= :id::int' : '= ANY (:ids::int[])'} AND ${isVisible}) o ${joinedRow}`,
        { ids, id: ids[0], ...sightOf(visibility) },
      );
      const dependencies = (rows: readonly FlatRow[]) => dependenciesOfRecords(ids, rows);
      return (await read<FlatRow>(text, values, { dependencies })).map(rowOf);
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

/** SELECT list for users `u`. */
export const columnsOfUser = Object.entries(userColumns)
  .map(([field, [column]]) => `u.${column} AS "${field}"`)
  .join(', ');

// Single records, all that a step of a request needs at once.
import DataLoader from 'dataloader';
import { builtOnce, type ReadRows } from '../database/read.ts';
import type { User } from '../generated/prisma/client.ts';
import { userColumns } from './columns.ts';
import { madeOfRecords } from './made-of.ts';
import { type FlatRow, joinedRow, type OutfitRow, rowColumns, rowOf } from './row.ts';
import { type Visibility, viewerValues, visibleOf } from './visibility.ts';

type Loader<Row> = Pick<DataLoader<number, Row | undefined>, 'load'>;

/** Reads single records: all that one step of a query asks for together, in one statement. */
export interface RecordLoaders {
  /** Outfits that the viewer sees; undefined for every other id. */
  readonly outfits: Loader<OutfitRow>;
  readonly users: Loader<User>;
  /** The user of this name; should several have it, the one with the lowest id. */
  readonly userNamed: (username: string) => Promise<User | undefined>;
}

export function createRecordLoaders(read: ReadRows, visibility: Visibility): RecordLoaders {
  return {
    outfits: createLoader(async (ids) => {
      const values = [...valuesOf(ids), ...viewerValues(visibility)];
      const madeOf = (rows: readonly FlatRow[]) => madeOfRecords(ids, rows);
      const rows = await read<FlatRow>(outfitsStatement(ids, visibility), values, { madeOf });
      return rows.map(rowOf);
    }),
    users: createLoader((ids) =>
      read<User>(usersStatement(`id ${among(ids)}`), valuesOf(ids), {
        madeOf: () => ({ users: ids }),
      }),
    ),
    async userNamed(username) {
      const statement = `${usersStatement('username = $1')} ORDER BY id LIMIT 1`;
      const madeOf = () => ({ anyUser: true });
      const [user] = await read<User>(statement, [username], { madeOf });
      return user;
    },
  };
}

function createLoader<Row extends { readonly id: number }>(
  find: (ids: readonly number[]) => Promise<Row[]>,
): Loader<Row> {
  const load = async (ids: readonly number[]) => {
    const rows = new Map((await find(ids)).map((row) => [row.id, row]));
    return ids.map((id) => rows.get(id));
  };
  // Nothing is kept: what a document reads after it has written is another record.
  return new DataLoader(load, { cache: false });
}

/**
 * A condition on the only id, or one on all of them. For a list of one, PostgreSQL would make a new
 * plan each time, which takes seven times as long as the rest: the plan for any list seems dearer.
 */
function among(ids: readonly number[]): string {
  return ids.length === 1 ? '= $1::int' : '= ANY($1::int[])';
}

function valuesOf(ids: readonly number[]): unknown[] {
  return ids.length === 1 ? [...ids] : [ids];
}

/** $1 ids, $2 the viewer. */
function outfitsStatement(ids: readonly number[], visibility: Visibility): string {
  return builtOnce(
    `outfits ${among(ids)} ${visibility.private}`,
    () => `
    SELECT ${rowColumns}
    FROM (
      SELECT * FROM outfits s
      WHERE s.id ${among(ids)} AND ${visibleOf(visibility, 's.user_id', '$2')}
    ) o
    ${joinedRow}`,
  );
}

function usersStatement(condition: string): string {
  return builtOnce(
    `users ${condition}`,
    () => `SELECT ${columnsOfUser} FROM users WHERE ${condition}`,
  );
}

const columnsOfUser = Object.entries(userColumns)
  .map(([field, [column]]) => `${column} AS "${field}"`)
  .join(', ');

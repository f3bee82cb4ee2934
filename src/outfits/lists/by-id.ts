// Loaders: one statement for all that a step of an execution needs, whose results are worked on in turns. That of outfits:
// by id.
// In SQL, since likes and the user are joined: Prisma would send three statements, of three moments.
import DataLoader from 'dataloader';
import type { ReadRows } from '../../database/read.ts';
import { afterTurns, inTurn } from '../../database/turns.ts';
import { type FlatRow, joinedRow, named, rowColumns, rowOf, userColumns } from '../row.ts';
import { isVisible, sightOf, type Visibility } from '../visibility.ts';
import { dependenciesOfRecords } from './dependencies.ts';

export type RecordLoaders = ReturnType<typeof createRecordLoaders>;

const outfitsWhere = (condition: string) => `
        SELECT ${rowColumns}
        FROM (SELECT * FROM outfits s WHERE ${condition} AND ${isVisible}) o ${joinedRow}`;

const outfitsById = outfitsWhere('s.id = ANY (:ids::int[])');
/** Not ANY for one id: PostgreSQL would replan each time, which takes seven times as long as the rest. */
const outfitById = outfitsWhere('s.id = :id::int');

export function createRecordLoaders(read: ReadRows, visibility: Visibility) {
  return {
    outfits: createLoaderInTurns(async (ids: readonly number[]) => {
      const { text, values } = named(ids.length === 1 ? outfitById : outfitsById, {
        ...{ ids, id: ids[0], ...sightOf(visibility) },
      });
      const dependencies = (rows: readonly FlatRow[]) => dependenciesOfRecords(ids, rows);
      const found = await read<FlatRow>(text, values, { dependencies });
      const rows = new Map(found.map((row) => [row.id, rowOf(row)]));
      return ids.map((id) => rows.get(id));
    }),
  };
}

/** SELECT list for users `u`. */
export const columnsOfUser = Object.entries(userColumns)
  .map(([field, [column]]) => `u.${column} AS "${field}"`)
  .join(', ');

export interface Loader<Key, Value> {
  readonly load: (key: Key) => Promise<Value>;
}

export function createLoaderInTurns<Key, Value>(
  find: (keys: readonly Key[]) => Promise<Value[]>,
): Loader<Key, Value> {
  // No cache: a read after a write in the same document must see the write.
  const loader = new DataLoader<Key, Value>(find, { cache: false, batchScheduleFn });
  const giveWay = (value: Value) => inTurn(value, Array.isArray(value) ? value.length + 1 : 1);
  return { load: (key) => loader.load(key).then(giveWay) };
}

/** As DataLoader does by itself, in the tick after all promises: but work in turns goes on for several. */
function batchScheduleFn(send: () => void): void {
  queueMicrotask(() => process.nextTick(afterTurns, send));
}

// Saves single records of the old service, as an import does.
import type pg from 'pg';
import type { Config } from '../../config/config.ts';
import { deleteOutfits, readMoment, saveRead } from '../../outfits/writes/bulk.ts';
import { createCheck, findBases } from '../source/record.ts';

/** @param isAttached whether the tables follow the old service by themselves */
export function createRecordStore(
  pool: pg.Pool,
  { firstId }: Pick<Config, 'firstId'>,
  isAttached: () => boolean | undefined,
) {
  return {
    readMoment: () => readMoment(pool),
    /** A record that an import would refuse is left out. */
    async save(record: unknown, moment: string): Promise<boolean> {
      const { row } = createCheck(findBases({}, [record]), firstId)(record);
      return row === undefined || isAttached() === true || saveRead(pool, row, moment);
    },
    async remove(id: number): Promise<void> {
      if (!isAttached()) await deleteOutfits(pool, [id]);
    },
  };
}

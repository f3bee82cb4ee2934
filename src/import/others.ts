// Which outfits the database has beyond those of a source.
import type pg from 'pg';
import { IdSet } from './id-set.ts';

/** Ids of the database that are compared at a time: in the source there may be millions. */
const idsPerPage = 50_000;

/** @param firstId outfits from there on are made here, and not looked at */
export async function findOthers(
  pool: pg.Pool,
  ids: IdSet,
  firstId = Number.POSITIVE_INFINITY,
): Promise<IdSet> {
  const others = new IdSet();
  let last = -(2 ** 31) - 1;
  for (;;) {
    const { rows } = await pool.query<{ id: number }>(
      'SELECT id FROM outfits WHERE id > $1::bigint ORDER BY id LIMIT $2',
      [last, idsPerPage],
    );
    for (const { id } of rows) if (id < firstId && !ids.has(id)) others.add(id);
    last = rows.at(-1)?.id ?? last;
    if (rows.length < idsPerPage) return others;
  }
}

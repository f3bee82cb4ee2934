// What one like costs the database, beside what it cost while the number of likes was a column of the outfits.
import { outfitColumns, withClient } from './database.js';

/**
 * @typedef {import('./compare.js').Comparison} Comparison
 * @typedef {import('./compare.js').Side} Side
 * @typedef {{ readonly bytes: number, readonly microseconds: number }} Cost of a like
 */

const most = 300_000;
/** Of so many outfits one is liked in a round: which pages of the log are whole depends on that. */
const density = 60;

/** The indexes that the outfits had then, all of which a like wrote, as none of its updates could stay in its page. */
const indexesBefore = [
  'private, created, id',
  'private, modified, id',
  'private, likes, id',
  'private, id',
  'user_id, private, created, id',
  'user_id, private, modified, id',
  'user_id, private, likes, id',
  'user_id, private, id',
];

/**
 * Likes given one after the other in one session, in tables of the benchmark's own with the same rows, which nothing
 * counts: one as the number of likes is stored now, and one as it was then.
 * @param {{ readonly url: string }} table
 * @param {boolean} canCheckpoint whether the role may
 * @returns {Comparison[]}
 */
export function compareLikeCost({ url }, canCheckpoint) {
  /** @type {number[]} */
  const liked = [];
  const prepare = async () => {
    if (liked.length === 0) liked.push(...(await makeTables(url)));
  };
  /** @param {string} name @param {Comparison['unit']} unit @param {(table: string) => Promise<number>} measure @returns {Comparison} */
  const compare = (name, unit, measure) => ({
    name,
    against: 'likes as a column of the outfits',
    unit,
    target: undefined,
    prepare,
    subject: { name, measure: () => measure('bench_likes_now') },
    reference: { name: `${name}, as before`, measure: () => measure('bench_likes_before') },
  });
  const afterCheckpoint = compare('log of a like, after a checkpoint', 'bytes', async (table) => {
    await withClient(url, (client) => client.query('CHECKPOINT'));
    return (await giveLikes(url, table, liked)).bytes;
  });
  if (!canCheckpoint)
    console.log('the log after a checkpoint is not compared: the role may make none');
  return [
    ...(canCheckpoint ? [afterCheckpoint] : []),
    // The same outfits again, so that the log has whole pages of them already.
    compare(
      'log of a like, later',
      'bytes',
      async (table) => (await giveLikes(url, table, liked)).bytes,
    ),
    compare(
      'time of a like in the database',
      'µs/like',
      async (table) => (await giveLikes(url, table, liked)).microseconds,
    ),
  ];
}

/**
 * @param {string} url
 * @returns {Promise<number[]>} the outfits to like, in any order
 */
async function makeTables(url) {
  const columns = Object.keys(outfitColumns).map((column) => `o.${column}`);
  return withClient(url, async (client) => {
    await client.query(`
      DROP TABLE IF EXISTS bench_likes_now, bench_likes_before;
      CREATE TABLE bench_likes_before WITH (autovacuum_enabled = false) AS
        SELECT ${columns.join(', ')}, l.likes
        FROM outfits o JOIN outfit_like_counts l ON l.id = o.id ORDER BY o.id LIMIT ${most};
      ALTER TABLE bench_likes_before ADD PRIMARY KEY (id);
      ${indexesBefore.map((index) => `CREATE INDEX ON bench_likes_before (${index});`).join('\n')}
      CREATE TABLE bench_likes_now (LIKE outfit_like_counts INCLUDING ALL) WITH (autovacuum_enabled = false);
      INSERT INTO bench_likes_now SELECT l.* FROM outfit_like_counts l JOIN bench_likes_before b ON b.id = l.id ORDER BY l.id;
      REINDEX TABLE bench_likes_now`);
    await client.query('VACUUM ANALYZE bench_likes_now, bench_likes_before');
    const { rows } = await client.query(
      `SELECT id FROM bench_likes_now ORDER BY random()
       LIMIT (SELECT count(*) / ${density} FROM bench_likes_now)`,
    );
    return rows.map(({ id }) => id);
  });
}

/**
 * @param {string} url
 * @param {string} table
 * @param {readonly number[]} outfits
 * @returns {Promise<Cost>}
 */
async function giveLikes(url, table, outfits) {
  return withClient(url, async (client) => {
    await client.query(`
      CREATE FUNCTION pg_temp.give_likes(outfits integer[], OUT bytes numeric, OUT seconds numeric)
      LANGUAGE plpgsql AS $$
      DECLARE
        outfit integer;
        place pg_lsn := pg_current_wal_insert_lsn();
        start timestamptz := clock_timestamp();
      BEGIN
        FOREACH outfit IN ARRAY outfits LOOP
          UPDATE ${table} SET likes = likes + 1 WHERE id = outfit;
        END LOOP;
        seconds := extract(epoch FROM clock_timestamp() - start);
        bytes := pg_current_wal_insert_lsn() - place;
      END $$`);
    const { rows } = await client.query('SELECT bytes, seconds FROM pg_temp.give_likes($1)', [
      outfits,
    ]);
    const { bytes, seconds } = rows[0];
    return { bytes: bytes / outfits.length, microseconds: (seconds * 1e6) / outfits.length };
  });
}

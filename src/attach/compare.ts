// Compares the old tables with what is here, in one snapshot of both, and looks at what keeps them in step.
// In SQL: full joins.
import type pg from 'pg';
import { inTransaction } from '../database/transaction.ts';
import { type Kind, writtenColumns } from './columns.ts';
import type { Mapping } from './mapping.ts';
import { type Statements, triggersOf, watchedTables } from './statements.ts';
import { subscribedBy } from './write.ts';

export interface Difference {
  /** `numbers`: an outfit whose number of likes is not that of its rows. */
  readonly kind: Kind | 'numbers';
  /** For a like, of its outfit. */
  readonly id: number;
  readonly userId: number;
  readonly found: 'different' | 'missing here' | 'only here';
  /** Names of the columns that differ. */
  readonly columns: readonly string[];
}

export interface Problem {
  readonly kind: Kind;
  /** Null: the likes wait for a user or outfit that is not here. */
  readonly problem: string | null;
  readonly rows: number;
  /** The first ids. */
  readonly first: readonly number[];
}

export interface Comparison {
  readonly differences: readonly Difference[];
  readonly problems: readonly Problem[];
}

/** Most differences of one kind. */
export const maxDifferences = 100_000;

/** @returns at most `maxDifferences` of each kind */
export async function compare(pool: pg.Pool, statements: Statements): Promise<Comparison> {
  return inTransaction(pool, async (client) => {
    // Merging and hashing millions of rows.
    await client.query(`SET LOCAL work_mem = '128MB'; SET LOCAL jit = off; SET LOCAL DateStyle = 'ISO';
      SET LOCAL IntervalStyle = postgres; SET LOCAL bytea_output = hex; SET LOCAL extra_float_digits = 1`);
    let differences: Difference[] = [];
    for (const text of findDifferences(statements)) {
      differences = [...differences, ...(await client.query<Difference>(text)).rows];
    }
    const { rows: problems } = await client.query<Problem>(
      `SELECT kind, problem, count(*)::int AS rows, (array_agg(id::float8 ORDER BY id))[1:3] AS first
       FROM attached_problems WHERE problem IS NOT NULL OR kind = 'likes' GROUP BY 1, 2 ORDER BY problem IS NULL, 1, 2`,
    );
    return { differences, problems };
  });
}

/** What is named as a problem is no difference, too. */
const isNoProblem = (kind: Kind, id: string, more: string) =>
  `NOT EXISTS (SELECT FROM attached_problems p WHERE kind = '${kind}' AND p.id = ${id} AND problem IS NOT NULL ${more})`;

function findDifferences({ rows, hasNumber, hasLikes }: Statements): string[] {
  const ofTable = (kind: 'outfits' | 'users', there: string, more = '') => {
    const names = writtenColumns(kind);
    const list = (side: string) => names.map((name) => `${side}.${name}`).join(', ');
    const differing = names.map(
      (name) => `CASE WHEN h.${name} IS DISTINCT FROM s.${name} THEN '${name}' END`,
    );
    return `SELECT '${kind}' AS kind, coalesce(s.id, h.id)::float8 AS id, 0 AS "userId", ${found('id')},
        CASE WHEN s.id = h.id THEN array_remove(ARRAY[${differing.join(', ')}]::text[], NULL) ELSE '{}' END AS columns
      FROM (${there}) s FULL JOIN ${kind} h ON h.id = s.id
      WHERE (s.problem IS NOT NULL OR s.id IS NULL OR h.id IS NULL OR (${list('h')}) IS DISTINCT FROM (${list('s')})${more}) AND ${isNoProblem(kind, 'coalesce(s.id, h.id)', '')}
      LIMIT ${maxDifferences}`;
  };
  const found = (key: string) =>
    `CASE WHEN h.${key} IS NULL THEN 'missing here' WHEN s.${key} IS NULL THEN 'only here' ELSE 'different' END AS found`;
  const numbered = `SELECT r.*, a.likes AS carried FROM (${rows.outfits}) r LEFT JOIN attached_likes a ON a.outfit_id = r.id`;
  return [
    ofTable('users', rows.users),
    hasNumber
      ? ofTable('outfits', numbered, ' OR s.likes IS DISTINCT FROM s.carried')
      : ofTable('outfits', rows.outfits),
    `SELECT 'likes' AS kind, coalesce(s.outfit_id, h.outfit_id)::float8 AS id, coalesce(s.user_id, h.user_id)::float8 AS "userId",
       ${found('outfit_id')}, '{}'::text[] AS columns
     FROM (
       SELECT * FROM (${rows.likes}) l
       WHERE EXISTS (SELECT FROM outfits o WHERE o.id = l.outfit_id) AND EXISTS (SELECT FROM users u WHERE u.id = l.user_id)
     ) s FULL JOIN outfit_likes h ON h.outfit_id = s.outfit_id AND h.user_id = s.user_id
     WHERE ${hasLikes} AND (s.outfit_id IS NULL OR h.outfit_id IS NULL OR h.created IS NULL AND s.created IS NOT NULL)
       AND ${isNoProblem('likes', 'coalesce(s.outfit_id, h.outfit_id)', 'AND p.user_id = coalesce(s.user_id, h.user_id)')} LIMIT ${maxDifferences}`,
    `SELECT 'numbers' AS kind, c.id::float8 AS id, 0 AS "userId", 'different' AS found, '{likes}'::text[] AS columns
     FROM outfit_like_counts c LEFT JOIN (SELECT outfit_id, count(*) AS number FROM outfit_likes GROUP BY 1) r ON r.outfit_id = c.id
     WHERE NOT ${hasNumber} AND c.likes <> coalesce(r.number, 0) LIMIT ${maxDifferences}`,
  ];
}

/** Subscriptions to the old tables: what is wrong, and seconds since the last message of the one that is furthest behind. */
export async function readSubscriptions(
  client: Pick<pg.Pool, 'query'>,
  mapping: Mapping,
): Promise<{ readonly sentences: string[]; readonly lag: number | undefined }> {
  const { rows } = await client.query<{ sentence: string | null; lag: number | null }>(
    `SELECT CASE WHEN s.oid IS NULL THEN format('no subscription has the table %s', name)
       WHEN NOT s.subenabled THEN format('the subscription %s is disabled', s.subname)
       WHEN a.pid IS NULL THEN format('the subscription %s is not running', s.subname)
       WHEN r.srsubstate <> 'r' THEN format('the subscription %s has not copied %s yet', s.subname, r.srrelid::regclass) END AS sentence,
       extract(epoch FROM clock_timestamp() - a.last_msg_receipt_time)::float8 AS lag
     FROM unnest($1::text[]) AS name LEFT JOIN pg_subscription_rel r ON r.srrelid IN (${subscribedBy('name')})
     LEFT JOIN pg_subscription s ON s.oid = r.srsubid LEFT JOIN pg_stat_subscription a ON a.subid = s.oid AND a.relid IS NULL
     WHERE EXISTS (SELECT FROM unnest($1::text[]) AS other JOIN pg_subscription_rel ON srrelid IN (${subscribedBy('other')}))`,
    [watchedTables(mapping).map(({ name }) => name)],
  );
  const sentences = [...new Set(rows.flatMap(({ sentence }) => sentence ?? []))];
  const lags = rows.flatMap(({ lag }) => lag ?? []);
  return { sentences, lag: lags.length > 0 ? Math.max(0, ...lags) : undefined };
}

/** Tables here that only functions of attach write. */
export const guardedTables = ['users', 'outfits', 'outfit_likes'];

/** Triggers that are missing, off, or fire in other sessions than they should; one sentence for each. */
export async function checkTriggers(
  client: Pick<pg.Pool, 'query'>,
  mapping: Mapping,
): Promise<string[]> {
  const wanted = [
    ...watchedTables(mapping).flatMap((table, nth) =>
      triggersOf(table, nth).map(({ name, mode }) => ({ table: table.name, name, mode })),
    ),
    { table: 'attached_changes', name: 'attached_carry', mode: 'A' },
    ...guardedTables.map((table) => ({ table, name: 'attached_refuse', mode: 'O' })),
  ];
  const { rows } = await client.query<{ sentence: string }>(
    `SELECT format('the trigger %s on %s %s', w.name, w.table, CASE WHEN t.tgenabled IS NULL THEN 'is missing'
       WHEN t.tgenabled = 'D' THEN 'is off' ELSE 'does not fire when it should' END) AS sentence
     FROM json_to_recordset($1::json) AS w (name text, "table" text, mode "char")
     LEFT JOIN pg_class c ON c.oid = to_regclass(w.table)
     LEFT JOIN pg_trigger t ON t.tgrelid = c.oid AND t.tgname = w.name
     WHERE t.tgenabled IS DISTINCT FROM w.mode
     ORDER BY 1`,
    [JSON.stringify(wanted)],
  );
  const { sentences } = await readSubscriptions(client, mapping);
  return [...rows.map(({ sentence }) => sentence), ...sentences];
}

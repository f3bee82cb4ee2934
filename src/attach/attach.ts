// Attaches the tables of an old service: what follows them, the first copy, and what takes it out again.
// In SQL: triggers, locks, and sets of rows.
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { lockNotAvailable, sqlStateOf } from '../database/errors.ts';
import { inTransaction, retryDeadlocks } from '../database/transaction.ts';
import { OperatorError } from '../errors.ts';
import { applyPendingChanges } from '../outfits/counts.ts';
import { moveSequences } from '../outfits/writes/bulk.ts';
import { attachedMapping, carryNoted, type Key, retryProblems, saveKeys } from './attachment.ts';
import type { Kind } from './columns.ts';
import {
  type Comparison,
  compare,
  type Difference,
  guardedTables,
  maxDifferences,
} from './compare.ts';
import type { Mapping } from './mapping.ts';
import {
  findReadColumns,
  makeNoteFunction,
  makeStatements,
  noteFunction,
  type Statements,
  triggersOf,
  type WatchedTable,
  watchedTables,
} from './statements.ts';

/** Milliseconds that a statement of the old service may wait for ours. */
const lockTimeout = 300;
const retryPause = 1_000;
const maxAttempts = 120;
/** Milliseconds that a batch of the first copy takes about: so long its rows cannot be written. */
const batchTime = 100;
const maxBatch = 5_000;
/** Batches at the same time. */
const copiers = 3;
const mendedAtOnce = 500;
/** Outfits after which the counts are brought up to date: pages are slower meanwhile. */
const appliedAtOnce = 20_000;
const maxRounds = 20;

/** All statements that `attach` runs before the first copy, as scripts: each is one transaction. */
export async function installScripts(
  pool: pg.Pool,
  mapping: Mapping,
  { install, hasNumber }: Statements,
): Promise<string[]> {
  const tables = await briefly(pool, 'An old table', (client) => findReadColumns(client, mapping));
  const here = [
    `SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);`,
    install,
    ...tables.map(makeNoteFunction),
    'DROP TRIGGER IF EXISTS attached_carry ON attached_changes;',
    'CREATE CONSTRAINT TRIGGER attached_carry AFTER INSERT ON attached_changes DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION attached_carry_own();',
    'ALTER TABLE attached_changes ENABLE ALWAYS TRIGGER attached_carry;',
    ...guardedTables.map(
      (table) =>
        `CREATE OR REPLACE TRIGGER attached_refuse BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON ${table} FOR EACH STATEMENT
           WHEN (current_setting('outfit_gateway.attached', true) IS DISTINCT FROM pg_current_xact_id()::text) EXECUTE FUNCTION attached_refuse();`,
    ),
    onFunctions('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC'),
    // Of tables, which are read anew.
    'DELETE FROM attached_problems WHERE id = 0;',
    ...(hasNumber ? [] : ['DELETE FROM attached_likes;']),
    `INSERT INTO attachment (mapping) VALUES ('${JSON.stringify(mapping).replaceAll("'", "''")}') ON CONFLICT (is_only) DO UPDATE SET mapping = excluded.mapping;`,
  ];
  return [here.join('\n'), ...tables.map(triggerScript)];
}

/** Runs it on each function of attach. @param more statements */
const onFunctions = (command: string, more = '') => `DO $do$ DECLARE one regprocedure; BEGIN
  FOR one IN SELECT oid::regprocedure FROM pg_proc WHERE pronamespace = quote_ident(current_schema())::regnamespace AND proname LIKE 'attached\\_%' LOOP
    EXECUTE format('${command}', one);
  END LOOP;
  ${more}
END $do$;`;

/** The modes need the owner of the table; who makes a partition of it, with its triggers, the right to execute the function. */
function triggerScript(table: WatchedTable, nth: number): string {
  const modes = { A: 'ALWAYS', O: '', R: 'REPLICA' };
  const triggers = triggersOf(table, nth).flatMap(({ name, mode, definition }) => [
    `${definition};`,
    `ALTER TABLE ${table.name} ENABLE ${modes[mode]} TRIGGER ${name};`,
  ]);
  const grant = `DO $do$ BEGIN
  EXECUTE (SELECT format('GRANT EXECUTE ON FUNCTION ${noteFunction(nth)}() TO %s', relowner::regrole) FROM pg_class WHERE oid = ${pg.escapeLiteral(table.name)}::regclass);
END $do$;`;
  return [...triggers, grant].join('\n');
}

const lockedForLong = (what: string) =>
  new OperatorError(`${what} is locked by another transaction for long: try again.`);

/** Works in one transaction; while a lock is not free, tries again. @throws OperatorError */
async function briefly<Result>(
  pool: pg.Pool,
  what: string,
  work: (client: pg.PoolClient) => Promise<Result>,
): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await inTransaction(pool, async (client) => {
        await client.query(`SET LOCAL lock_timeout = ${lockTimeout}`);
        return work(client);
      });
    } catch (error) {
      if (sqlStateOf(error) !== lockNotAvailable) throw error;
      if (attempt === maxAttempts) {
        throw lockedForLong(what);
      }
      await sleep(retryPause);
    }
  }
}

export interface AttachOptions {
  /** @param total an estimate */
  onCopied(kind: Kind, rows: number, total: number): void;
  onMended(kind: Difference['kind'], rows: number): void;
  readonly signal: AbortSignal;
  /** Whether what the old tables do not have is removed here. */
  readonly prune: boolean;
}

/** Makes what follows the old tables, copies them, and compares. @returns what still differs */
export async function attach(
  pool: pg.Pool,
  mapping: Mapping,
  options: AttachOptions,
): Promise<Comparison> {
  const statements = await makeStatements(pool, mapping);
  await refuseWrongIds(pool, statements);
  if (!options.prune) await refuseRemoval(pool, statements);
  const [here = '', ...there] = await installScripts(pool, mapping, statements);
  const stored = await attachedMapping(pool);
  const watched = (one: Mapping) => JSON.stringify(watchedTables(one));
  // With the same tables, they are followed meanwhile.
  if (stored && watched(stored) !== watched(mapping)) await dropNotes(pool);
  await briefly(pool, 'A table of this gateway', (client) => client.query(here));
  for (const [nth, script] of there.entries()) {
    await briefly(pool, watchedTables(mapping)[nth]?.name ?? '', (client) => client.query(script));
  }
  await copy(pool, mapping, statements, options);
  await pool.query(`ANALYZE ${guardedTables}, outfit_like_counts, outfit_texts`);
  return mend(pool, mapping, statements, options);
}

async function refuseWrongIds(pool: pg.Pool, { rows }: Statements): Promise<void> {
  for (const kind of ['users', 'outfits'] as const) {
    const { rows: found } = await pool.query<{ id: string | null; twice: string | null }>(
      `SELECT max(id)::text AS id, (SELECT id::text FROM (${rows[kind]}) t GROUP BY id HAVING count(*) > 1 LIMIT 1) AS twice FROM (${rows[kind]}) s`,
    );
    const { id, twice } = found[0] ?? {};
    if (twice) {
      throw new OperatorError(
        `The SELECT of ${kind} in the mapping gives more than one row for the id ${twice}.`,
      );
    }
    if (Number(id) > 2_147_483_647) {
      throw new OperatorError(
        `The old ${kind} have the id ${id}, which is beyond 31 bits: they cannot be attached.`,
      );
    }
  }
}

/** @throws OperatorError while rows are here that the old tables do not have: another database may be meant */
async function refuseRemoval(pool: pg.Pool, { rows }: Statements): Promise<void> {
  const { rows: found } = await pool.query<{ outfits: number }>(
    `SELECT count(*)::int AS outfits FROM outfits o WHERE NOT EXISTS (SELECT FROM (${rows.outfits}) s WHERE s.id = o.id)`,
  );
  const outfits = found[0]?.outfits ?? 0;
  if (outfits === 0) return;
  throw new OperatorError(
    `The old tables do not have ${outfits} of the outfits that are here: with --prune they are removed.`,
  );
}

/** The first copy. Rows that a writer holds are left to its COMMIT, and to the comparison when that is taken back. */
async function copy(
  pool: pg.Pool,
  mapping: Mapping,
  { rows }: Statements,
  { signal, onCopied }: AttachOptions,
): Promise<void> {
  for (const kind of ['users', 'outfits'] as const) {
    const { rows: estimates } = await pool.query<{ total: number }>(
      'SELECT greatest(reltuples, 0)::float8 AS total FROM pg_class WHERE oid = $1::regclass',
      [Object.keys(mapping[kind].changes)[0]],
    );
    const [{ total } = { total: 0 }] = estimates;
    let [copied, applied, size] = [0, 0, 100];
    async function* readBatches() {
      for (let last: number | undefined = Number.MIN_SAFE_INTEGER; last !== undefined; ) {
        const ids: number[] = await inTransaction(pool, async (client) => {
          // A merge join would read another table from its first row on, for each batch. A hash join reads it whole, too, but is
          // taken where it has no index on the key, and a nested loop would read it for each row.
          await client.query('SET LOCAL enable_mergejoin = off');
          const { rows: batch } = await client.query<{ id: number }>(
            `SELECT id::float8 AS id FROM (${rows[kind]}) s WHERE s.id > $1::bigint ORDER BY s.id LIMIT $2`,
            [last, size],
          );
          return batch.map(({ id }) => id);
        });
        last = ids.at(-1);
        if (last !== undefined) yield ids;
      }
    }
    const batches = readBatches();
    // Where one ends or fails, so do the batches: the others end after theirs.
    const work = async () => {
      for await (const ids of batches) {
        signal.throwIfAborted();
        const start = performance.now();
        await saveRows(pool, mapping, kind, ids);
        copied += ids.length;
        onCopied(kind, copied, total);
        const wanted = (ids.length * batchTime) / (performance.now() - start);
        size = Math.round(Math.max(10, Math.min(maxBatch, 2 * size, (3 * size + wanted) / 4)));
        if (kind === 'users' || copied - applied < appliedAtOnce) continue;
        applied = copied;
        await applyPendingChanges(pool);
      }
    };
    const ended = await Promise.allSettled(Array.from({ length: copiers }, work));
    const failed = ended.find((one) => one.status === 'rejected');
    if (failed) throw failed.reason;
  }
}

/**
 * Carries rows over while their source is locked until COMMIT: what is deleted meanwhile does not come back. A row that a
 * writer holds is left to its COMMIT.
 */
function saveRows(
  pool: pg.Pool,
  mapping: Mapping,
  kind: 'outfits' | 'users',
  ids: readonly number[],
) {
  const [[table = '', id = ''] = []] = Object.entries(mapping[kind].changes);
  const column = `t.${pg.escapeIdentifier(id)}`;
  const keys = ids.map((one) => ({ kind, id: one, userId: 0 }));
  return saveKeys(pool, keys, async (client, given) => {
    // What a crash takes back is copied again. Old tables first: whoever has one exclusively may wait for the rows.
    await client.query('SET LOCAL synchronous_commit = off; SELECT attached_open_tables()');
    const { rows } = await client.query<Key>(
      `WITH locked AS MATERIALIZED (SELECT ${column} AS id FROM ${table} t WHERE ${column} = ANY ($1::bigint[]) FOR SHARE SKIP LOCKED)
       SELECT '${kind}' AS kind, id::float8 AS id FROM locked UNION ALL
       SELECT '${kind}', g.id FROM unnest($1::bigint[]) AS g (id) WHERE NOT EXISTS (SELECT FROM ${table} t WHERE ${column} = g.id)`,
      [given.map((key) => key.id)],
    );
    return rows;
  });
}

/** Compares, and carries over what differs, until nothing does. @returns the last comparison */
async function mend(
  pool: pg.Pool,
  mapping: Mapping,
  statements: Statements,
  { signal, onMended }: AttachOptions,
): Promise<Comparison> {
  let last = new Set<string>();
  for (let round = 1; ; ) {
    signal.throwIfAborted();
    let retried: Key | undefined;
    do {
      signal.throwIfAborted();
      retried = await retryProblems(pool, retried);
    } while (retried);
    const comparison = await compare(pool, statements);
    const { differences } = comparison;
    if (differences.length === 0 || round === maxRounds) return comparison;
    const found = differences.map(({ kind, id, userId }) => `${kind} ${id} ${userId}`);
    const again = found.filter((key) => last.has(key)).length;
    last = new Set(found);
    // Where there are more of them, it goes on, unless they are those of the last round.
    if (differences.length < maxDifferences || 2 * again > differences.length) round++;
    for (const kind of ['users', 'outfits', 'likes', 'numbers'] as const) {
      const wrong = differences.filter((one) => one.kind === kind);
      if (wrong.length === 0) continue;
      for (let from = 0; from < wrong.length; from += mendedAtOnce) {
        await mendRows(pool, mapping, kind, wrong.slice(from, from + mendedAtOnce));
      }
      onMended(kind, wrong.length);
    }
  }
}

async function mendRows(
  pool: pg.Pool,
  mapping: Mapping,
  kind: Difference['kind'],
  wrong: readonly Difference[],
): Promise<void> {
  const ids = wrong.map(({ id }) => id);
  if (kind === 'users' || kind === 'outfits') {
    await saveRows(pool, mapping, kind, ids);
  } else if (kind === 'likes') {
    await saveKeys(
      pool,
      wrong.map(({ id, userId }) => ({ kind, id, userId })),
    );
  } else {
    await retryDeadlocks(pool, async (client) => {
      const lock =
        'SELECT FROM outfit_like_counts WHERE id = ANY ($1::int[]) ORDER BY id FOR UPDATE';
      await client.query(lock, [ids]);
      await client.query(
        `UPDATE outfit_like_counts c SET likes = (SELECT count(*) FROM outfit_likes WHERE outfit_id = c.id) WHERE id = ANY ($1::int[])`,
        [ids],
      );
    });
  }
}

/** Takes out all that `attach` has made; users, outfits and likes stay. @returns whether anything was attached */
export async function detach(pool: pg.Pool): Promise<boolean> {
  if ((await attachedMapping(pool)) === undefined) return false;
  await dropNotes(pool);
  for (let attempt = 1; (await carryNoted(pool, null)) > 0; attempt++) {
    if (attempt === maxAttempts) throw lockedForLong('An old table');
    await sleep(retryPause);
  }
  // Ids of the old service are here.
  await inTransaction(pool, moveSequences);
  const dropTables = 'DROP TABLE attachment, attached_changes, attached_problems, attached_likes;';
  const dropAll = onFunctions('DROP FUNCTION %s CASCADE', dropTables);
  await briefly(pool, 'A table of this gateway', (client) => client.query(dropAll));
  return true;
}

/** One function after the other: each takes its triggers along, and locks one old table. */
async function dropNotes(pool: pg.Pool): Promise<void> {
  const { rows } = await pool.query<{ name: string }>(
    `SELECT DISTINCT oid::regprocedure::text AS name FROM pg_proc
     WHERE pronamespace = quote_ident(current_schema())::regnamespace AND proname LIKE 'attached_note_%'`,
  );
  for (const { name } of rows) {
    await briefly(pool, 'An old table', (client) => client.query(`DROP FUNCTION ${name} CASCADE`));
  }
}

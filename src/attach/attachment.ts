// What a gateway knows of the attached tables: who writes, and what is wrong. It carries over what was left noted.

import type pg from 'pg';
import type { Logger } from 'pino';
import { commandText } from '../config/package.ts';
import { lockNotAvailable, sqlStateOf } from '../database/errors.ts';
import { retryDeadlocks } from '../database/transaction.ts';
import type { Kind } from './columns.ts';
import { checkTriggers, readSubscriptions } from './compare.ts';
import { checkMapping, type Mapping } from './mapping.ts';

export async function attachedMapping(pool: Pick<pg.Pool, 'query'>): Promise<Mapping | undefined> {
  const { rows } = await pool.query(`SELECT to_regclass('attachment') IS NOT NULL AS exists`);
  if (!rows[0]?.exists) return undefined;
  const stored = (await pool.query('SELECT mapping FROM attachment')).rows[0]?.mapping;
  return stored && checkMapping(stored, 'The mapping of the attached tables');
}

/** A row to carry over; of a like, the outfit and who likes it. */
export interface Key {
  readonly kind: Kind;
  readonly id: number | string;
  readonly userId: number | string;
}

/** Errors of the server, the connection and of concurrency: all others say that a row is refused. */
const noRefusal = /^(?:08|25|40|53|55|57|58|XX)/;

/**
 * Carries rows over in one transaction. Where one is refused here, in smaller ones, whose locks are sorted and short: the old
 * service must not wait for each row alone. @param lock says which of them may be carried over
 */
export async function saveKeys(
  pool: pg.Pool,
  keys: readonly Key[],
  lock = async (_client: pg.PoolClient, given: readonly Key[]) => given,
): Promise<void> {
  const save = keys.length > 1 ? 'attached_save' : 'attached_try';
  try {
    await retryDeadlocks(pool, async (client) => {
      const given = await lock(client, keys);
      const idsOf = (kind: Kind, name: 'id' | 'userId' = 'id') => {
        const ids = given.filter((key) => key.kind === kind).map((key) => key[name]);
        return ids.length > 0 ? ids : null;
      };
      const lists = [idsOf('users'), idsOf('outfits'), idsOf('likes'), idsOf('likes', 'userId')];
      await client.query(`SELECT ${save}($1::bigint[], $2::bigint[], $3::bigint[], $4)`, lists);
    });
  } catch (error) {
    const state = sqlStateOf(error);
    if (keys.length < 2 || state === undefined || noRefusal.test(state)) throw error;
    const middle = Math.ceil(keys.length / 2);
    await saveKeys(pool, keys.slice(0, middle), lock);
    await saveKeys(pool, keys.slice(middle), lock);
  }
}

/** Rows or transactions in a look. */
const mostAtOnce = 1_000;
const retriedKeys = `
  SELECT kind, id::text, user_id::text AS "userId" FROM attached_problems
  WHERE id <> 0 AND NOT current_setting('transaction_read_only')::boolean AND ($1::text IS NULL OR (kind, id, user_id) < ($1, $2, $3))
  ORDER BY kind DESC, id DESC, user_id DESC LIMIT ${mostAtOnce}`;

/**
 * Tries some of what could not be carried over again, users first: of two transactions at the same time, neither may have seen
 * what it needed. @param after where the last call ended @param lockTimeout milliseconds; 0: none
 * @returns where this one ended; undefined: that was the last
 */
export async function retryProblems(
  pool: pg.Pool,
  after?: Key,
  lockTimeout = 0,
): Promise<Key | undefined> {
  const from = [after?.kind, after?.id, after?.userId];
  const { rows } = await pool.query<Key>(retriedKeys, from);
  const lock = async (client: pg.PoolClient, given: readonly Key[]) => {
    await client.query(`SET LOCAL lock_timeout = ${lockTimeout}`);
    return given;
  };
  if (rows.length > 0) await saveKeys(pool, rows, lock);
  return rows.length < mostAtOnce ? undefined : rows.at(-1);
}

/** Milliseconds that a carried transaction waits for a lock, and after one that was locked. */
const lockTimeout = 1_000;
const laterLockTimeout = 10;

/**
 * Carries over what transactions of other isolation levels have noted. Each alone, whose locks are in the order of ids: the old
 * service would deadlock with several. What is locked stays noted. @param most of them; null: all @returns how many were locked
 */
export async function carryNoted(pool: pg.Pool, most: number | null): Promise<number> {
  const { rows } = await pool.query<{ xid: string }>(
    `SELECT xid::text FROM attached_changes WHERE NOT current_setting('transaction_read_only')::boolean GROUP BY xid ORDER BY attached_changes.xid LIMIT $1`,
    [most],
  );
  let locked = 0;
  for (const { xid } of rows) {
    await retryDeadlocks(pool, async (client) => {
      const timeout = locked === 0 ? lockTimeout : laterLockTimeout;
      await client.query(`SET LOCAL lock_timeout = ${timeout}`);
      await client.query('SELECT attached_carry($1)', [xid]);
    }).catch((error) => {
      if (sqlStateOf(error) !== lockNotAvailable) throw error;
      locked++;
    });
  }
  return locked;
}

/** Milliseconds between two looks, while tables are attached and while none are. */
const interval = 1_000;
const idleInterval = 10_000;
/** Looks between two at the triggers. */
const triggerLooks = 30;

const announcements = {
  'old service':
    'attached one way: the old service writes its tables, and every write here is refused, with WRITES=on too',
  both: 'attached both ways: what is written here is written in the tables of the old service',
  none: 'not attached any more',
};

export class Attachment {
  #mapping: Mapping | undefined;
  /** Rows that cannot be represented here, and triggers that are not as they should be. */
  problems = 0;
  /** Seconds since the last message of a subscription to the old tables; undefined: there is none. */
  lag: number | undefined;
  #looks = 0;
  #retried: Key | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;
  #announced: keyof typeof announcements = 'none';

  constructor(
    private readonly pool: pg.Pool,
    private readonly log: Pick<Logger, 'info' | 'warn'>,
  ) {}

  /** Whether the old service writes alone, or both; undefined: nothing is attached. */
  get writer(): 'both' | 'old service' | undefined {
    return this.#mapping && (this.#mapping.write ? 'both' : 'old service');
  }

  /** Looks now, and then in intervals. */
  async start(): Promise<void> {
    await this.#look().catch(() => {});
    if (this.#isClosed) return;
    this.#timer = setTimeout(() => this.start(), this.#mapping ? interval : idleInterval);
    this.#timer.unref();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  async #look(): Promise<void> {
    this.#mapping = await attachedMapping(this.pool);
    const writer = this.writer ?? 'none';
    if (writer !== this.#announced) this.log.info(announcements[writer]);
    this.#announced = writer;
    if (!this.#mapping) {
      this.problems = 0;
      this.lag = undefined;
      return;
    }
    const look = this.#looks++;
    // A gateway that starts is not listening yet.
    if (look > 0) await carryNoted(this.pool, mostAtOnce);
    this.lag = (await readSubscriptions(this.pool, this.#mapping)).lag;
    if (look % triggerLooks !== 0) return;
    this.#retried = await retryProblems(this.pool, this.#retried, interval);
    const { rows } = await this.pool.query(
      'SELECT count(problem)::int AS number FROM attached_problems',
    );
    const triggers = await checkTriggers(this.pool, this.#mapping);
    const problems = rows[0].number + triggers.length;
    if (problems > this.problems) {
      this.log.warn(
        { triggers, rows: rows[0].number },
        `attached tables: run ${commandText('attach check')}`,
      );
    }
    this.problems = problems;
  }
}

// What a gateway knows of the attached tables: who writes, and what is wrong. It carries over what was left noted.

import type pg from 'pg';
import type { Logger } from 'pino';
import { commandText } from '../config/package.ts';
import { checkTriggers, readSubscriptions } from './compare.ts';
import { checkMapping, type Mapping } from './mapping.ts';

export async function attachedMapping(pool: Pick<pg.Pool, 'query'>): Promise<Mapping | undefined> {
  const { rows } = await pool.query(`SELECT to_regclass('attachment') IS NOT NULL AS exists`);
  if (!rows[0]?.exists) return undefined;
  const stored = (await pool.query('SELECT mapping FROM attachment')).rows[0]?.mapping;
  return stored && checkMapping(stored, 'The mapping of the attached tables');
}

/** Tries again what could not be carried over: of two transactions at the same time, neither may have seen what it needed. */
export const retryProblems = (most: number) => `
  SELECT attached_try(array_agg(id) FILTER (WHERE kind = 'users'), array_agg(id) FILTER (WHERE kind = 'outfits'),
    array_agg(id) FILTER (WHERE kind = 'likes'), array_agg(user_id) FILTER (WHERE kind = 'likes'))
  FROM (SELECT * FROM attached_problems WHERE id <> 0 AND NOT current_setting('transaction_read_only')::boolean ORDER BY random() LIMIT ${most}) p`;
const retriedAtOnce = 1_000;

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
  #problems = 0;
  /** Seconds since the last message of a subscription to the old tables; undefined: there is none. */
  lag: number | undefined;
  #looks = 0;
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

  /** Rows that cannot be represented here, and triggers that are not as they should be. */
  get problems(): number {
    return this.#problems;
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
      this.#problems = 0;
      this.lag = undefined;
      return;
    }
    // Of transactions of other isolation levels.
    await this.pool.query(
      'SELECT attached_carry(xid) FROM (SELECT DISTINCT xid FROM attached_changes WHERE NOT current_setting($1)::boolean ORDER BY xid LIMIT 100) left_over',
      ['transaction_read_only'],
    );
    this.lag = (await readSubscriptions(this.pool, this.#mapping)).lag;
    if (this.#looks++ % triggerLooks !== 0) return;
    await this.pool.query(retryProblems(retriedAtOnce));
    const { rows } = await this.pool.query(
      'SELECT count(problem)::int AS number FROM attached_problems',
    );
    const triggers = await checkTriggers(this.pool, this.#mapping);
    const problems = rows[0].number + triggers.length;
    if (problems > this.#problems) {
      this.log.warn(
        { triggers, rows: rows[0].number },
        `attached tables: run ${commandText('attach check')}`,
      );
    }
    this.#problems = problems;
  }
}

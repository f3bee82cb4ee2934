// Maintains the counts: applies pending changes to them, and audits samples (docs/counting.md).
// In SQL: functions of the database, and a lock.
import type pg from 'pg';
import { inTransaction } from '../database/transaction.ts';

/** So many pending changes are applied at once; fewer wait up to `maxWait` milliseconds, as each batch is a commit. */
const minBatch = 500;
const maxWait = 5_000;
/** Milliseconds between two looks at pending changes, and between two audits; both with jitter. */
const pollInterval = 250;
const auditInterval = 60_000;

/** To apply so many changes takes seconds: it is logged. */
const longBacklog = 5_000;

interface Batch {
  readonly applied: number;
  /** Nothing is left, or another process maintains the counts. */
  readonly isDone: boolean;
}

/** Applies pending changes and cuts large buckets, unless another process does. @param say called where that takes seconds */
export async function applyPendingChanges(
  pool: pg.Pool,
  say: (sentence: string) => void = () => {},
): Promise<void> {
  let total = 0;
  for (let isLong = false; ; ) {
    const { applied, isDone } = await inTransaction(pool, async (client): Promise<Batch> => {
      const counted = await client.query<{ pending: number }>(lockAndCount(isLong));
      if (!counted.rows[0]) return { applied: 0, isDone: true };
      const { pending } = counted.rows[0];
      if (pending >= longBacklog) {
        isLong = true;
        say(`applying ${pending} changes to the counts: pages are exact, but slower meanwhile`);
      }
      const { rows } = await client.query<Batch>(applyBatch);
      return rows[0] as Batch;
    });
    total += applied;
    if (isLong) say(`${total} changes applied ${isDone ? 'to the counts' : 'so far'}`);
    if (isDone) return;
  }
}

/** Returns no row while another process holds the lock. @param isLong the number is not needed again */
const lockAndCount = (isLong: boolean) => `
  SELECT count_pending_outfit_changes(${isLong ? 0 : 'NULL'}) AS pending
  FROM (SELECT pg_try_advisory_xact_lock(72707370) AS locked) mine WHERE locked`;

const applyBatch = `
  SELECT applied::int, is_done AS "isDone" FROM apply_pending_outfit_changes()`;

/** A bucket or group whose count differs from the number of outfits in it. */
export interface WrongCount {
  readonly ordering: string;
  readonly isGroup: boolean;
  /** The key that it begins with. */
  readonly fromValue: string;
  readonly fromId: number;
  /** Of public outfits, and of private ones. */
  readonly counted: readonly string[];
  readonly found: readonly string[];
}

export async function checkTriggers(pool: Pick<pg.Pool, 'query'>): Promise<string[]> {
  const { rows } = await pool.query<{ problem: string }>(
    'SELECT problem FROM check_outfit_triggers() AS problem',
  );
  return rows.map(({ problem }) => problem);
}

/** Applies pending changes as they come, and audits one bucket of each ordering every minute. Errors are retried. */
export class CountsMaintenance {
  /** Wrong buckets and groups in the last audit; undefined before the first one. */
  wrongCounts: number | undefined;
  #pendingSince: number | undefined;
  #snapshot: string | undefined;
  #loops: readonly { close(): void }[] = [];

  constructor(
    private readonly pool: pg.Pool,
    private readonly onWrong: (wrong: readonly WrongCount[]) => void,
    private readonly say: (sentence: string) => void,
  ) {}

  get pendingSeconds(): number {
    return (performance.now() - (this.#pendingSince ?? performance.now())) / 1000;
  }

  start(): void {
    this.#loops = [
      repeat(() => this.#applyWhenDue(), pollInterval),
      repeat(() => this.#audit(), auditInterval),
    ];
  }

  close(): void {
    for (const loop of this.#loops) loop.close();
  }

  async #applyWhenDue(): Promise<void> {
    const { rows } = await this.pool.query<CountsState>(readState);
    const { pending = 0, isMisshapen = false, snapshot } = rows[0] ?? {};
    const now = performance.now();
    // Another process has applied changes: those that are pending now are younger.
    if (snapshot !== this.#snapshot || pending === 0) this.#pendingSince = undefined;
    this.#snapshot = snapshot;
    if (pending > 0) this.#pendingSince ??= now;
    const isDue = this.#pendingSince !== undefined && now - this.#pendingSince >= maxWait;
    if (pending < minBatch && !isDue && !isMisshapen) return;
    await applyPendingChanges(this.pool, this.say);
    this.#pendingSince = undefined;
  }

  async #audit(): Promise<void> {
    const { rows } = await this.pool.query<WrongCount>(readSample);
    this.wrongCounts = rows.length;
    if (rows.length > 0) this.onWrong(rows);
  }
}

type CountsState = { pending: number; isMisshapen: boolean; snapshot: string };

/** Read-only. Returns no row on a standby, whose primary maintains the counts, or while the server is read-only. */
const readState = {
  name: 'counts state',
  text: `
    SELECT is_misshapen AS "isMisshapen", snapshot::text AS snapshot, count_pending_outfit_changes(${minBatch}) AS pending
    FROM outfit_counts_state WHERE NOT current_setting('transaction_read_only')::boolean`,
};

/** Names the table to lock it before the snapshot is taken: TRUNCATE is visible to older snapshots too. */
const readSample = `
  SELECT ordering, is_group AS "isGroup", from_value AS "fromValue", from_id AS "fromId", counted, found
  FROM check_outfit_counts(1) WHERE (SELECT count(*) FROM (SELECT FROM outfits LIMIT 1) o) >= 0`;

/** Runs `work` repeatedly, never concurrently, with about `pause` milliseconds between runs. */
function repeat(work: () => Promise<void>, pause: number): { close(): void } {
  let timer: NodeJS.Timeout;
  let isClosed = false;
  const schedule = (factor = 1) => {
    if (isClosed) return;
    timer = setTimeout(
      () =>
        work().then(
          () => schedule(),
          // Backoff: the cause may last, such as a database that is down.
          () => schedule(10),
        ),
      pause * factor * (0.75 + Math.random() / 2),
    );
    timer.unref();
  };
  schedule();
  return {
    close: () => {
      isClosed = true;
      clearTimeout(timer);
    },
  };
}

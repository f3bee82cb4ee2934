// Keeps the counts of this database: folds what was written into them, and audits samples (counting.md).
import type pg from 'pg';
import { inTransaction } from '../database/transaction.ts';

/** Changes that are worth a fold at once, and milliseconds that fewer may wait: each fold is a commit. */
const enough = 500;
const maxWait = 5_000;
/** Milliseconds between two looks at what is pending, and between two samples; both a little varied. */
const foldPause = 250;
const auditPause = 60_000;

/** Changes from which on a fold takes seconds: it never holds up a start, and the log says when it begins and ends. */
const many = 5_000;

export interface FoldObserver {
  onBegin(pending: number): void;
  /** After each batch that is not the last one. @param waiting nodes that are to be split */
  onBatch(folded: number, waiting: number): void;
  onEnd(folded: number): void;
}

interface Batch {
  readonly folded: number;
  /** Whether nothing is left, or another process is at it. */
  readonly isDone: boolean;
  readonly waiting: number;
}

/** Adds pending changes to the counts and splits crowded nodes, unless another process does. Gives how many. */
export async function foldChanges(pool: pg.Pool, observer?: FoldObserver): Promise<number> {
  let total = 0;
  let isLong = false;
  for (;;) {
    const { folded, isDone, waiting } = await inTransaction(
      pool,
      async (client): Promise<Batch> => {
        const counted = await client.query<{ pending: number }>(countAlone(isLong));
        if (!counted.rows[0]) return { folded: 0, isDone: true, waiting: 0 };
        const { pending } = counted.rows[0];
        if (pending >= many && !isLong) {
          isLong = true;
          observer?.onBegin(pending);
        }
        const { rows } = await client.query<Batch>(foldBatch);
        return rows[0] as Batch;
      },
    );
    total += folded;
    if (isDone) break;
    if (isLong) observer?.onBatch(total, waiting);
  }
  if (isLong) observer?.onEnd(total);
  return total;
}

/** No row while another process folds: it would be skipped, and must not be logged. @param isKnown known to be many */
const countAlone = (isKnown: boolean) => `
  SELECT count_pending_outfit_changes(${isKnown ? 0 : 2_147_483_647}) AS pending
  FROM (SELECT pg_try_advisory_xact_lock(72707370) AS locked) mine WHERE locked`;

const foldBatch = `
  SELECT folded::int, is_done AS "isDone", (SELECT count(*)::int FROM outfit_split_queue) AS waiting
  FROM fold_outfit_changes()`;

/** Folds what is pending, unless that may take seconds: for many changes, or to split nodes of many outfits. */
export async function foldFewChanges(pool: pg.Pool): Promise<void> {
  const { rowCount } = await pool.query(readShort);
  if (rowCount !== 0) await foldChanges(pool);
}

const isNothingQueued = 'NOT EXISTS (SELECT FROM outfit_split_queue)';

const readShort = `
  SELECT FROM outfit_fold
  WHERE NOT pg_is_in_recovery() AND count_pending_outfit_changes(${many}) < ${many}
    AND (${isNothingQueued} OR (SELECT count(*) < ${many} FROM (SELECT FROM outfits LIMIT ${many}) few))`;

/** A node of the counts that is not what the table says. */
export interface WrongCount {
  /** The user whose outfits they are; 2147483648: everyone's. */
  readonly owner: string;
  readonly ordering: string;
  readonly low: string;
  readonly high: string;
  /** Public ones, and private ones. */
  readonly counted: readonly string[];
  readonly found: readonly string[];
}

export async function checkTriggers(pool: Pick<pg.Pool, 'query'>): Promise<string[]> {
  const { rows } = await pool.query<{ problem: string }>(
    'SELECT problem FROM check_outfit_triggers() AS problem',
  );
  return rows.map(({ problem }) => problem);
}

export type Upkeep = ReturnType<typeof createUpkeep>;

/** Folds changes as they come, and audits a node of each ordering every minute. An error ends neither. */
export function createUpkeep(
  pool: pg.Pool,
  onWrong: (wrong: readonly WrongCount[]) => void,
  observer: FoldObserver,
) {
  let waitingSince: number | undefined;
  let folded: string | undefined;
  const foldWhenDue = async () => {
    const { rows } = await pool.query<FoldState>(readState);
    const { pending = 0, crowded = false, snapshot } = rows[0] ?? {};
    const now = performance.now();
    // Another gateway has folded: what is pending came later.
    if (snapshot !== folded) waitingSince = undefined;
    folded = snapshot;
    if (pending === 0) waitingSince = undefined;
    else waitingSince ??= now;
    const isDue = waitingSince !== undefined && now - waitingSince >= maxWait;
    if (pending < enough && !isDue && !crowded) return;
    await foldChanges(pool, observer);
    waitingSince = undefined;
  };
  let wrongCounts: number | undefined;
  const audit = async () => {
    const { rows } = await pool.query<WrongCount>(readSample);
    wrongCounts = rows.length;
    if (rows.length > 0) onWrong(rows);
  };
  const loops: { close(): void }[] = [];
  return {
    /** Nodes that the last sample found to be wrong; undefined before the first one. */
    wrongCounts: () => wrongCounts,
    start: () => {
      loops.push(repeat(foldWhenDue, foldPause), repeat(audit, auditPause));
    },
    close: () => {
      for (const loop of loops) loop.close();
    },
  };
}

interface FoldState {
  readonly pending: number;
  readonly crowded: boolean;
  readonly snapshot: string;
}

/** Writes nothing. A standby has no row here: its primary folds. */
const readState = {
  name: 'fold state',
  text: `
    SELECT NOT (${isNothingQueued}) AS crowded, snapshot::text AS snapshot, count_pending_outfit_changes(${enough}) AS pending
    FROM outfit_fold WHERE NOT pg_is_in_recovery()`,
};

/** Names the table, so that it is locked before the snapshot: TRUNCATE empties it for older ones too. */
const readSample = `
  SELECT a.* FROM audit_outfit_counts() a WHERE (SELECT count(*) FROM (SELECT FROM outfits LIMIT 1) o) >= 0`;

/** Works again and again, never twice at a time, with about `pause` milliseconds between. */
function repeat(work: () => Promise<void>, pause: number): { close(): void } {
  let timer: NodeJS.Timeout;
  let isClosed = false;
  const schedule = (factor = 1) => {
    if (isClosed) return;
    timer = setTimeout(
      () =>
        work().then(
          () => schedule(),
          // Whatever it is, it may last: a database that is away, say.
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

// Reads queries from standbys, but never less than what the primary showed when they came.
import type pg from 'pg';
import type { Config } from '../config.ts';
import { HttpError } from '../errors.ts';
import type { Database } from './database.ts';
import { LogMarks } from './log-marks.ts';
import { DatabaseNotReadyError } from './prepare.ts';
import type { ReadRows } from './read.ts';
import { startTime } from './server-watch.ts';
import type { LogPosition, Shown } from './snapshots.ts';
import { createStandby, type Standby } from './standby.ts';
import type { StandbyState } from './standby-state.ts';
import { currentTask, startOutside } from './task.ts';

/**
 * A way to read for one execution of a query, in which everything is at least as new as `shown`, and no
 * statement sees less than those before it. Undefined: nobody knows what must be seen.
 */
export type ReadAt = (shown: Shown | undefined) => ReadRows;

/** Why the primary was read: no standby could be used, none had replayed enough, or one failed. */
export const reasons = ['unknown', 'away', 'behind', 'failed'] as const;
export type Reason = (typeof reasons)[number];

export interface Replicas {
  readonly readAt: ReadAt;
  readonly standbys: readonly Standby[];
  /** Queries that were read from each standby. */
  readonly reads: ReadonlyMap<Standby, number>;
  /** Queries that were read from the primary, by why. */
  readonly primaryReads: Readonly<Record<Reason, number>>;
  /** Milliseconds for which a standby has lacked what was to be read. */
  lagOf(standby: Standby): number;
  /**
   * Begins to use them.
   * @param refusesStrangers whether a standby of another primary is an error; or else it is left out, as one
   *   that turns up later is
   * @throws DatabaseNotReadyError when one is a standby of another primary
   */
  start(refusesStrangers: boolean): Promise<void>;
  close(): Promise<void>;
}

/** A primary: when it was started, and what it shares with its standbys alone. */
interface Primary {
  readonly server: string;
  readonly system: string;
}

const primaryStatement = `
  SELECT ${startTime} AS server, system_identifier::text AS system
  FROM pg_control_system()`;

/**
 * The standbys that the configuration names; undefined when it names none. None is contacted until `start`.
 * @param onChange called when a standby is used from now on (`problem` is undefined), or no more
 */
export function openReplicas(
  config: Pick<Config, 'databasePoolMax' | 'databaseReadUrls' | 'expensiveQueryTimeout'>,
  database: Pick<Database, 'pool' | 'read'>,
  statementTimeout: number,
  onChange: (standby: Standby) => void,
): Replicas | undefined {
  if (config.databaseReadUrls.length === 0) return undefined;
  const primary = createPrimary(database.pool);
  const judge = (state: StandbyState) => findProblem(state, primary.known);
  const max = config.databasePoolMax;
  const expensiveTimeout = config.expensiveQueryTimeout * 1000;
  const standbys = config.databaseReadUrls.map((url) =>
    createStandby({ url, max, statementTimeout, expensiveTimeout, judge, onChange }),
  );
  const reads = new Map(standbys.map((standby) => [standby, 0]));
  const primaryReads = { unknown: 0, away: 0, behind: 0, failed: 0 };
  const marks = new LogMarks();
  let turn = 0;

  /** One that can be read from, or why none can. */
  const choose = async (position: LogPosition | undefined): Promise<Standby | Reason> => {
    if (!position) return 'unknown';
    if (primary.known?.server !== position.server) {
      startOutside(() => primary.ask()).catch(() => {});
      return 'unknown';
    }
    marks.add(position);
    turn += 1;
    // A standby is judged again only after a while: until then it may be that of another primary.
    const { system } = primary.known;
    const usable = standbys.filter((standby) => !standby.problem && standby.system === system);
    if (usable.length === 0) return 'away';
    const inTurn = [
      ...usable.slice(turn % usable.length),
      ...usable.slice(0, turn % usable.length),
    ];
    const reached = inTurn.find((standby) => standby.hasReached(position));
    return reached ?? (await firstToReach(inTurn, position)) ?? 'behind';
  };

  const readAt: ReadAt = (shown) => {
    let source: Promise<Standby | undefined> | undefined;
    const readPrimary = (reason: Reason) => {
      primaryReads[reason] += 1;
      source = Promise.resolve(undefined);
    };
    const start = async () => {
      const chosen = await choose(shown?.position);
      if (typeof chosen === 'string') {
        primaryReads[chosen] += 1;
        return undefined;
      }
      reads.set(chosen, (reads.get(chosen) ?? 0) + 1);
      return chosen;
    };
    return async (...statement) => {
      const signal = currentTask()?.signal;
      source ??= start();
      const used = source;
      const standby = await used;
      if (!standby) return database.read(...statement);
      // What it shows is that of its primary.
      if (shown?.identity !== undefined) currentTask()?.servers.add(shown.identity);
      try {
        return await standby.read(...statement);
      } catch (error) {
        // An HttpError is of the statement's own lane: it was too expensive, or the lane is full. The primary has
        // the same limits, and would do the work once more.
        if (signal?.aborted || error instanceof HttpError) throw error;
        // It was cancelled to let it replay, or something is wrong with the standby. What is wrong with the
        // statement is said by the primary too. What comes later in this execution must not see less.
        standby.check();
        if (source === used) readPrimary('failed');
        return database.read(...statement);
      }
    };
  };

  return {
    readAt,
    standbys,
    reads,
    primaryReads,
    lagOf: (standby) => marks.ageOf((position) => standby.hasReached(position)),
    async start(refusesStrangers) {
      // Of a primary that is away nobody knows yet what its standbys are.
      await primary.ask().catch(() => {});
      await Promise.all(standbys.map((standby) => standby.check()));
      const stranger = standbys.find(({ problem }) => problem === ofAnother);
      if (stranger && refusesStrangers) {
        throw new DatabaseNotReadyError(
          `The ${stranger.description} ${ofAnother}: correct DATABASE_READ_URLS.`,
          false,
        );
      }
    },
    close: async () => {
      await Promise.all(standbys.map((standby) => standby.close()));
    },
  };
}

/** Knows which server the primary is, as long as it stays the same. */
function createPrimary(pool: pg.Pool) {
  let known: Primary | undefined;
  let asking: Promise<void> | undefined;
  const askOnce = async () => {
    try {
      known = (await pool.query<Primary>(primaryStatement)).rows[0];
    } finally {
      asking = undefined;
    }
  };
  return {
    get known() {
      return known;
    },
    ask(): Promise<void> {
      asking ??= askOnce();
      return asking;
    },
  };
}

const ofAnother = 'belongs to another primary server than DATABASE_URL';

function findProblem(state: StandbyState, primary: Primary | undefined): string | undefined {
  if (!primary) return 'waits for the primary server';
  if (state.system !== primary.system) return ofAnother;
  return state.isStandby ? undefined : 'is no standby, or not any more';
}

/** The first that has replayed enough; undefined: none has in time. */
function firstToReach(
  standbys: readonly Standby[],
  position: LogPosition,
): Promise<Standby | undefined> {
  const reaching = standbys.map(async (standby) => {
    if (!(await standby.reach(position))) throw new Error('behind');
    return standby;
  });
  return Promise.any(reaching).catch(() => undefined);
}

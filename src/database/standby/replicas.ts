// Routes reads to standbys that have replayed every commit before the request, else to the primary: no read is stale.
import type pg from 'pg';
import type { Config } from '../../config/config.ts';
import { HttpError } from '../../errors.ts';
import type { DatabaseState, LogPosition } from '../changes/snapshots.ts';
import type { ObserveStatement } from '../connection/observe.ts';
import type { TaskPool } from '../connection/pool.ts';
import { databaseOid, serverStart } from '../connection/server-watch.ts';
import type { Database } from '../database.ts';
import type { Access, Source } from '../read.ts';
import { DatabaseNotReadyError } from '../readiness.ts';
import { currentTask, runOutsideTask } from '../task.ts';
import { Standby, type StandbyState } from './standby.ts';

/** Where one execution reads: at least as new as `state`, and no statement sees an older state than those before it. */
export type ReadAt = (state: DatabaseState | undefined) => Source;

/** Why the primary was read: its state is unknown, no standby is healthy, all lag behind, or a standby failed. */
export const fallbackReasons = ['unknown', 'away', 'behind', 'failed'] as const;
export type FallbackReason = (typeof fallbackReasons)[number];

interface Primary {
  /** Start time, and oid of the database. */
  readonly server: string;
  readonly database: string;
  /** System identifier, which its standbys share. */
  readonly system: string;
}

const primaryStatement = `
  SELECT ${serverStart} AS server, ${databaseOid} AS database, system_identifier::text AS system
  FROM pg_control_system()`;

/** The configured standbys. None is contacted before `start`. */
export class Replicas {
  readonly standbys: readonly Standby[];
  /** Number of executions that read from the primary, by reason. */
  readonly primaryReads = { unknown: 0, away: 0, behind: 0, failed: 0 };
  readonly #database: Pick<Database, 'pool'>;
  /** Positions of the primary with their times, from which the replication lag is computed. */
  readonly #marks: Mark[] = [];
  #primary: Primary | undefined;
  #identifying: Promise<void> | undefined;
  #turn = 0;

  /** @param onChange called when a standby becomes healthy (`problem` is undefined) or unhealthy */
  constructor(
    config: Pick<Config, 'databasePoolMax' | 'databaseReadUrls' | 'expensiveQueryTimeout'>,
    database: Pick<Database, 'pool'>,
    statementTimeout: number,
    onChange: (standby: Standby) => void,
    observers: readonly ObserveStatement[] = [],
  ) {
    this.#database = database;
    const options = {
      ...{ statementTimeout, observers },
      findProblem: (state: StandbyState) => findProblem(state, this.#primary),
      onChange,
    };
    this.standbys = config.databaseReadUrls.map((url) => new Standby(url, config, options));
  }

  /** @throws DatabaseNotReadyError when one is a standby of another primary, if that is to be refused */
  async start(refusesStrangers: boolean): Promise<void> {
    // While the primary is unavailable, its standbys cannot be recognized yet.
    await this.#identifyPrimary().catch(() => {});
    await Promise.all(this.standbys.map((standby) => standby.check()));
    const stranger = this.standbys.find(({ problem }) => problem === otherPrimary);
    if (stranger && refusesStrangers) {
      throw new DatabaseNotReadyError(
        `The ${stranger.description} ${otherPrimary}: correct DATABASE_READ_URLS.`,
        false,
      );
    }
  }

  readonly readAt: ReadAt = (state) => {
    let standby: Promise<Standby | undefined> | undefined;
    const send = async <Result>(statement: (pool: TaskPool) => Promise<Result>) => {
      const signal = currentTask()?.signal;
      standby ??= this.#startRead(state);
      const used = standby;
      const source = await used;
      if (!source) return statement(this.#database.pool);
      // A result of a standby counts as one of its primary: it is rejected when that is fenced.
      if (state?.identity !== undefined) currentTask()?.servers.add(state.identity);
      try {
        return await statement(source.pool);
      } catch (error) {
        // An HttpError is a limit of the statement's lane, which the primary has too: no second attempt.
        if (signal?.aborted || error instanceof HttpError) throw error;
        // A conflict with replay, or a failure. Later statements of this execution must not see an older state.
        void source.check();
        if (standby === used) {
          this.primaryReads.failed += 1;
          standby = Promise.resolve(undefined);
        }
        return statement(this.#database.pool);
      }
    };
    return {
      query: <Row extends object>(statement: pg.QueryConfig) =>
        send((pool) => pool.query<Row>(statement)),
      queryInLane: <Row extends object>(statement: pg.QueryConfig, access: Access) =>
        send((pool) => pool.queryInLane<Row>(statement, access)),
    };
  };

  /** The standby for an execution; undefined: the primary. */
  async #startRead(state: DatabaseState | undefined): Promise<Standby | undefined> {
    const chosen = await this.#choose(state?.position);
    if (typeof chosen === 'string') {
      this.primaryReads[chosen] += 1;
      return undefined;
    }
    chosen.reads += 1;
    return chosen;
  }

  /** Replication lag in milliseconds: the age of the oldest mark that the standby has not replayed. */
  replicationLag(standby: Standby): number {
    const replayed = this.#marks.findLastIndex(({ position }) => standby.hasReplayed(position));
    const oldest = this.#marks[replayed + 1];
    return oldest ? performance.now() - oldest.at : 0;
  }

  async close(): Promise<void> {
    await Promise.all(this.standbys.map((standby) => standby.close()));
  }

  /** A standby that has replayed the position, in turn (round robin), or why there is none. */
  async #choose(position: LogPosition | undefined): Promise<Standby | FallbackReason> {
    if (!position) return 'unknown';
    if (this.#primary?.server !== position.server) {
      runOutsideTask(() => this.#identifyPrimary()).catch(() => {});
      return 'unknown';
    }
    this.#mark(position);
    this.#turn += 1;
    // After a failover, a standby may belong to the old primary until its next check.
    const primary = this.#primary;
    const usable = this.standbys.filter(
      ({ problem, state }) => !problem && state && !findProblem(state, primary),
    );
    if (usable.length === 0) return 'away';
    const first = this.#turn % usable.length;
    const inTurn = [...usable.slice(first), ...usable.slice(0, first)];
    const replayed = inTurn.find((standby) => standby.hasReplayed(position));
    return replayed ?? (await firstToReplay(inTurn, position)) ?? 'behind';
  }

  #mark(position: LogPosition): void {
    const at = performance.now();
    const last = this.#marks.at(-1);
    if (last && at - last.at < markSpacing) return;
    this.#marks.push({ position, at });
    if (this.#marks.length > maxMarks) this.#marks.shift();
  }

  #identifyPrimary(): Promise<void> {
    const query = async () => {
      this.#primary = (await this.#database.pool.query<Primary>(primaryStatement)).rows[0];
    };
    this.#identifying ??= query().finally(() => {
      this.#identifying = undefined;
    });
    return this.#identifying;
  }
}

interface Mark {
  readonly position: LogPosition;
  /** By `performance.now()`. */
  readonly at: number;
}

/** Milliseconds between two marks, and most marks: together the largest replication lag that is measured. */
const markSpacing = 100;
const maxMarks = 600;

const otherPrimary = 'belongs to another primary server than DATABASE_URL';

function findProblem(state: StandbyState, primary: Primary | undefined): string | undefined {
  if (!primary) return 'waits for the primary server';
  if (state.system !== primary.system) return otherPrimary;
  if (state.database !== primary.database) return 'is not of the database that DATABASE_URL names';
  return state.isStandby ? undefined : 'is not a standby, or not any more';
}

/** The first standby that replays the position; undefined: none does in time. */
function firstToReplay(
  standbys: readonly Standby[],
  position: LogPosition,
): Promise<Standby | undefined> {
  const waits = standbys.map(async (standby) => {
    if (!(await standby.waitForReplay(position))) throw new Error('behind');
    return standby;
  });
  return Promise.any(waits).catch(() => undefined);
}

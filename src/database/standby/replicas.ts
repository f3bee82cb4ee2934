// Reads queries from standbys, but never less than what the primary showed when they came.
import type { Config } from '../../config.ts';
import { HttpError } from '../../errors.ts';
import type { DatabaseState, LogPosition } from '../changes/database-state.ts';
import { startTime } from '../connection/server-watch.ts';
import type { Database } from '../database.ts';
import type { ReadRows } from '../read.ts';
import { DatabaseNotReadyError } from '../readiness.ts';
import { currentTask, runOutsideTask } from '../task.ts';
import { Standby, type StandbyState } from './standby.ts';

/** A way to read for one execution: at least as new as `shown`, and no statement sees less than those before it. */
export type ReadAt = (shown: DatabaseState | undefined) => ReadRows;

/** Why the primary was read: no standby could be used, none had replayed enough, or one failed. */
export const fallbackReasons = ['unknown', 'away', 'behind', 'failed'] as const;
export type FallbackReason = (typeof fallbackReasons)[number];

/** A primary: when it was started, and what it shares with its standbys alone. */
interface Primary {
  readonly server: string;
  readonly system: string;
}

const primaryStatement = `
  SELECT ${startTime} AS server, system_identifier::text AS system
  FROM pg_control_system()`;

/** The standbys that the configuration names. None is contacted until `start`. */
export class Replicas {
  readonly standbys: readonly Standby[];
  /** Queries that were read from each standby. */
  readonly reads: Map<Standby, number>;
  /** Queries that were read from the primary, by why. */
  readonly primaryReads = { unknown: 0, away: 0, behind: 0, failed: 0 };
  readonly #database: Pick<Database, 'pool' | 'read'>;
  /** When the primary was seen to be how far, to tell how late its standbys are. */
  readonly #marks: Mark[] = [];
  #primary: Primary | undefined;
  #asking: Promise<void> | undefined;
  #turn = 0;

  /** @param onChange called when a standby is used from now on (`problem` is undefined), or no more */
  constructor(
    config: Pick<Config, 'databasePoolMax' | 'databaseReadUrls' | 'expensiveQueryTimeout'>,
    database: Pick<Database, 'pool' | 'read'>,
    statementTimeout: number,
    onChange: (standby: Standby) => void,
  ) {
    this.#database = database;
    const judge = (state: StandbyState) => findProblem(state, this.#primary);
    this.standbys = config.databaseReadUrls.map(
      (url) => new Standby(url, config, { statementTimeout, judge, onChange }),
    );
    this.reads = new Map(this.standbys.map((standby) => [standby, 0]));
  }

  /** @throws DatabaseNotReadyError when one is a standby of another primary: only at first; later it is left out */
  async start(refusesStrangers: boolean): Promise<void> {
    // Of a primary that is away nobody knows yet what its standbys are.
    await this.#askPrimary().catch(() => {});
    await Promise.all(this.standbys.map((standby) => standby.check()));
    const stranger = this.standbys.find(({ problem }) => problem === ofAnother);
    if (stranger && refusesStrangers) {
      throw new DatabaseNotReadyError(
        `The ${stranger.description} ${ofAnother}: correct DATABASE_READ_URLS.`,
        false,
      );
    }
  }

  readonly readAt: ReadAt = (shown) => {
    let source: Promise<Standby | undefined> | undefined;
    const start = async () => {
      const chosen = await this.#choose(shown?.position);
      if (typeof chosen === 'string') {
        this.primaryReads[chosen] += 1;
        return undefined;
      }
      this.reads.set(chosen, (this.reads.get(chosen) ?? 0) + 1);
      return chosen;
    };
    return async (...statement) => {
      const signal = currentTask()?.signal;
      source ??= start();
      const used = source;
      const standby = await used;
      if (!standby) return this.#database.read(...statement);
      // What it shows is that of its primary.
      if (shown?.identity !== undefined) currentTask()?.servers.add(shown.identity);
      try {
        return await standby.read(...statement);
      } catch (error) {
        // An HttpError is of the statement's lane: the primary has the same limits, and would do the work once more.
        if (signal?.aborted || error instanceof HttpError) throw error;
        // Cancelled by replay, or something is wrong. What comes later in this execution must not see less.
        standby.check();
        if (source === used) {
          this.primaryReads.failed += 1;
          source = Promise.resolve(undefined);
        }
        return this.#database.read(...statement);
      }
    };
  };

  /** Milliseconds for which a standby has lacked what was to be read: those since the oldest mark that it lacks. */
  replicationLag(standby: Standby): number {
    const reached = this.#marks.findLastIndex(({ position }) => standby.hasReached(position));
    const oldest = this.#marks[reached + 1];
    return oldest ? performance.now() - oldest.at : 0;
  }

  async close(): Promise<void> {
    await Promise.all(this.standbys.map((standby) => standby.close()));
  }

  /** One that can be read from, or why none can. */
  async #choose(position: LogPosition | undefined): Promise<Standby | FallbackReason> {
    if (!position) return 'unknown';
    if (this.#primary?.server !== position.server) {
      runOutsideTask(() => this.#askPrimary()).catch(() => {});
      return 'unknown';
    }
    this.#mark(position);
    this.#turn += 1;
    // A standby is judged again only after a while: until then it may be that of another primary.
    const { system } = this.#primary;
    const usable = this.standbys.filter((standby) => !standby.problem && standby.system === system);
    if (usable.length === 0) return 'away';
    const first = this.#turn % usable.length;
    const inTurn = [...usable.slice(first), ...usable.slice(0, first)];
    const reached = inTurn.find((standby) => standby.hasReached(position));
    return reached ?? (await firstToReach(inTurn, position)) ?? 'behind';
  }

  #mark(position: LogPosition): void {
    const at = performance.now();
    const last = this.#marks.at(-1);
    if (last && at - last.at < markSpacing) return;
    this.#marks.push({ position, at });
    if (this.#marks.length > maxMarks) this.#marks.shift();
  }

  /** Learns which server the primary is. */
  #askPrimary(): Promise<void> {
    const ask = async () => {
      this.#primary = (await this.#database.pool.query<Primary>(primaryStatement)).rows[0];
    };
    this.#asking ??= ask().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }
}

interface Mark {
  readonly position: LogPosition;
  /** By `performance.now()`. */
  readonly at: number;
}

/** Milliseconds between two marks, and most marks: a standby that is later than all of them is late enough. */
const markSpacing = 100;
const maxMarks = 600;

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

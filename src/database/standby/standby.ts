// One standby: its health checks with backoff, and the log position that it has replayed.
// In SQL: functions of the server.
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import type { Config } from '../../config/config.ts';
import { messageOf } from '../../errors.ts';
import type { LogPosition } from '../changes/snapshots.ts';
import type { ObserveStatement } from '../connection/observe.ts';
import { TaskPool } from '../connection/pool.ts';
import { readServerUrl } from '../connection/server-url.ts';
import { databaseOid } from '../connection/server-watch.ts';
import { createSession, DedicatedConnection, Sockets } from '../connection/session.ts';
import { exactTypes } from '../read.ts';

export interface StandbyOptions {
  readonly statementTimeout: number;
  readonly observers: readonly ObserveStatement[];
  /** Why a server in this state must not be read from, as words that follow its description. */
  findProblem(state: StandbyState): string | undefined;
  onChange(standby: Standby): void;
}

/** Milliseconds between two health checks. They double with each failure (exponential backoff), up to `maxBackoff`. */
const pause = 200;
const maxBackoff = 5_000;
/** Milliseconds without a failure after which the backoff is reset. */
const backoffReset = 10_000;
/** Milliseconds for a health check: together with `pause`, the longest that a read waits for a frozen server. */
const limit = 300;
/** Most milliseconds that a read waits for replication, and those between two looks at the replayed position. */
const maxWait = 20;
const step = 3;

/** A standby that is read from while it is healthy. Opens no connection before the first check or read. */
export class Standby {
  readonly name: string;
  readonly description: string;
  /** Reads what is replayed, which may lack commits of the primary: call `waitForReplay` first. */
  readonly pool: TaskPool;
  /** Number of executions that read from it. */
  reads = 0;
  readonly #options: StandbyOptions;
  readonly #sockets = new Sockets();
  readonly #connection: DedicatedConnection;
  #state: StandbyState | undefined;
  #problem: string | undefined = 'has not been asked yet';
  /** Position that was not replayed in time: reads do not wait again until it is. */
  #missed: LogPosition | undefined;
  #reading: Promise<StandbyState> | undefined;
  #readAt = 0;
  #timer: NodeJS.Timeout | undefined;
  #checking: Promise<void> | undefined;
  #isClosed = false;
  #failures = 0;
  #healthySince = 0;

  constructor(
    url: string,
    {
      databasePoolMax: max,
      expensiveQueryTimeout,
    }: Pick<Config, 'databasePoolMax' | 'expensiveQueryTimeout'>,
    options: StandbyOptions,
  ) {
    const { name, description, config } = readServerUrl(url, 'DATABASE_READ_URLS');
    this.name = name;
    this.description = `standby ${description}`;
    this.#options = options;
    const session = createSession(config, 'session', options.statementTimeout);
    this.#connection = new DedicatedConnection((config) => new session.Client(config), limit);
    const stream = this.#sockets.open;
    this.pool = new TaskPool(
      {
        ...{ ...session.config, stream, max, observers: options.observers },
        onConnect: (client) => this.#checkConnection(client),
      },
      expensiveQueryTimeout,
      session.Client,
    );
    this.pool.on('error', () => {});
  }

  /** Why it is not read from, as words that follow its description; undefined while it is healthy. */
  get problem(): string | undefined {
    return this.#problem;
  }

  get state(): StandbyState | undefined {
    return this.#state;
  }

  hasReplayed(position: LogPosition): boolean {
    return this.#state !== undefined && isAtOrPast(this.#state, position);
  }

  /** The same, after a short wait for replication. Never rejects. */
  async waitForReplay(position: LogPosition): Promise<boolean> {
    const missed = this.#missed;
    if (missed?.timeline === position.timeline && !this.hasReplayed(missed)) {
      if (performance.now() - this.#readAt > maxWait) this.#readState().catch(() => {});
      return false;
    }
    this.#missed = undefined;
    const end = performance.now() + maxWait;
    while (performance.now() < end && !this.#problem) {
      await Promise.race([this.#readState().catch(() => {}), sleep(end - performance.now())]);
      if (this.hasReplayed(position)) return true;
      await sleep(step);
    }
    this.#missed ??= position;
    return false;
  }

  async check(): Promise<void> {
    if (this.#isClosed) return;
    this.#checking ??= this.#runCheck();
    await this.#checking;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#connection.close();
    this.#sockets.refuse(new Error('closed'));
    await this.pool.end();
  }

  async #runCheck(): Promise<void> {
    clearTimeout(this.#timer);
    try {
      await this.#readState();
    } catch (error) {
      if (this.#isClosed) return;
      this.#state = undefined;
      this.#update(`cannot be read from (${messageOf(error)})`);
    }
    this.#checking = undefined;
    if (this.#isClosed) return;
    if (this.#problem) this.#failures += 1;
    else if (performance.now() - this.#healthySince > backoffReset) this.#failures = 0;
    const delay = this.#problem ? Math.min(pause * 2 ** this.#failures, maxBackoff) : pause;
    this.#timer = setTimeout(() => this.check(), delay);
  }

  /** An address may lead to several servers, and after a crash a server may have replayed less than before. */
  async #checkConnection(client: pg.ClientBase): Promise<void> {
    const before = this.#state;
    const { server, replayed } = await readState(client);
    if (before && server === before.server && replayed >= before.replayed) return;
    throw new Error(`The ${this.description} is not in the state that it was in.`);
  }

  /** Concurrent calls share one query. */
  async #readState(): Promise<void> {
    this.#readAt = performance.now();
    if (this.#isClosed) throw new Error('closed');
    this.#reading ??= this.#connection.query(readState).finally(() => {
      this.#reading = undefined;
    });
    const state = await this.#reading;
    // Open connections lead to the previous server: they are cut, and the next check admits new ones.
    const isOther = this.#state !== undefined && this.#state.server !== state.server;
    const found =
      this.#options.findProblem(state) ?? (isOther ? 'is another server than before' : undefined);
    this.#state = found ? undefined : state;
    this.#update(found);
  }

  #update(found: string | undefined): void {
    if (found === this.#problem) return;
    if (found && !this.#problem) {
      // Reads under way fail, and are repeated on the primary.
      this.#sockets.refuse(new Error(`The ${this.description} ${found}.`));
    }
    if (!found) {
      this.#healthySince = performance.now();
      this.#sockets.admit();
    }
    this.#problem = found;
    this.#options.onChange(this);
  }
}

/** State of a standby, as it reports it. */
export interface StandbyState {
  /** False when it was promoted, or is a primary. */
  readonly isStandby: boolean;
  /** Start time of the server, which identifies it. */
  readonly server: string;
  /** System identifier: a primary and all its standbys have the same. */
  readonly system: string;
  /** Oid, which a primary and its standbys share. */
  readonly database: string;
  /** Replay position: every commit before it in the log is visible. */
  readonly replayed: bigint;
  /** Timeline of the replayed position; possibly an older one. */
  readonly timeline: number;
}

// The timeline is read after the position, so that a position is never assigned an older timeline than its own.
const statement = {
  name: 'standby',
  text: `
    SELECT pg_is_in_recovery() AS "isStandby", ${databaseOid} AS database, pg_postmaster_start_time()::text AS server,
      coalesce(pg_last_wal_replay_lsn() - '0/0', 0)::bigint AS replayed,
      greatest(
        (SELECT min_recovery_end_timeline FROM pg_control_recovery()),
        (SELECT received_tli FROM pg_stat_wal_receiver)
      ) AS timeline,
      (SELECT system_identifier FROM pg_control_system())::text AS system`,
  types: exactTypes,
};

async function readState(client: pg.ClientBase): Promise<StandbyState> {
  const { rows } = await client.query<StandbyState>(statement);
  const [row] = rows;
  if (!row) throw new Error('A standby said nothing of itself.');
  return row;
}

/** The shortest record of a commit, in bytes: a shorter part of the log has none. */
const shortestCommit = 40n;
/**
 * A primary reports the position behind the header of a page (24 bytes, or 40 where a segment begins), and a standby the one
 * before it. Segments are multiples of 1 MiB, and no commit begins in the first 24 bytes of these.
 */
const [pageHeader, leastSegment] = [24n, 1_048_576n];

/** Whether every commit before this position of the primary's log is replayed. */
function isAtOrPast(state: StandbyState, { timeline, bytes }: LogPosition): boolean {
  const header = state.replayed % leastSegment === 0n ? pageHeader : 0n;
  return state.timeline === timeline && state.replayed + header + shortestCommit > bytes;
}

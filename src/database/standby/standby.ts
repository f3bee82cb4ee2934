// One standby: how far it has replayed the log of its primary, and whether it may be read from.
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import type { Config } from '../../config.ts';
import type { LogPosition } from '../changes/database-state.ts';
import { TaskPool } from '../connection/pool.ts';
import { createSession, DedicatedConnection, Sockets } from '../connection/session.ts';
import { describeServer } from '../database.ts';
import { type ReadRows, readRows } from '../read.ts';
import { reasonOf } from '../readiness.ts';

export interface StandbyOptions {
  readonly statementTimeout: number;
  /** What is wrong with a server that is in this state, in words that follow its description. */
  judge(state: StandbyState): string | undefined;
  onChange(standby: Standby): void;
}

const pause = 200;
/** Most milliseconds between two checks of one that cannot be read from. */
const maxPause = 5_000;
/** Milliseconds after which a server that has stayed well has no past any more. */
const probation = 10_000;
/** Milliseconds for an answer: together with `pause`, the longest that a read waits for a frozen server. */
const limit = 300;
/** Most milliseconds that a read waits for what a standby lacks, and those between two questions. */
const maxWait = 20;
const step = 3;

/** A server that is read from while nothing is wrong with it. Opens nothing until it is checked or read from. */
export class Standby {
  readonly name: string;
  readonly description: string;
  readonly pool: TaskPool;
  /** Reads, maybe less than what the primary shows: ask `reach` first. */
  readonly read: ReadRows;
  readonly #options: StandbyOptions;
  readonly #sockets = new Sockets();
  readonly #connection: DedicatedConnection;
  #state: StandbyState | undefined;
  #problem: string | undefined = 'has not been asked yet';
  /** What it had not replayed in time: until it has, nobody waits for it. */
  #awaited: LogPosition | undefined;
  #asking: Promise<StandbyState> | undefined;
  #askedAt = 0;
  #timer: NodeJS.Timeout | undefined;
  #checking: Promise<void> | undefined;
  #isClosed = false;
  #failures = 0;
  #wellSince = 0;

  constructor(
    url: string,
    {
      databasePoolMax: max,
      expensiveQueryTimeout,
    }: Pick<Config, 'databasePoolMax' | 'expensiveQueryTimeout'>,
    options: StandbyOptions,
  ) {
    this.name = new URL(url).host || 'localhost';
    this.description = `standby ${describeServer(url)}`;
    this.#options = options;
    const session = createSession(url, 'session', options.statementTimeout);
    this.#connection = new DedicatedConnection(session, limit);
    const stream = this.#sockets.open;
    this.pool = new TaskPool(
      {
        ...{ ...session.config, stream, max },
        // Its address may lead to several servers, and one that has crashed may be back with less than it had.
        onConnect: async (client) => {
          const before = this.#state;
          const { server, replayed } = await askStandby(client);
          if (before && server === before.server && replayed >= before.replayed) return;
          throw new Error(`The ${this.description} is not in the state that it was in.`);
        },
      },
      expensiveQueryTimeout * 1000,
      session.Client,
    );
    this.pool.on('error', () => {});
    this.read = readRows(this.pool);
  }

  /** Why it is not read from now, in words that follow its description; undefined while it is. */
  get problem(): string | undefined {
    return this.#problem;
  }

  get system(): string | undefined {
    return this.#state?.system;
  }

  hasReached(position: LogPosition): boolean {
    return this.#state !== undefined && isAtOrPast(this.#state, position);
  }

  /** The same, after it has been asked and had a moment for what it lacks. Never rejects. */
  async reach(position: LogPosition): Promise<boolean> {
    const awaited = this.#awaited;
    if (awaited?.timeline === position.timeline && !this.hasReached(awaited)) {
      if (performance.now() - this.#askedAt > maxWait) this.#ask().catch(() => {});
      return false;
    }
    this.#awaited = undefined;
    const end = performance.now() + maxWait;
    while (performance.now() < end && !this.#problem) {
      await Promise.race([this.#ask().catch(() => {}), sleep(end - performance.now())]);
      if (this.hasReached(position)) return true;
      await sleep(step);
    }
    this.#awaited ??= position;
    return false;
  }

  async check(): Promise<void> {
    if (this.#isClosed) return;
    this.#checking ??= this.#look();
    await this.#checking;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#connection.close();
    this.#sockets.refuse(new Error('closed'));
    await this.pool.end();
  }

  async #look(): Promise<void> {
    clearTimeout(this.#timer);
    try {
      await this.#ask();
    } catch (error) {
      if (this.#isClosed) return;
      this.#state = undefined;
      this.#update(`cannot be read from (${reasonOf(error)})`);
    }
    this.#checking = undefined;
    if (this.#isClosed) return;
    if (this.#problem) this.#failures += 1;
    else if (performance.now() - this.#wellSince > probation) this.#failures = 0;
    const wait = this.#problem ? Math.min(pause * 2 ** this.#failures, maxPause) : pause;
    this.#timer = setTimeout(() => this.check(), wait);
  }

  /** One question at a time serves all who want to know. */
  async #ask(): Promise<void> {
    this.#askedAt = performance.now();
    if (this.#isClosed) throw new Error('closed');
    this.#asking ??= this.#connection.query(askStandby).finally(() => {
      this.#asking = undefined;
    });
    const answer = await this.#asking;
    // The connections that are open lead to the one before: they are cut, and the next look admits new ones.
    const isOther = this.#state !== undefined && this.#state.server !== answer.server;
    const found =
      this.#options.judge(answer) ?? (isOther ? 'is another server than before' : undefined);
    this.#state = found ? undefined : answer;
    this.#update(found);
  }

  #update(found: string | undefined): void {
    if (found === this.#problem) return;
    if (found && !this.#problem) {
      // Whoever waits for it is answered by the primary.
      this.#sockets.refuse(new Error(`The ${this.description} ${found}.`));
    }
    if (!found) {
      this.#wellSince = performance.now();
      this.#sockets.admit();
    }
    this.#problem = found;
    this.#options.onChange(this);
  }
}

/** A server at a moment, as it describes itself. */
export interface StandbyState {
  /** False of one that was promoted, or never was a standby. */
  readonly isStandby: boolean;
  readonly server: string;
  /** The same of a primary and all its standbys; undefined where it may not be read. */
  readonly system: string;
  /** Everything before this place in the log can be read from it. */
  readonly replayed: bigint;
  /** Of what it has replayed, as far as it is sure. */
  readonly timeline: number;
  /** Bytes of a page of the log, and of a file. */
  readonly pageSize: bigint;
  readonly fileSize: bigint;
}

// The timeline is read after the place, which is never taken for an older one's. On disk it may be late.
const statement = {
  name: 'standby',
  text: `
    SELECT pg_is_in_recovery() AS "isStandby", pg_postmaster_start_time()::text AS server,
      coalesce(pg_last_wal_replay_lsn() - '0/0', 0)::text AS replayed,
      greatest(
        (SELECT min_recovery_end_timeline FROM pg_control_recovery()),
        (SELECT received_tli FROM pg_stat_wal_receiver)
      ) AS timeline,
      (SELECT system_identifier FROM pg_control_system())::text AS system,
      current_setting('wal_block_size') AS "pageSize",
      pg_size_bytes(current_setting('wal_segment_size'))::text AS "fileSize"`,
};

type Row = Omit<StandbyState, 'fileSize' | 'pageSize' | 'replayed'> &
  Readonly<Record<'fileSize' | 'pageSize' | 'replayed', string>>;

async function askStandby(client: pg.ClientBase): Promise<StandbyState> {
  const { rows } = await client.query<Row>(statement);
  const [row] = rows;
  if (!row) throw new Error('A standby said nothing of itself.');
  return {
    ...row,
    replayed: BigInt(row.replayed),
    pageSize: BigInt(row.pageSize),
    fileSize: BigInt(row.fileSize),
  };
}

/** Whether all that a primary shows can be read, which says so with a place in its log. */
function isAtOrPast(state: StandbyState, { timeline, bytes }: LogPosition): boolean {
  return state.timeline === timeline && state.replayed >= endOf(bytes, state);
}

const pageHeader = 24n;
const fileHeader = 40n;

/** On a new page, a primary names the place behind the header, and a standby that before it. */
function endOf(bytes: bigint, { pageSize, fileSize }: StandbyState): bigint {
  if (bytes % fileSize === fileHeader) return bytes - fileHeader;
  return bytes % pageSize === pageHeader ? bytes - pageHeader : bytes;
}

// Snapshots of the database state, for cache invalidation, live answers and reads from standbys.
import type pg from 'pg';
import { timedOut } from '../../errors.ts';
import { DedicatedConnection, startLimit } from '../connection/session.ts';
import { exactTypes } from '../read.ts';
import { ChangeLog, type Changes, parseChanges } from './change-log.ts';
import {
  changeStatement,
  maxChanges,
  type StateAndChange,
  type StateRow,
  stateStatement,
} from './statements.ts';

export interface DatabaseState {
  /** Version of the change log: every commit up to it is visible in the snapshot. */
  readonly version: number;
  /** The server, in the form of `serverIdentity`. */
  readonly identity: string;
  /** Every visible commit was written to the log before this position. */
  readonly position: LogPosition;
}

/** A position in the write-ahead log of a server. @see https://www.postgresql.org/docs/current/wal-internals.html */
export interface LogPosition {
  /** Start time of the server, which identifies it: another server may have the same timeline and LSN. */
  readonly server: string;
  /** Each promotion of a standby begins a new timeline. */
  readonly timeline: number;
  /** The LSN, as the number of bytes before it. */
  readonly bytes: bigint;
}

/** Reads the state on one connection: a dedicated one, or the one session of the embedded database. */
interface Source {
  read(): Promise<DatabaseState | undefined>;
  /** Fails the read under way, which may be that of a server that was left (failover). */
  reset(): void;
  close(): void;
}

/** Source of the current database state, for caches that invalidate by it. */
export type StateSource = Pick<Snapshots, 'changes' | 'next'>;

/** Takes snapshots: the current state of the database, and into `changes` what was committed since the last one. */
export class Snapshots {
  #onTaken: ((milliseconds: number) => void) | undefined;
  #underWay: Promise<unknown> = Promise.resolve();
  #next: Promise<DatabaseState | undefined> | undefined;

  /** @param limit milliseconds that a call waits */
  constructor(
    readonly changes: ChangeLog,
    private readonly source: Source,
    private readonly limit: number,
  ) {}

  /** A snapshot taken after this call; undefined on a standby. Calls that arrive during one share the one after it. */
  next(): Promise<DatabaseState | undefined> {
    if (!this.#next) {
      const started = this.#underWay
        .then(() => new Promise<void>(setImmediate))
        .then(() => this.#start());
      const limited = withLimit(started, this.limit);
      this.#next = limited;
      // A call after the time limit begins a new wait.
      limited.catch(() => {
        if (this.#next === limited) this.#next = undefined;
      });
    }
    return this.#next;
  }

  #start(): Promise<DatabaseState | undefined> {
    this.#next = undefined;
    const startedAt = performance.now();
    const started = this.source.read();
    const report = () => this.#onTaken?.(performance.now() - startedAt);
    this.#underWay = started.then(report, report);
    return started;
  }

  /** For metrics. @param onTaken called with the duration of each snapshot */
  observe(onTaken: (milliseconds: number) => void): void {
    this.#onTaken = onTaken;
  }

  /** Takes a snapshot on a new connection. */
  renew(): Promise<unknown> {
    this.source.reset();
    return this.next();
  }

  close(): void {
    this.source.close();
  }
}

/** Milliseconds until a server answers a read, which is tried once more then. A server check finds an outage sooner. */
const patience = 2_000;

/** Snapshots on a dedicated connection, so that they never wait for a free one of the pool. */
export function watchServer(
  createClient: () => pg.Client,
  limit: number,
  onServer?: (identity: string) => void,
): Snapshots {
  const changes = new ChangeLog();
  let probe: ReturnType<typeof createProbe> | undefined;
  let isClosed = false;
  let stopWaiting = () => {};
  // One for each connection: after a crash, a server may use a transaction id again, and with it a snapshot.
  const renewProbe = async () => {
    if (isClosed) throw new Error('closed');
    probe = createProbe(changes, (identity) => {
      stopWaiting();
      onServer?.(identity);
    });
  };
  const connection = new DedicatedConnection(createClient, undefined, renewProbe);
  const read = () => {
    // A network that drops a connection, such as one that was idle, says so to nobody: a new one is tried. Not while changes
    // wait for a lock: with a new connection, all that is in memory is invalid.
    stopWaiting = startLimit(patience, reset);
    // A server may have closed an idle connection.
    const reading = connection.query(async (client) => probe?.(client), 2);
    return reading.finally(stopWaiting);
  };
  const reset = () => connection.close(new Error('closed'));
  const close = () => {
    isClosed = true;
    reset();
  };
  return new Snapshots(changes, { read, reset, close }, limit);
}

export function watchEmbedded(pool: pg.Pool, limit: number): Snapshots {
  const changes = new ChangeLog();
  const probe = createProbe(changes);
  const source = { read: () => probe(pool), reset: () => {}, close: () => {} };
  return new Snapshots(changes, source, limit);
}

function withLimit<Result>(promise: Promise<Result>, limit: number): Promise<Result> {
  return new Promise((settle, reject) => {
    const timer = setTimeout(() => reject(timedOut()), limit);
    promise.finally(() => clearTimeout(timer)).then(settle, reject);
  });
}

/**
 * Reads the state of one server, and adds to `changes` what was committed since the last time. Undefined on a standby.
 * @param onServer called first on each read, with the identity of the server
 */
function createProbe(changes: ChangeLog, onServer: (identity: string) => void = () => {}) {
  let latest: { readonly state: DatabaseState; readonly row: StateAndChange } | undefined;
  return async (client: Client): Promise<DatabaseState | undefined> => {
    const before = latest;
    // A statement of its own, since nearly always nothing was committed.
    const found = await client.query<StateRow>({ name: 'snapshot', text: stateStatement });
    const [current] = found.rows;
    onServer(current ? `${current.server} ${current.timeline}` : 'standby');
    if (before && current && keyOf(current) === keyOf(before.row)) return before.state;
    const { rows } = await client.query<StateAndChange>({
      name: 'changes',
      text: changeStatement,
      values: [before?.row.snapshot ?? null],
      types: exactTypes,
    });
    const [row] = rows;
    const isSame = before && row && identityOf(row) === identityOf(before.row);
    changes.add(isSame ? changesIn(rows) : undefined);
    latest = row && { row, state: { version: changes.current, ...positionOf(row) } };
    return latest?.state;
  };
}

type Client = Pick<pg.ClientBase, 'query'>;

/** Equal keys of two snapshots: nothing was committed between them. */
function keyOf({ server, timeline, snapshot }: StateRow): string {
  return `${server} ${timeline} ${snapshot}`;
}

function identityOf({ server, timeline, identity, recorded }: StateAndChange): string {
  return `${server} ${timeline} ${identity} ${JSON.stringify(recorded)}`;
}

function positionOf({ server, bytes, timeline }: StateRow): Omit<DatabaseState, 'version'> {
  const position = { server, timeline: Number.parseInt(timeline, 16), bytes: BigInt(bytes) };
  return { identity: `${server} ${timeline}`, position };
}

/** @returns undefined when the changes are not complete: anything may have changed */
function changesIn(rows: readonly StateAndChange[]): Changes | undefined {
  const [first] = rows;
  if (!first?.isWhole || rows.length > maxChanges) return undefined;
  const changes = rows.filter(({ xid }) => xid !== null);
  return parseChanges(changes, Object.keys(first.recorded));
}

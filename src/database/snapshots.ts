// Names what the database shows now, for the cache and for standbys.
import type pg from 'pg';
import { timedOut } from '../errors.ts';

/** What the database shows at a moment. */
export interface Shown {
  /** As long as two are equal, nothing has been committed in between, by whomever. */
  readonly name: string;
  /** Where the log of the server was then: all that is shown was written before. Not of the embedded database. */
  readonly position?: LogPosition;
}

/** A place in the log of a server (WAL). */
export interface LogPosition {
  /** When the server was started: tells it from the one that takes its place. */
  readonly server: string;
  /** Another one begins with each promotion. */
  readonly timeline: number;
  /** Bytes since the beginning of the log. */
  readonly bytes: bigint;
}

/**
 * Names what the database shows. `pg_current_snapshot()` lists the transactions that are visible, so
 * this needs no write and no trigger.
 */
export interface Snapshots {
  /**
   * What a snapshot shows that is taken after this call. One statement serves all calls that
   * were made before it was sent.
   * @returns undefined on a standby, whose snapshots say nothing about its own state
   * @throws HttpError 503 when it takes too long, or whatever the connection fails with
   */
  takeNext(): Promise<Shown | undefined>;
  /** Tells how many milliseconds each statement takes. */
  observe(onTaken: (milliseconds: number) => void): void;
  close(): Promise<void>;
}

// The position is asked for after the snapshot was taken, so it is at or past every commit in that. Of
// a standby there is no row, nor could it say any of this.
const statement = {
  name: 'snapshot',
  text: `
    SELECT pg_current_snapshot()::text AS snapshot, pg_postmaster_start_time()::text AS server,
      (pg_current_wal_insert_lsn() - '0/0')::text AS bytes,
      left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) AS timeline
    WHERE NOT pg_is_in_recovery()`,
};

interface Answer {
  readonly snapshot: string;
  readonly server: string;
  readonly bytes: string;
  /** Eight hexadecimal digits. */
  readonly timeline: string;
}

const embeddedStatement = {
  name: 'snapshot',
  text: 'SELECT pg_current_snapshot()::text AS name',
};

type Take = () => Promise<Shown | undefined>;

/** Takes snapshots on a connection of their own, so that they never wait for a free one. */
export function watchServer(createClient: () => pg.Client): Snapshots {
  // The same server after a crash may give a name again: every connection has its own names, so whatever
  // was known under the old ones is forgotten. Behind a pooler, one connection may lead to another server
  // than before: so names tell when the server was started, and its timeline.
  let connections = 0;
  let client: Promise<pg.Client> | undefined;

  const connect = () => {
    connections++;
    const fresh = createClient();
    const opened = fresh.connect().then(() => fresh);
    // A lost connection reports its end late, when the next one may have taken its place.
    const forget = () => {
      if (client === opened) client = undefined;
    };
    fresh.on('error', forget).on('end', forget);
    return opened;
  };

  const takeOnce: Take = async () => {
    client ??= connect();
    const used = client;
    try {
      const { rows } = await (await used).query<Answer>(statement);
      return rows[0] && readAnswer(rows[0], connections);
    } catch (error) {
      if (client === used) client = undefined;
      used.then((broken) => broken.end()).catch(() => {});
      throw error;
    }
  };

  return {
    ...shareCalls(takeOnce),
    close: async () => {
      await client?.then((open) => open.end()).catch(() => {});
    },
  };
}

function readAnswer({ snapshot, server, bytes, timeline }: Answer, connection: number): Shown {
  return {
    name: `${connection} ${server} ${timeline} ${snapshot}`,
    position: { server, timeline: Number.parseInt(timeline, 16), bytes: BigInt(bytes) },
  };
}

/**
 * Takes snapshots on the one session of the embedded database.
 * @param limit milliseconds that a call may wait for a statement of others
 */
export function watchEmbedded(pool: pg.Pool, limit: number): Snapshots {
  const take = async () => {
    const { rows } = await pool.query<Shown>(embeddedStatement);
    return rows[0];
  };
  return {
    ...shareCalls(take, limit),
    close: async () => {},
  };
}

/**
 * Calls that come while one is under way share the next. That starts only when what waited for the
 * last one has been answered and new requests have been read, so that it serves many.
 */
function shareCalls(take: Take, limit?: number): Pick<Snapshots, 'observe' | 'takeNext'> {
  let onTaken: ((milliseconds: number) => void) | undefined;
  let underWay: Promise<unknown> = Promise.resolve();
  let next: Promise<Shown | undefined> | undefined;

  const start = () => {
    next = undefined;
    const startedAt = performance.now();
    const started = take();
    const report = () => onTaken?.(performance.now() - startedAt);
    underWay = started.then(report, report);
    return started;
  };
  return {
    takeNext() {
      if (!next) {
        const started = underWay.then(() => new Promise<void>(setImmediate)).then(start);
        const limited = limit === undefined ? started : withLimit(started, limit);
        next = limited;
        // Whoever comes after its time waits anew.
        limited.catch(() => {
          if (next === limited) next = undefined;
        });
      }
      return next;
    },
    observe(report) {
      onTaken = report;
    },
  };
}

function withLimit<Result>(promise: Promise<Result>, limit: number): Promise<Result> {
  return new Promise((settle, reject) => {
    const timer = setTimeout(() => reject(timedOut()), limit);
    promise.finally(() => clearTimeout(timer)).then(settle, reject);
  });
}

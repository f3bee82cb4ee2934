// Knows at any time whether PostgreSQL can be used; cuts and refuses connections while not.
import pg from 'pg';
import { DatabaseAwayError } from './errors.ts';
import { checkPrepared, DatabaseNotReadyError, unreachable } from './prepare.ts';
import type { Session } from './session.ts';
import type { Sockets } from './sockets.ts';

/** Knows at any time whether the database can be used. */
export interface Monitor {
  /** Why the database cannot be used now, in one sentence; undefined while it can. */
  problem(): string | undefined;
  /** Resolves when the database can be used for the first time. */
  readonly ready: Promise<void>;
  /** Checks now instead of after the pause: a statement has failed in a way that says much. */
  checkNow(): void;
  close(): void;
}

/** Called with the error when the database is lost, and with undefined when it is there again. */
export type OnChange = (problem: Error | undefined) => void;

/**
 * Milliseconds between two checks, and for an answer. A frozen server or a dead network gives no
 * error: together they are the longest that a request waits for one, and must stay below 2 s.
 */
const pause = 400;
const limit = 1_200;
/**
 * Milliseconds after which the connection is replaced: only a new one tells that the address leads to another
 * server while the old one lives on.
 */
const maxAge = 10_000;

/**
 * Checks a server again and again, on a connection of its own. While it is away or not migrated,
 * every other connection is cut and new ones are refused, so that requests fail at once.
 * @param onConnect called with each new connection; what it throws counts as a failed connection
 * @param onUnset called when the connection has lost what it had set: a pooler gives it the sessions of others
 * @throws DatabaseNotReadyError or MigrationError when waiting cannot help
 */
export async function startMonitor(
  session: Session,
  description: string,
  sockets: Sockets,
  onChange: OnChange,
  onConnect: (client: pg.Client) => Promise<void>,
  onUnset?: () => void,
): Promise<Monitor> {
  const connection = createConnection(session, description, onConnect, onUnset);
  let problem: Error | undefined;
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;
  let declareReady = () => {};
  const ready = new Promise<void>((settle) => {
    declareReady = settle;
  });

  const update = (found: Error | undefined) => {
    if (!found) declareReady();
    if (found?.message === problem?.message) return;
    // The server is there, and the connections that are open work.
    if (found && !problem && isFull(found)) return;
    problem = found;
    if (found) sockets.refuse(new DatabaseAwayError(found.message));
    else sockets.admit();
    onChange(found);
  };
  const checkAgain = async () => {
    timer = undefined;
    const found = await connection.check();
    if (isClosed) return connection.discard();
    update(found);
    schedule();
  };
  const schedule = () => {
    timer = setTimeout(checkAgain, pause);
  };

  const found = await connection.check();
  if (found && !(found instanceof DatabaseNotReadyError && found.mayPass)) throw found;
  update(found);
  schedule();

  return {
    problem: () => problem?.message,
    ready,
    checkNow: () => {
      // Without a timer it is being done, or has ended.
      if (!timer) return;
      clearTimeout(timer);
      checkAgain();
    },
    close: () => {
      isClosed = true;
      clearTimeout(timer);
      timer = undefined;
      connection.discard();
    },
  };
}

/** The connection that checks are made on: opened when there is none. */
function createConnection(
  session: Session,
  description: string,
  onConnect: (client: pg.Client) => Promise<void>,
  onUnset?: () => void,
) {
  let client: pg.Client | undefined;
  let connectedAt = 0;

  const connect = async () => {
    // Its time limit is that of the check.
    client = new session.Client({ connectionTimeoutMillis: 0 });
    try {
      await client.connect();
      await onConnect(client);
    } catch (error) {
      throw unreachable(description, error);
    }
    connectedAt = performance.now();
    return client;
  };
  /** Replaces an old connection by a new one, unless none can be opened: the open ones go on working. */
  const renew = async () => {
    connectedAt = performance.now();
    const old = client;
    const fresh = new session.Client();
    // Of a server that stops answering on it, nothing else cuts it.
    const clear = startLimit(maxAge / 2, () => fresh.connection.stream.destroy());
    try {
      await fresh.connect();
      await onConnect(fresh);
      if (client !== old) throw new Error('closed');
      old?.connection.stream.destroy();
      client = fresh;
    } catch {
      fresh.connection.stream.destroy();
    } finally {
      clear();
    }
  };
  const discard = (reason?: Error) => {
    client?.connection.stream.destroy(reason);
    client = undefined;
  };

  return {
    discard,
    /** Gives what is wrong with the database; undefined when it can be used. */
    async check(): Promise<Error | undefined> {
      let isLate = false;
      const clear = startLimit(limit, () => {
        isLate = true;
        discard(new Error(`no answer within ${limit / 1000} s`));
      });
      try {
        // A connection that broke says little: an operator may have ended just this one.
        for (let attempt = 0; ; attempt++) {
          try {
            await checkPrepared(client ?? (await connect()), description, onUnset);
            // Not waited for: an address that does not answer must not hold up the next check.
            if (performance.now() - connectedAt > maxAge) renew();
            return undefined;
          } catch (error) {
            discard();
            if (isLate || attempt === 2) return asError(error);
          }
        }
      } finally {
        clear();
      }
    },
  };
}

/** Milliseconds between two looks at the clock, and the most that is counted of what has passed. */
const step = 100;
const maxCounted = 150;

/**
 * Calls back when these milliseconds are over, in which this process could have read an answer. Of a stall (a
 * garbage collection, a long computation) hardly anything counts, however long it is, since the
 * database is not to blame for it. Between two steps, whatever has arrived is read.
 */
export function startLimit(milliseconds: number, onLate: () => void): () => void {
  let last = performance.now();
  let counted = 0;
  const timer = setInterval(() => {
    const now = performance.now();
    counted += Math.min(now - last, maxCounted);
    last = now;
    if (counted < milliseconds) return;
    clearInterval(timer);
    onLate();
  }, step);
  return () => clearInterval(timer);
}

const tooManyConnections = '53300';

function isFull({ cause }: Error): boolean {
  return cause instanceof pg.DatabaseError && cause.code === tooManyConnections;
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

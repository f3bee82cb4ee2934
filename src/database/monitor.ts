import pg from 'pg';
import { DatabaseAwayError } from './errors.ts';
import { checkPrepared, DatabaseNotReadyError, unreachable } from './prepare.ts';
import type { Sockets } from './sockets.ts';

/** Knows at any time whether the database can be used. */
export interface Watch {
  /** Why the database cannot be used now, in one sentence; undefined while it can. */
  fault(): string | undefined;
  /** Resolves when the database can be used for the first time. */
  readonly ready: Promise<void>;
  close(): void;
}

/** Called with the error when the database is lost, and with undefined when it is there again. */
export type OnChange = (fault: Error | undefined) => void;

/**
 * Milliseconds between two looks, and for an answer. A frozen server or a dead network gives no
 * error: together they are the longest that a request waits for one, and must stay below 2 s.
 */
const pause = 400;
const limit = 1_200;

/**
 * Looks at a server again and again, on a connection of its own. While it is away or not migrated,
 * every other connection is cut and new ones are refused, so that requests fail at once.
 * @throws DatabaseNotReadyError or MigrationError when waiting cannot help
 */
export async function startMonitor(
  session: pg.ClientConfig,
  description: string,
  sockets: Sockets,
  onChange: OnChange,
): Promise<Watch> {
  let client: pg.Client | undefined;
  let fault: Error | undefined;
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;
  let declareReady = () => {};
  const ready = new Promise<void>((settle) => {
    declareReady = settle;
  });

  const connect = async () => {
    client = new pg.Client(session);
    // It is reported by the statement that fails, or by the next one.
    client.on('error', () => {});
    try {
      await client.connect();
    } catch (error) {
      throw unreachable(description, error);
    }
    return client;
  };
  const discard = (reason?: Error) => {
    client?.connection.stream.destroy(reason);
    client = undefined;
  };

  const look = async () => {
    let isLate = false;
    const clear = startLimit(() => {
      isLate = true;
      discard(new Error(`no answer within ${limit / 1000} s`));
    });
    try {
      // A connection that broke says little: an operator may have ended just this one.
      for (let attempt = 0; ; attempt++) {
        try {
          return await checkPrepared(client ?? (await connect()), description);
        } catch (error) {
          discard();
          if (isLate || attempt === 2) throw error;
        }
      }
    } finally {
      clear();
    }
  };

  const note = (found: Error | undefined) => {
    if (found?.message === fault?.message) return;
    // The server is there, and the connections that are open work.
    if (found && !fault && isFull(found)) return;
    fault = found;
    if (found) sockets.refuse(new DatabaseAwayError(found.message));
    else sockets.admit();
    onChange(found);
  };

  const goOn = () => {
    timer = setTimeout(async () => {
      const found = await look().then(() => undefined, asError);
      if (isClosed) return discard();
      note(found);
      if (!found) declareReady();
      goOn();
    }, pause);
  };

  const found = await look().then(() => undefined, asError);
  if (found && !(found instanceof DatabaseNotReadyError && found.mayPass)) throw found;
  note(found);
  if (!found) declareReady();
  goOn();

  return {
    fault: () => fault?.message,
    ready,
    close: () => {
      isClosed = true;
      clearTimeout(timer);
      discard();
    },
  };
}

/**
 * Calls back when the time is over, but not before what has arrived meanwhile has been read: when
 * this process was busy, the database is not to blame.
 */
function startLimit(onLate: () => void): () => void {
  let isOver = false;
  const timer = setTimeout(() => {
    setImmediate(() => setImmediate(() => isOver || onLate()));
  }, limit);
  return () => {
    isOver = true;
    clearTimeout(timer);
  };
}

const tooManyConnections = '53300';

function isFull({ cause }: Error): boolean {
  return cause instanceof pg.DatabaseError && cause.code === tooManyConnections;
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

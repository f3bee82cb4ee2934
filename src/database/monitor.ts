// Knows at any time whether PostgreSQL can be used; cuts and refuses connections while not.
import pg from 'pg';
import { DedicatedConnection, type Session, type Sockets } from './connection/session.ts';
import { DatabaseAwayError } from './errors.ts';
import { checkReady, DatabaseNotReadyError, explain } from './readiness.ts';

export type Monitor = Awaited<ReturnType<typeof startMonitor>>;

/** Told the error when the database is lost, and undefined when it is there again. */
export type OnChange = (problem: Error | undefined) => void;

/** Milliseconds between two checks, and for an answer: together what a request waits for a frozen server, below 2 s. */
const pause = 400;
const limit = 1_200;
const maxAge = 10_000;

/** Checks a server all the time; while it is away or not migrated, other connections are cut and refused: fail fast. */
export async function startMonitor(
  session: Session,
  description: string,
  sockets: Sockets,
  onChange: OnChange,
  onConnect: (client: pg.Client) => Promise<void>,
  onUnset?: () => void,
) {
  const connection = new DedicatedConnection(session, limit, onConnect);
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
  /** Gives what is wrong with the database; undefined when it can be used. */
  const check = async (): Promise<Error | undefined> => {
    try {
      await connection.query((client) => checkReady(client, description, onUnset), 3);
    } catch (error) {
      return explain(description, error);
    }
    // Not waited for: an address that does not answer must not hold up the next check.
    connection.renew(maxAge);
    return undefined;
  };
  const checkAgain = async () => {
    timer = undefined;
    const found = await check();
    if (isClosed) return connection.close();
    update(found);
    schedule();
  };
  const schedule = () => {
    timer = setTimeout(checkAgain, pause);
  };

  const found = await check();
  if (found && !(found instanceof DatabaseNotReadyError && found.mayPass)) throw found;
  update(found);
  schedule();

  return {
    /** Why the database cannot be used now, in one sentence; undefined while it can. */
    problem: () => problem?.message,
    /** Resolves when the database can be used for the first time. */
    ready,
    /** Instead of after the pause: a statement has failed in a way that says much. */
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
      connection.close();
    },
  };
}

const tooManyConnections = '53300';

function isFull({ cause }: Error): boolean {
  return cause instanceof pg.DatabaseError && cause.code === tooManyConnections;
}

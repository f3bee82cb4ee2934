// Connections for tasks; that of a task that was stopped is cut.
import pg from 'pg';
import { isOfSharedNames } from './errors.ts';
import { renewName } from './read.ts';
import type { Session } from './session.ts';
import { currentSignal } from './task.ts';

type OnConnect = (
  error: Error | undefined,
  client: pg.PoolClient | undefined,
  release: (error?: Error | boolean) => void,
) => void;

type RunStatement = (
  statement: pg.QueryConfig | string,
  values?: unknown[],
) => Promise<pg.QueryResult>;

/**
 * Gives connections to the tasks that ask for them. When one is stopped, it leaves the queue, or its
 * connection is cut, and PostgreSQL, which looks after its clients, drops the statement that runs.
 */
export class TaskPool extends pg.Pool {
  readonly #canCut: boolean;

  /**
   * @param connectionTimeoutMillis what opening a connection may take: how long to wait for a free
   *   one is known to each task
   * @param canCut false where a statement runs to its end anyway
   */
  constructor(
    { connectionTimeoutMillis, ...config }: pg.PoolConfig,
    canCut: boolean,
    PlainClient: Session['Client'] = pg.Client,
  ) {
    class Client extends PlainClient {
      constructor(session: pg.ClientConfig = {}) {
        super({ ...session, ...(connectionTimeoutMillis ? { connectionTimeoutMillis } : {}) });
      }
    }
    super({ ...config, Client });
    this.#canCut = canCut;
    const run = this.query.bind(this) as RunStatement;
    const runAgain: RunStatement = async (statement, values) => {
      try {
        return await run(statement, values);
      } catch (error) {
        if (typeof statement === 'string' || !statement.name) throw error;
        const { name, ...unnamed } = statement;
        // Both failed before they began, so even a write can be sent again.
        if (isStalePlan(error)) {
          return run({ ...unnamed, name: renewName(statement.text, name) }, values);
        }
        if (isOfSharedNames(codeOf(error))) return run(unnamed, values);
        throw error;
      }
    };
    this.query = runAgain as typeof this.query;
  }

  override connect(): Promise<pg.PoolClient>;
  override connect(callback: OnConnect): void;
  override connect(callback?: OnConnect): Promise<pg.PoolClient> | undefined {
    if (!callback) {
      return new Promise((settle, reject) => {
        this.connect((error, client) => (client ? settle(client) : reject(error)));
      });
    }
    const signal = currentSignal();
    if (!signal) {
      super.connect(callback);
      return undefined;
    }
    const leave = () => callback(signal.reason, undefined, () => {});
    if (signal.aborted) {
      leave();
      return undefined;
    }
    signal.addEventListener('abort', leave, { once: true });
    super.connect((error, client, release) => {
      signal.removeEventListener('abort', leave);
      if (signal.aborted) {
        client?.release();
        return;
      }
      if (client && this.#canCut) cutOnStop(client, signal);
      callback(error, client, client?.release ?? release);
    });
    return undefined;
  }
}

function cutOnStop(client: pg.PoolClient, signal: AbortSignal): void {
  const cut = () => client.connection.stream.destroy(signal.reason);
  signal.addEventListener('abort', cut, { once: true });
  const { release } = client;
  client.release = (error) => {
    signal.removeEventListener('abort', cut);
    release(error);
  };
}

function codeOf(error: unknown): string | undefined {
  return error instanceof pg.DatabaseError ? error.code : undefined;
}

/** A column has another type since the statement was prepared. */
function isStalePlan(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.routine === 'RevalidateCachedQuery';
}

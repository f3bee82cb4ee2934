import pg from 'pg';
import { currentSignal } from './task.ts';

type OnConnect = (
  error: Error | undefined,
  client: pg.PoolClient | undefined,
  release: (error?: Error | boolean) => void,
) => void;

/**
 * Gives connections to the work that asks for them. When that is stopped, its connection is cut,
 * and PostgreSQL, which looks after its clients, drops the statement that runs on it.
 */
export class TaskPool extends pg.Pool {
  readonly #canCut: boolean;

  /** @param canCut false where a statement runs to its end anyway */
  constructor(config: pg.PoolConfig, canCut: boolean) {
    super(config);
    this.#canCut = canCut;
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
    super.connect((error, client, release) => {
      if (!client || !signal) return callback(error, client, release);
      if (signal.aborted) {
        // It was stopped while it waited for its turn.
        client.release();
        return callback(signal.reason, undefined, () => {});
      }
      if (this.#canCut) cutOnStop(client, signal);
      callback(undefined, client, client.release);
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

// Connection pool: fair queue, bulkheads for expensive statements, retries, and cancellation with the task.
import { AsyncResource } from 'node:async_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import pg from 'pg';
import { tooExpensive } from '../../errors.ts';
import { isPreparedNameError, isTimeLimit, retryableStates, sqlStateOf } from '../errors.ts';
import type { Access } from '../read.ts';
import { currentTask } from '../task.ts';
import { Lane, type LaneState, type Origin, type StopSignal } from './lane.ts';
import { type ObserveStatement, observedClient } from './observe.ts';
import { type ServerWatch, serverIdentity } from './server-watch.ts';
import type { Session } from './session.ts';

type OnConnect = (
  error: Error | undefined,
  client: pg.PoolClient | undefined,
  release: (error?: Error | boolean) => void,
) => void;

type RunStatement = (
  statement: pg.QueryConfig | string,
  values?: unknown[],
) => Promise<pg.QueryResult>;

/** Milliseconds after which an `unbounded` statement counts as expensive. */
const trialTime = 50;
/** Backoff in milliseconds after a trial that timed out: a sender's trials take a tenth of a connection at most. */
const trialBackoff = 500;
/** Milliseconds for a statement of a stopped task to end by itself, which is cheaper than a new connection. */
const grace = 100;
/** Most concurrent statements of one request. */
const maxPerRequest = 3;

interface Lanes {
  readonly trial: Lane;
  readonly expensive: Lane;
  /** Milliseconds that an expensive statement may take. */
  readonly timeout: number;
}

/** A connection in use. */
interface Use {
  readonly origin: Origin;
  readonly endCut: (() => void) | undefined;
  /** Milliseconds that it was waited for, until its first statement is sent. */
  waited: number;
}

interface TaskPoolConfig extends pg.PoolConfig {
  readonly max: number;
  readonly observers?: readonly ObserveStatement[];
}

/** Connections are acquired by sender and request in turn. A task that is stopped leaves the queue, or is cut. */
export class TaskPool extends pg.Pool {
  readonly #canCut: boolean;
  readonly #watch: ServerWatch | undefined;
  readonly #all: Lane;
  /** Undefined where a statement cannot be cancelled: limiting expensive ones would not free the connection. */
  readonly #lanes: Lanes | undefined;
  /** End of the backoff of each sender, by `performance.now()`. */
  readonly #noTrialUntil = new LRUCache<string, number>({ max: 10_000 });
  /** Expensive statements that were cancelled by their time limit. */
  timedOut = 0;
  readonly #uses: Map<object, Use>;
  /** Connections with a stale plan, which would fail every time: in a transaction, nothing else ends them. */
  readonly #stale = new WeakSet<object>();

  /** @param expensiveTimeout in milliseconds; undefined where a statement cannot be cancelled */
  constructor(
    { connectionTimeoutMillis, observers = [], ...config }: TaskPoolConfig,
    expensiveTimeout: number | undefined,
    PlainClient: Session['Client'] = pg.Client,
    watch?: ServerWatch,
  ) {
    const uses = new Map<object, Use>();
    const takeWait = (client: pg.Client) => {
      const use = uses.get(client);
      const waited = use?.waited;
      if (use) use.waited = 0;
      return waited;
    };
    class Client extends observedClient(PlainClient, observers, takeWait) {
      constructor(session: pg.ClientConfig = {}) {
        super({ ...session, ...(connectionTimeoutMillis ? { connectionTimeoutMillis } : {}) });
      }
    }
    const onConnect = watch && ((client: pg.ClientBase) => watch.register(client as pg.PoolClient));
    super({ ...config, Client, ...(onConnect ? { onConnect } : {}) });
    this.#uses = uses;
    this.#watch = watch;
    this.#canCut = expensiveTimeout !== undefined;
    this.#all = new Lane({ slots: config.max, perRequest: maxPerRequest });
    this.#lanes =
      expensiveTimeout === undefined ? undefined : createLanes(config.max, expensiveTimeout);
    // An event, not a `release` function for each use: V8 kept the rows of ended requests in memory with those.
    this.on('release', (_error, client) => this.#endUse(client));
    this.on('connect', (client: pg.PoolClient) =>
      client.connection.on('errorMessage', (error) => {
        if (isStalePlan(error)) this.#stale.add(client);
      }),
    );
    this.query = this.#queryWithRetry as typeof this.query;
  }

  #endUse(client: pg.PoolClient): void {
    // The pool keeps no connection that is ending.
    if (this.#stale.has(client)) void client.end();
    const use = this.#uses.get(client);
    if (!use) return;
    this.#uses.delete(client);
    use.endCut?.();
    // Deferred: the pool marks the connection as idle after this event, and would open another one now.
    queueMicrotask(() => this.#all.leave(use.origin));
  }

  readonly #queryWithRetry: RunStatement = async (statement, values) => {
    for (let retries = maxRetries; ; retries--) {
      try {
        return await this.#queryOnce(statement, values);
      } catch (error) {
        const state = sqlStateOf(error);
        // A single statement is its own transaction and was rolled back, so that a write is retried as well.
        if (retries > 0 && retryableStates.includes(state)) {
          // At once, it could take the lock again for which the other has waited.
          await sleep(retryPause);
          continue;
        }
        // Both of these failed before they were executed; the connection, which has other old plans, is closed.
        const isOutdated = isStalePlan(error) || isPreparedNameError(state);
        if (typeof statement === 'string' || !statement.name || !isOutdated) throw error;
        const { name: _outdated, ...unnamed } = statement;
        return this.#queryOnce(unnamed, values);
      }
    }
  };

  #queryOnce(
    statement: pg.QueryConfig | string,
    values: unknown[] | undefined,
  ): Promise<pg.QueryResult> {
    return this.#watch?.isPerTransaction
      ? this.#runInTransaction('BEGIN', statement, values)
      : super.query(statement as pg.QueryConfig, values);
  }

  /** @param most length of the queue of each lane; that of the pool itself is not limited */
  limitWaiting(most: number): void {
    this.#lanes?.trial.limitWaiting(most);
    this.#lanes?.expensive.limitWaiting(most);
  }

  /** For metrics: the lanes by name; `all` is the pool itself. */
  get lanes(): Readonly<Record<string, LaneState>> {
    const { trial, expensive } = this.#lanes ?? {};
    return { all: this.#all, ...(trial && { trial }), ...(expensive && { expensive }) };
  }

  /** Runs a read-only statement in the lane of its access. @throws HttpError 503 when rejected or cancelled */
  async queryInLane<Row extends object>(
    statement: pg.QueryConfig,
    access: Access,
  ): Promise<pg.QueryResult<Row>> {
    const lanes = this.#lanes;
    if (access === 'bounded' || !lanes) return this.query<Row>(statement);
    if (access === 'unbounded') {
      const found = await this.#tryStatement<Row>(lanes.trial, statement);
      if (found) return found;
    }
    const task = currentTask();
    if (task) task.isExpensive = true;
    try {
      return await inLane(lanes.expensive, () => this.#readWithin<Row>(lanes.timeout, statement));
    } catch (error) {
      if (!isTimeLimit(error)) throw error;
      this.timedOut += 1;
      throw tooExpensive(lanes.timeout / 1000);
    }
  }

  /** A trial with a short time limit; undefined when it was exceeded, or the sender is in its backoff. */
  async #tryStatement<Row extends object>(
    trial: Lane,
    statement: pg.QueryConfig,
  ): Promise<pg.QueryResult<Row> | undefined> {
    const { sender } = currentTask() ?? gatewayOrigin;
    const isInBackoff = () => performance.now() < (this.#noTrialUntil.get(sender) ?? 0);
    if (isInBackoff()) return undefined;
    return inLane(trial, async () => {
      // The trial of another statement of this sender may have timed out meanwhile.
      if (isInBackoff()) return undefined;
      try {
        return await this.#readWithin<Row>(trialTime, statement);
      } catch (error) {
        if (!isTimeLimit(error)) throw error;
        this.#noTrialUntil.set(sender, performance.now() + trialBackoff);
        return undefined;
      }
    });
  }

  /** @throws an error that `isTimeLimit` holds for when it takes longer */
  #readWithin<Row extends object>(
    milliseconds: number,
    statement: pg.QueryConfig,
  ): Promise<pg.QueryResult<Row>> {
    // SET LOCAL, since poolers may keep no other setting. Parallel workers and JIT cost more than the lane may use.
    return this.#runInTransaction<Row>(
      `BEGIN READ ONLY;
        SET LOCAL statement_timeout = ${milliseconds};
        SET LOCAL max_parallel_workers_per_gather = 0;
        SET LOCAL jit = off`,
      statement,
    );
  }

  /** @throws DatabaseAwayError when it would run on another server than the current one */
  async #runInTransaction<Row extends object>(
    begin: string,
    statement: pg.QueryConfig | string,
    values?: unknown[],
  ): Promise<pg.QueryResult<Row>> {
    const client = await this.connect();
    let failure: Error | undefined;
    try {
      if (this.#watch?.isPerTransaction) {
        const begun = await client.query(`${begin}; SELECT ${serverIdentity} AS identity`);
        // A text of several statements has an array of results.
        const [{ identity }] = (begun as unknown as pg.QueryResult[]).at(-1)?.rows ?? [];
        this.#watch.useInTransaction(identity);
      } else await client.query(begin);
      const result = await client.query<Row>(statement as pg.QueryConfig, values);
      await client.query('COMMIT');
      return result;
    } catch (error) {
      await client.query('ROLLBACK').catch((broken: Error) => {
        failure = broken;
      });
      throw error;
    } finally {
      client.release(failure);
    }
  }

  override connect(): Promise<pg.PoolClient>;
  override connect(callback: OnConnect): void;
  override connect(callback?: OnConnect): Promise<pg.PoolClient> | undefined {
    if (!callback) {
      return new Promise((settle, reject) => {
        this.connect((error, client) => (client ? settle(client) : reject(error)));
      });
    }
    const task = currentTask();
    // The gateway's own work is not one request: each of its statements is limited by itself.
    this.#acquire(task ?? { ...gatewayOrigin }, task?.signal, callback);
    return undefined;
  }

  #acquire(origin: Origin, signal: StopSignal | undefined, callback: OnConnect): void {
    const fail = (error: Error | undefined) => callback(error, undefined, () => {});
    if (signal?.aborted) {
      fail(signal.reason);
      return;
    }
    const begin = performance.now();
    const turn = this.#all.enter(origin, signal);
    const open = () => this.#open(origin, signal, begin, callback);
    if (turn) turn.then(open, fail);
    else open();
  }

  /** Takes an idle connection or opens one: the lane has a slot for it. */
  #open(origin: Origin, signal: StopSignal | undefined, begin: number, callback: OnConnect): void {
    const fail = () => callback(signal?.reason, undefined, () => {});
    if (signal?.aborted) {
      this.#all.leave(origin);
      fail();
      return;
    }
    signal?.addEventListener('abort', fail, { once: true });
    // The pool may call back from the request that releases a connection, in the context of that one.
    const onConnect: OnConnect = (error, client, release) => {
      signal?.removeEventListener('abort', fail);
      if (!client) {
        this.#all.leave(origin);
        if (!signal?.aborted) callback(error, client, release);
        return;
      }
      const endCut = signal && this.#canCut ? cutOnStop(client, signal) : undefined;
      this.#uses.set(client, { origin, endCut, waited: performance.now() - begin });
      if (signal?.aborted) return release();
      this.#watch?.recordUse(client);
      callback(error, client, release);
    };
    const caller = new AsyncResource('Connection');
    super.connect((...given) => caller.runInAsyncScope(onConnect, undefined, ...given));
  }
}

/** Origin of work that belongs to no request. */
const gatewayOrigin: Origin = { sender: 'gateway' };

const maxRetries = 3;
/** Milliseconds before a retry. */
const retryPause = 10;

/** At most a quarter of the connections each, so that half remain for bounded statements. */
function createLanes(connections: number, timeout: number): Lanes {
  const slots = Math.max(Math.floor(connections / 4), 1);
  return {
    trial: new Lane({ slots }),
    expensive: new Lane({ slots, perSender: 1, maxWait: timeout }),
    timeout,
  };
}

async function inLane<Result>(lane: Lane, work: () => Promise<Result>): Promise<Result> {
  const task = currentTask();
  const origin = task ?? gatewayOrigin;
  try {
    await lane.enter(origin, task?.signal);
  } catch (error) {
    if (task) task.isRefused = true;
    throw error;
  }
  try {
    return await work();
  } finally {
    lane.leave(origin);
  }
}

/** Cuts the connection when the task is stopped. @returns function that ends this */
function cutOnStop(client: pg.PoolClient, signal: StopSignal): () => void {
  let timer: NodeJS.Timeout | undefined;
  const cut = () => client.connection.stream.destroy(signal.reason);
  const cutLater = () => {
    timer = setTimeout(cut, grace);
  };
  signal.addEventListener('abort', cutLater, { once: true });
  return () => {
    clearTimeout(timer);
    signal.removeEventListener('abort', cutLater);
  };
}

/** The type of a column has changed since the statement was prepared. */
function isStalePlan(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.routine === 'RevalidateCachedQuery';
}

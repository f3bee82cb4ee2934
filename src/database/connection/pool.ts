// Connection pool: connections in turn, lanes for expensive statements, and cutting those of stopped tasks.
import { LRUCache } from 'lru-cache';
import pg from 'pg';
import { tooExpensive } from '../../errors.ts';
import { isPreparedNameError, isTimeLimit, sqlStateOf } from '../errors.ts';
import type { Origin } from '../fair-queue.ts';
import { type Access, renewName } from '../read.ts';
import { currentTask, type StopSignal } from '../task.ts';
import { Lane, type LaneState } from './lane.ts';
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

/** What an `unbounded` statement may take before it counts as expensive, in milliseconds. */
const trialTime = 50;
/** Milliseconds without trials after a vain one: those of a sender then take a tenth of a connection. */
const trialPause = 500;
/** Milliseconds that a statement of a stopped task has to end by itself: a new connection costs more than most. */
const grace = 100;
/** Most statements of one request that are under way. */
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
}

/** Gives connections by sender and request in turn. A stopped task leaves the queue, or loses its connection. */
export class TaskPool extends pg.Pool {
  readonly #canCut: boolean;
  readonly #watch: ServerWatch | undefined;
  readonly #all: Lane;
  /** Undefined where a statement cannot be cut: then nothing is gained by limiting expensive ones. */
  readonly #lanes: Lanes | undefined;
  /** By `performance.now()`, for each sender. */
  readonly #noTrialUntil = new LRUCache<string, number>({ max: 10_000 });
  /** Expensive statements that were ended by their time limit. */
  timedOut = 0;
  readonly #uses = new Map<pg.PoolClient, Use>();

  /** @param expensiveTimeout in milliseconds; undefined where a statement runs to its end anyway */
  constructor(
    { connectionTimeoutMillis, ...config }: pg.PoolConfig & { readonly max: number },
    expensiveTimeout: number | undefined,
    PlainClient: Session['Client'] = pg.Client,
    watch?: ServerWatch,
  ) {
    class Client extends PlainClient {
      constructor(session: pg.ClientConfig = {}) {
        super({ ...session, ...(connectionTimeoutMillis ? { connectionTimeoutMillis } : {}) });
      }
    }
    const onConnect = watch && ((client: pg.ClientBase) => watch.register(client as pg.PoolClient));
    super({ ...config, Client, ...(onConnect ? { onConnect } : {}) });
    this.#watch = watch;
    this.#canCut = expensiveTimeout !== undefined;
    this.#all = new Lane({ slots: config.max, perRequest: maxPerRequest });
    // At most a quarter of the connections each, so that half are always left for bounded statements.
    const slots = Math.max(Math.floor(config.max / 4), 1);
    this.#lanes =
      expensiveTimeout === undefined
        ? undefined
        : {
            trial: new Lane({ slots }),
            expensive: new Lane({ slots, perSender: 1, maxWait: expensiveTimeout }),
            timeout: expensiveTimeout,
          };
    // An event, and not a `release` of its own for each use: V8 kept the rows of ended requests with those.
    this.on('release', (_error, client) => {
      const use = this.#uses.get(client);
      if (!use) return;
      this.#uses.delete(client);
      use.endCut?.();
      // The pool can give the connection away only after this event: now, the next statement would open another.
      queueMicrotask(() => this.#all.leave(use.origin));
    });
    const runAlone = this.query.bind(this) as RunStatement;
    const run: RunStatement = (statement, values) =>
      watch?.isPerTransaction
        ? this.#runInTransaction('BEGIN', statement, values)
        : runAlone(statement, values);
    const runAgain: RunStatement = async (statement, values) => {
      try {
        return await run(statement, values);
      } catch (error) {
        // The transaction of a single statement is rolled back as a whole, so even a write can be sent again.
        if (lostRaces.includes(sqlStateOf(error) ?? '')) return run(statement, values);
        if (typeof statement === 'string' || !statement.name) throw error;
        const { name, ...unnamed } = statement;
        // Both failed before they began.
        if (isStalePlan(error)) {
          return run({ ...unnamed, name: renewName(statement.text, name) }, values);
        }
        if (isPreparedNameError(sqlStateOf(error))) return run(unnamed, values);
        throw error;
      }
    };
    this.query = runAgain as typeof this.query;
  }

  /** @param most statements that wait for each lane, all but that of every connection */
  limitWaiting(most: number): void {
    this.#lanes?.trial.limitWaiting(most);
    this.#lanes?.expensive.limitWaiting(most);
  }

  /** For metrics: the lanes by their names; `all` is every connection. */
  get lanes(): Readonly<Record<string, LaneState>> {
    const { trial, expensive } = this.#lanes ?? {};
    return { all: this.#all, ...(trial && { trial }), ...(expensive && { expensive }) };
  }

  /** Runs a statement that only reads in its lane. @throws HttpError 503 when that is full, or has stopped it */
  async queryInLane<Row extends object>(
    statement: pg.QueryConfig,
    access: Access,
  ): Promise<pg.QueryResult<Row>> {
    const lanes = this.#lanes;
    if (access === 'bounded' || !lanes) return this.query<Row>(statement);
    const task = currentTask();
    const { sender } = task ?? { sender: own };
    const mayTry = () => performance.now() >= (this.#noTrialUntil.get(sender) ?? 0);
    if (access === 'unbounded' && mayTry()) {
      const found = await inLane(lanes.trial, async () => {
        // Another statement of this sender may have been found to be expensive while this one waited.
        if (!mayTry()) return undefined;
        try {
          return await this.#readWithin<Row>(trialTime, statement);
        } catch (error) {
          if (!isTimeLimit(error)) throw error;
          this.#noTrialUntil.set(sender, performance.now() + trialPause);
          return undefined;
        }
      });
      if (found) return found;
    }
    if (task) task.isExpensive = true;
    try {
      return await inLane(lanes.expensive, () => this.#readWithin<Row>(lanes.timeout, statement));
    } catch (error) {
      if (!isTimeLimit(error)) throw error;
      this.timedOut += 1;
      throw tooExpensive(lanes.timeout / 1000);
    }
  }

  /** @throws an error that `isTimeLimit` holds for when it takes longer */
  #readWithin<Row extends object>(
    milliseconds: number,
    statement: pg.QueryConfig,
  ): Promise<pg.QueryResult<Row>> {
    // A transaction, since poolers may keep no setting beyond it. Parallel workers and JIT cost more than the lane may.
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
        // Of several statements, there are several results.
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
    const signal = task?.signal;
    // What the gateway does for itself is not limited as one request.
    const origin = task ?? { sender: own };
    const fail = (error: Error | undefined) => callback(error, undefined, () => {});
    if (signal?.aborted) {
      fail(signal.reason);
      return undefined;
    }
    const turn = this.#all.enter(origin, signal);
    const open = () => {
      if (signal?.aborted) {
        this.#all.leave(origin);
        return fail(signal.reason);
      }
      const leave = () => fail(signal?.reason);
      signal?.addEventListener('abort', leave, { once: true });
      super.connect((error, client, release) => {
        signal?.removeEventListener('abort', leave);
        if (!client) {
          this.#all.leave(origin);
          if (!signal?.aborted) callback(error, client, release);
          return;
        }
        const endCut = signal && this.#canCut ? cutOnStop(client, signal) : undefined;
        this.#uses.set(client, { origin, endCut });
        if (signal?.aborted) return release();
        this.#watch?.recordUse(client);
        callback(error, client, release);
      });
    };
    if (turn) turn.then(open, fail);
    else open();
    return undefined;
  }
}

/** The sender of what belongs to no request. */
const own = 'gateway';

/** A deadlock, and a transaction that cannot be serialized: others have gone on meanwhile. */
const lostRaces = ['40P01', '40001'];

async function inLane<Result>(lane: Lane, work: () => Promise<Result>): Promise<Result> {
  const task = currentTask();
  const origin = task ?? { sender: own };
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

/** @returns what ends that */
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

/** A column has another type since the statement was prepared. */
function isStalePlan(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.routine === 'RevalidateCachedQuery';
}

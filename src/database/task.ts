// Work that several requests wait for: time limit, stopped when all have left.
import { AsyncLocalStorage } from 'node:async_hooks';
import { timedOut } from '../errors.ts';
import { httpErrorFor } from './errors.ts';
import type { Origin } from './fair-queue.ts';
import { Stop, type StopSignal } from './stop-signal.ts';

/** Who waits for a result: a request, say. Its signal may be made when it is first read. */
export interface Waiter {
  /** Aborted when the waiter has left. */
  readonly signal: AbortSignal;
  /** Who is charged for the work: connections and slots are given to senders in turn. */
  readonly sender: string;
}

/**
 * Makes a task. The work never begins before this has returned.
 * @param sender who is charged for it
 * @param after what must have ended before the work begins
 */
export type StartTask = <Result>(
  work: () => Promise<Result>,
  sender: string,
  after?: Promise<unknown>,
) => SharedTask<Result>;

/** The task that a statement belongs to. */
export interface TaskScope extends Origin {
  /** Aborted when the task has been stopped, or has ended. */
  readonly signal: StopSignal;
  /** Whether a statement of it has used the lane of expensive statements. */
  isExpensive: boolean;
  /** The servers that its statements have run on, by their identities. */
  readonly servers: Set<string>;
  /** Whether it was refused for what it asks for: then its answer is delayed, once it has no place any more. */
  isRefused: boolean;
}

/** What a statement fails with that its task did not wait for. */
const ended = timedOut();

const scopes = new AsyncLocalStorage<TaskScope>();
/** Tasks that run, and readings of tasks, which may have ended before. */
let holds = 0;

function letGo(): void {
  holds--;
  if (holds > 0) return;
  // Deferred until all promise jobs and ticks are done: loaders send their statements in a tick.
  setImmediate(() => {
    // An AsyncLocalStorage in use makes every promise of the process slower, those of cached answers too.
    if (holds === 0) scopes.disable();
  });
}

/**
 * Does work that may outlast its task: what it goes on with when a statement has ended still belongs to the task,
 * and is stopped with it.
 */
export async function holdScope<Result>(work: () => Promise<Result>): Promise<Result> {
  holds++;
  try {
    return await work();
  } finally {
    letGo();
  }
}

/** Begins work that goes on when the task has ended that it is begun in: it belongs to none. */
export function startOutside<Result>(work: () => Result): Result {
  return scopes.exit(work);
}

/** The task that this code belongs to; undefined outside of any. */
export function currentTask(): TaskScope | undefined {
  return scopes.getStore();
}

/**
 * A task that one or more requests wait for. It is stopped when the last of them has left or has
 * waited too long: the connection it uses is cut, and the database drops the statement. The same becomes
 * of what still runs when it has ended.
 */
export class SharedTask<Result> {
  readonly #stop = new Stop();
  readonly #result: Promise<Result>;
  readonly #limit: number;
  #waiting = 0;

  /**
   * @param limit seconds that a request waits at most
   * @param sender who is charged for the work
   */
  constructor(limit: number, work: (scope: TaskScope) => Promise<Result>, sender: string) {
    const scope = {
      signal: this.#stop,
      sender,
      isExpensive: false,
      isRefused: false,
      servers: new Set<string>(),
    };
    this.#limit = limit;
    holds++;
    this.#result = scopes
      .run(scope, () => work(scope))
      .catch((error) => {
        throw httpErrorFor(error) ?? error;
      })
      .finally(() => {
        // GraphQL answers with an error before its other fields are read: their statements would go on,
        // and count for nobody.
        this.#stop.abort(ended);
        letGo();
      });
    // Whoever waited may have left.
    this.#result.catch(() => {});
  }

  /** Whether nobody may wait for it any more. */
  get isStopped(): boolean {
    return this.#stop.aborted;
  }

  /** Calls back when it has ended, however that went. */
  onEnd(callback: () => void): void {
    this.#result.then(callback, callback);
  }

  /**
   * The result, for one more request.
   * @throws HttpError 503 when the waiter has left, the time is over, or the database fails
   */
  wait({ signal }: Pick<Waiter, 'signal'>): Promise<Result> {
    this.#waiting++;
    return new Promise((settle, reject) => {
      const leave = () => {
        release();
        const error = timedOut();
        reject(error);
        this.#waiting--;
        if (this.#waiting === 0) this.#stop.abort(error);
      };
      const timer = setTimeout(leave, this.#limit * 1000);
      signal.addEventListener('abort', leave, { once: true });
      const release = () => {
        clearTimeout(timer);
        signal.removeEventListener('abort', leave);
      };
      this.#result.finally(release).then(settle, reject);
      // A client may leave before there is anything to wait for: during the probe of the cache, say.
      if (signal.aborted) leave();
    });
  }
}

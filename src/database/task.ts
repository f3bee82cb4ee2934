// Work that several requests wait for: time limit, stopped when all have left.
import { AsyncLocalStorage } from 'node:async_hooks';
import { timedOut } from '../errors.ts';
import { httpErrorFor } from './errors.ts';
import type { Origin } from './fair-queue.ts';

/** What the waits for a connection or a turn need of an `AbortSignal`. */
export interface StopSignal {
  readonly aborted: boolean;
  readonly reason: Error;
  throwIfAborted(): void;
  addEventListener(type: 'abort', listener: () => void, options?: { readonly once: true }): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}

/** A `StopSignal` with `abort`. Node's AbortController took a twentieth of the processor time of reading one page. */
export class Stop implements StopSignal {
  aborted = false;
  reason!: Error;
  readonly #listeners = new Set<() => void>();

  abort(reason: Error): void {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason;
    for (const listener of this.#listeners) listener();
    this.#listeners.clear();
  }

  throwIfAborted(): void {
    if (this.aborted) throw this.reason;
  }

  addEventListener(_type: 'abort', listener: () => void): void {
    this.#listeners.add(listener);
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    this.#listeners.delete(listener);
  }
}

/** Who waits for a result: a request, say. Its signal may be made when it is first read. */
export interface Caller {
  readonly signal: AbortSignal;
  /** Who is charged for the work: connections and slots are given to senders in turn. */
  readonly sender: string;
}

/** Makes a task, whose work begins later, when `after` has ended. */
export type StartTask = <Result>(
  work: () => Promise<Result>,
  sender: string,
  after?: Promise<unknown>,
) => SharedTask<Result>;

export interface TaskScope extends Origin {
  readonly signal: StopSignal;
  /** Whether a statement of it has used the lane of expensive statements. */
  isExpensive: boolean;
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

/** Does work that may outlast its task: what follows a statement still belongs to the task, and is stopped with it. */
export async function keepTaskScope<Result>(work: () => Promise<Result>): Promise<Result> {
  holds++;
  try {
    return await work();
  } finally {
    letGo();
  }
}

/** Begins work that goes on when the task has ended that it is begun in: it belongs to none. */
export function runOutsideTask<Result>(work: () => Result): Result {
  return scopes.exit(work);
}

/** The task that this code belongs to; undefined outside of any. */
export function currentTask(): TaskScope | undefined {
  return scopes.getStore();
}

/** Work that requests wait for: when the last has left, or it has ended, what still runs of it is stopped. */
export class SharedTask<Result> {
  readonly #stop = new Stop();
  readonly #result: Promise<Result>;
  readonly #limit: number;
  #waiting = 0;

  /** @param limit seconds that a request waits at most */
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
        // GraphQL may answer with an error while other fields are being read: their statements would go on for nobody.
        this.#stop.abort(ended);
        letGo();
      });
    this.#result.catch(() => {});
  }

  get isStopped(): boolean {
    return this.#stop.aborted;
  }

  onEnd(callback: () => void): void {
    this.#result.then(callback, callback);
  }

  /** @throws HttpError 503 when the caller has left, the time is over, or the database fails */
  wait({ signal }: Pick<Caller, 'signal'>): Promise<Result> {
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

// Tasks: work with a time limit that requests share, cancelled when all of them have disconnected.
import { AsyncLocalStorage } from 'node:async_hooks';
import { HttpError, timedOut } from '../errors.ts';
import type { Origin, StopSignal } from './connection/lane.ts';
import { httpErrorFor } from './errors.ts';
import type { DependencyTracker, Source } from './read.ts';

/** A request that waits for a task. Its signal may be created lazily. */
export interface Caller {
  readonly signal: AbortSignal;
  /** Charged for the work: connections and slots are given to senders in turn. */
  readonly sender: string;
}

/**
 * Creates a task. Its work begins later, and not before `after` has ended.
 * @param fields that it executes at most
 */
export type StartTask = <Result>(
  work: () => Promise<Result>,
  sender: string,
  after?: Promise<unknown>,
  fields?: number,
) => SharedTask<Result>;

export interface TaskScope extends Origin {
  readonly signal: StopSignal;
  /** Whether one of its statements has used the lane of expensive statements. */
  isExpensive: boolean;
  /** Fields that are executed for each of its objects. */
  fieldsPerObject: number;
  /** Whether it executes more fields than a page of a list has. */
  isLarge: boolean;
  /** Parts of it that wait for their turn on the processor. */
  waitingParts: number;
  /** Identities of the servers that it has read from. */
  readonly servers: Set<string>;
  /** How its reads through Prisma are sent and tracked; undefined: to the primary, untracked. */
  reads?: Reads;
  /** Whether a lane has rejected it: its response is delayed, after its slot is released. */
  isRefused: boolean;
}

export interface Reads {
  readonly source: Source;
  readonly tracker?: DependencyTracker | undefined;
}

/** Error of statements that are still running when their task ends. */
const ended = timedOut();

const scopes = new AsyncLocalStorage<TaskScope>();
/** Reference count of `scopes`: running tasks, and reads of tasks that may have ended before. */
let users = 0;

function releaseScopes(): void {
  users--;
  if (users > 0) return;
  // Deferred until all microtasks and ticks are done: loaders send their statements in a tick.
  setImmediate(() => {
    // An enabled AsyncLocalStorage makes every promise of the process slower, those of cached answers too.
    if (users === 0) scopes.disable();
  });
}

/** Keeps the scope of a task during work that may outlast it: what follows is still cancelled with the task. */
export function keepTaskScope<Result>(work: () => Promise<Result>): Promise<Result> {
  const working = work();
  users++;
  working.then(releaseScopes, releaseScopes);
  return working;
}

function createScope(sender: string, signal: StopSignal, reads?: Reads): TaskScope {
  return {
    signal,
    sender,
    isExpensive: false,
    fieldsPerObject: 20,
    isLarge: false,
    waitingParts: 0,
    isRefused: false,
    servers: new Set(),
    ...(reads && { reads }),
  };
}

/** Runs work that belongs to no request, but whose reads through Prisma go to this source. */
export function readFrom<Result>(source: Source, work: () => Promise<Result>): Promise<Result> {
  return keepTaskScope(() =>
    scopes.run(createScope('gateway', new AbortController().signal, { source }), work),
  );
}

/** The reads of the current task, if there is one, from now on. */
export function setReads(reads: Reads): void {
  const task = currentTask();
  if (task) task.reads = reads;
}

/** Starts work that belongs to no task, and continues when the current one has ended. */
export function runOutsideTask<Result>(work: () => Result): Result {
  return scopes.exit(work);
}

/** The task that the calling code belongs to; undefined outside of tasks. */
export function currentTask(): TaskScope | undefined {
  return scopes.getStore();
}

/** A light AbortController with its signal: those of Node.js take a fifth of the time of executing a query from rows. */
class Stop implements StopSignal {
  aborted = false;
  reason!: Error;
  readonly #listeners = new Set<() => void>();

  abort(reason: Error): void {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason;
    for (const listener of this.#listeners) {
      try {
        listener();
      } catch (error) {
        // As an AbortSignal does: the others hear too, and the error is uncaught.
        queueMicrotask(() => {
          throw error;
        });
      }
    }
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

/** Work that requests wait for. When the last one has left, or the work has ended, running statements are cancelled. */
export class SharedTask<Result> {
  readonly #stop = new Stop();
  readonly #result: Promise<Result>;
  readonly #limit: number;
  #waiting = 0;

  /** @param limit most milliseconds that a request waits */
  constructor(limit: number, work: (scope: TaskScope) => Promise<Result>, sender: string) {
    const scope = createScope(sender, this.#stop);
    this.#limit = limit;
    users++;
    const end = () => {
      // GraphQL may return an error while other fields are still being read: their statements are cancelled.
      this.#stop.abort(ended);
      releaseScopes();
    };
    this.#result = scopes
      .run(scope, () => work(scope))
      .then(
        (result) => {
          end();
          return result;
        },
        (error) => {
          end();
          throw httpErrorFor(error) ?? error;
        },
      );
    this.#result.catch(() => {});
  }

  get isStopped(): boolean {
    return this.#stop.aborted;
  }

  onEnd(callback: () => void): void {
    this.#result.then(callback, callback);
  }

  /** @throws HttpError 503 when the caller has disconnected, the time limit is exceeded, or the database fails */
  wait({ signal }: Pick<Caller, 'signal'>): Promise<Result> {
    this.#waiting++;
    return new Promise((settle, reject) => {
      const leave = () => {
        release();
        const error = signal.reason instanceof HttpError ? signal.reason : timedOut();
        reject(error);
        this.#waiting--;
        if (this.#waiting === 0) this.#stop.abort(error);
      };
      const timer = setTimeout(leave, this.#limit);
      signal.addEventListener('abort', leave, { once: true });
      const release = () => {
        clearTimeout(timer);
        signal.removeEventListener('abort', leave);
      };
      this.#result.then(
        (result) => {
          release();
          settle(result);
        },
        (error) => {
          release();
          reject(error);
        },
      );
      // A client may disconnect before the task is created, such as during a probe of the cache.
      if (signal.aborted) leave();
    });
  }
}

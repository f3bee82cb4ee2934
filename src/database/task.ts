// Work that several requests wait for: time limit, stopped when all have left.
import { AsyncLocalStorage } from 'node:async_hooks';
import { timedOut } from '../errors.ts';
import { httpErrorFor } from './errors.ts';

/** Who waits for a result: a request, say. Its signal may be made when it is first read. */
export interface Waiter {
  /** Aborted when the waiter has left. */
  readonly signal: AbortSignal;
}

/**
 * Makes a task. The work never begins before this has returned.
 * @param after what must have ended before the work begins
 */
export type StartTask = <Result>(
  work: () => Promise<Result>,
  after?: Promise<unknown>,
) => SharedTask<Result>;

const signals = new AsyncLocalStorage<AbortSignal>();
let running = 0;

/** Aborted when the task that this code belongs to has been stopped; undefined outside of any. */
export function currentSignal(): AbortSignal | undefined {
  return signals.getStore();
}

/**
 * A task that one or more requests wait for. It is stopped when the last of them has left or has
 * waited too long: the connection it uses is cut, and the database drops the statement.
 */
export class SharedTask<Result> {
  readonly #stop = new AbortController();
  readonly #result: Promise<Result>;
  readonly #limit: number;
  #waiting = 0;

  /** @param limit seconds that a request waits at most */
  constructor(limit: number, work: (signal: AbortSignal) => Promise<Result>) {
    this.#limit = limit;
    running++;
    this.#result = signals
      .run(this.#stop.signal, () => work(this.#stop.signal))
      .catch((error) => {
        throw httpErrorFor(error) ?? error;
      })
      .finally(() => {
        running--;
        // An AsyncLocalStorage in use makes every promise of the process slower, those of cached
        // answers too.
        if (running === 0) signals.disable();
      });
    // Whoever waited may have left.
    this.#result.catch(() => {});
  }

  /** Whether nobody may wait for it any more. */
  get isStopped(): boolean {
    return this.#stop.signal.aborted;
  }

  /** Calls back when it has ended, however that went. */
  onEnd(callback: () => void): void {
    this.#result.then(callback, callback);
  }

  /**
   * The result, for one more request.
   * @throws HttpError 503 when the waiter has left, the time is over, or the database fails
   */
  wait({ signal }: Waiter): Promise<Result> {
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

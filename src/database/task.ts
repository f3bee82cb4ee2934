import { AsyncLocalStorage } from 'node:async_hooks';
import { timedOut } from '../errors.ts';
import { httpErrorFor } from './errors.ts';

/** The response that somebody waits for: it closes early when they leave. */
export interface Waiter {
  readonly signal: AbortSignal;
}

export type StartTask = <Result>(work: () => Promise<Result>) => SharedTask<Result>;

const signals = new AsyncLocalStorage<AbortSignal>();
let running = 0;

/** Aborted when the work that this code belongs to has been stopped; undefined outside of any. */
export function currentSignal(): AbortSignal | undefined {
  return signals.getStore();
}

/**
 * Work that one or more requests wait for. It is stopped when the last of them has left or has
 * waited too long: the connection it uses is cut, and the database drops the statement.
 */
export class SharedTask<Result> {
  readonly #stop = new AbortController();
  readonly #result: Promise<Result>;
  readonly #limit: number;
  #waiting = 0;

  /** @param limit seconds that a request waits at most */
  constructor(limit: number, work: () => Promise<Result>) {
    this.#limit = limit;
    running++;
    this.#result = signals
      .run(this.#stop.signal, work)
      .catch((error) => {
        throw httpErrorFor(error) ?? error;
      })
      .finally(() => {
        running--;
        // In use, it makes every promise of the process dearer, those of cached answers too.
        if (running === 0) signals.disable();
      });
    // Whoever waited may have left.
    this.#result.catch(() => {});
  }

  /** Whether nobody may join any more. */
  get isStopped(): boolean {
    return this.#stop.signal.aborted;
  }

  /**
   * The result, for one more request.
   * @throws HttpError 503 when the time is over, or the database fails
   */
  wait({ signal }: Waiter): Promise<Result> {
    this.#waiting++;
    return new Promise((settle, reject) => {
      const leave = () => {
        release();
        const refusal = timedOut();
        reject(refusal);
        this.#waiting--;
        if (this.#waiting === 0) this.#stop.abort(refusal);
      };
      const timer = setTimeout(leave, this.#limit * 1000);
      if (signal.aborted) leave();
      else signal.addEventListener('abort', leave, { once: true });
      const release = () => {
        clearTimeout(timer);
        signal.removeEventListener('abort', leave);
      };
      this.#result.finally(release).then(settle, reject);
    });
  }
}

// Concurrency limit with a fair queue and load shedding (CoDel): requests run, wait for a slot, or are refused (503).
import { setTimeout as sleep } from 'node:timers/promises';
import { FairQueue, type Origin } from '../database/fair-queue.ts';
import type { StopSignal } from '../database/task.ts';
import { SharedTask, type StartTask, type TaskScope } from '../database/task.ts';
import { overloaded } from '../errors.ts';

interface Waiting extends Origin {
  readonly signal: StopSignal;
  /** Whether the work was refused: then its end is delayed, after its slot is released. */
  readonly isRefused: boolean;
}

/** Size of a burst that may be queued, in multiples of the limit. */
const burst = 8;
/** Weight of the moving average of durations: 1 / 20. */
const averaged = 20;

/**
 * A fair queue that tells a burst from an overload, as CoDel does: an overload is a queue that does not drain. Since it
 * was last empty, one burst is admitted; from then on half as many may wait as may run, so that an answer takes one and
 * a half times its usual time. The sender with the most waiting requests is refused first. Work that needs no
 * database, such as a cached answer, is not limited.
 * @see https://www.rfc-editor.org/rfc/rfc8289 (CoDel)
 */
export class ConcurrencyLimit {
  running = 0;
  readonly #queue = new FairQueue<{ begin(): void; refuse(): void }>();
  readonly #refusals = new Refusals(750, 500);
  /** For documents that were parsed or even started, which takes three times as long. */
  readonly #lateRefusals = new Refusals(250, 2000);
  /** Requests queued since the queue was last empty. */
  #queued = 0;
  /** Moving average of the milliseconds that work takes. */
  #usual = 0;
  #lastChange = 0;

  /** @param timeout milliseconds that a request may wait and run together */
  constructor(
    private readonly max: number,
    private readonly timeout: number,
  ) {}

  get waiting(): number {
    return this.#queue.size;
  }

  /** @throws HttpError 503 as soon as waiting would exceed the timeout */
  async run<Result>(work: () => Promise<Result>, request: Waiting): Promise<Result> {
    const { signal } = request;
    signal.throwIfAborted();
    await this.#acquire(request);
    if (signal.aborted) {
      // Aborted in the same tick: work that never began has no duration to average.
      this.#release();
      throw signal.reason;
    }
    const begun = performance.now();
    this.#lastChange = begun;
    try {
      return await work();
    } finally {
      this.#lastChange = performance.now();
      if (!request.isRefused) this.#usual += (this.#lastChange - begun - this.#usual) / averaged;
      this.#release();
      if (request.isRefused) await this.#lateRefusals.delay();
    }
  }

  async #acquire(request: Waiting): Promise<void> {
    if (this.running < this.max) {
      this.running += 1;
      // Before the first of a burst runs: after hours without work, `lastChange` is old.
      this.#lastChange = performance.now();
      return;
    }
    if (this.#isOverloaded()) {
      const evicted = this.#queue.evictFor(request);
      if (!evicted) return this.#refusals.refuse();
      evicted.refuse();
    }
    this.#queued += 1;
    await this.#wait(request);
  }

  #isOverloaded(): boolean {
    const { max } = this;
    const { size } = this.#queue;
    if (this.#queued >= burst * max && size >= max / 2) return true;
    // While nothing ends, the database hangs, and the average says nothing.
    const oneTurn = Math.max(this.#usual, performance.now() - this.#lastChange);
    return (size / max + 1) * oneTurn > this.timeout;
  }

  #wait(request: Waiting): Promise<void> {
    const { signal } = request;
    return new Promise<void>((settle, reject) => {
      const leave = () => {
        signal.removeEventListener('abort', onAbort);
        this.#queue.remove(request, turn);
        if (this.#queue.size === 0) this.#queued = 0;
      };
      const onAbort = () => {
        leave();
        reject(signal.reason);
      };
      const turn = {
        begin() {
          leave();
          settle();
        },
        refuse: () => {
          leave();
          this.#refusals.refuse().catch(reject);
        },
      };
      signal.addEventListener('abort', onAbort, { once: true });
      this.#queue.add(request, turn);
    });
  }

  #release(): void {
    const next = this.#queue.next();
    // The slot is passed on, so that a new request cannot overtake the queue.
    if (next) next.begin();
    else this.running -= 1;
  }
}

/** @param checkServers throws when a statement of the task ran on a server that is no longer the primary */
export function createTaskStarter(
  limit: ConcurrencyLimit,
  timeout: number,
  checkServers: (scope: TaskScope) => void,
): StartTask {
  return (work, sender, after) => {
    const limited = async (scope: TaskScope) => {
      await after;
      const result = await limit.run(work, scope);
      checkServers(scope);
      return result;
    };
    return new SharedTask(timeout, limited, sender);
  };
}

/**
 * Backpressure: the more refusals are pending, the longer each is delayed, since clients may retry at once. Without
 * it, 1,280 clients of which 128 were admitted made an answer take 1,200 ms instead of 8.
 */
class Refusals {
  #pending = 0;

  /**
   * @param rate refusals per second, low enough to leave most of the processor for work
   * @param maxDelay milliseconds of delay at most
   */
  constructor(
    private readonly rate: number,
    private readonly maxDelay: number,
  ) {}

  async delay(): Promise<void> {
    this.#pending += 1;
    await sleep(Math.min((this.#pending * 1000) / this.rate, this.maxDelay));
    this.#pending -= 1;
  }

  async refuse(): Promise<never> {
    await this.delay();
    throw overloaded();
  }
}

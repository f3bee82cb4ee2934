// How much work is done at a time, who waits for a turn, and who is refused.
import { setTimeout as sleep } from 'node:timers/promises';
import { FairQueue, type Origin } from '../database/fair-queue.ts';
import type { StopSignal } from '../database/task.ts';
import { SharedTask, type StartTask, type TaskScope } from '../database/task.ts';
import { overloaded } from '../errors.ts';

/** Bounds the work that is done at a time. What needs none, such as a cached answer, passes by. */
export type ConcurrencyLimit = ReturnType<typeof createConcurrencyLimit>;

interface Waiting extends Origin {
  readonly signal: StopSignal;
  /** Whether the work was refused: then the end of it is delayed, outside the limit. */
  readonly isRefused: boolean;
}

/** How many times the work that is done at a time a burst may bring to the queue. */
const burst = 8;
const averaged = 20;

/**
 * A queue that tells a burst from an overload (as in controlled delay, CoDel): an overload is a queue that does not
 * get empty. Since it was last empty, one burst is let in; from then on half as many may wait as are worked on, so
 * that an answer takes one and a half times its usual time. The sender with the most waiting is refused first.
 * @param timeout milliseconds that work may take together with waiting for it
 */
export function createConcurrencyLimit(max: number, timeout: number) {
  const queue = new FairQueue<{ begin(): void; refuse(): void }>();
  let running = 0;
  const refusals = new Refusals(750, 500);
  // Of documents that were parsed, or even begun, which takes three times as long.
  const lateRefusals = new Refusals(250, 2000);
  /** Work that had to wait since the queue was last empty. */
  let queued = 0;
  let usual = 0;
  let lastChange = 0;

  const isInVain = () => {
    if (queued >= burst * max && queue.size >= max / 2) return true;
    // When nothing ends, the database hangs, and what was usual says nothing.
    const oneTurn = Math.max(usual, performance.now() - lastChange);
    return (queue.size / max + 1) * oneTurn > timeout;
  };

  const takeTurn = async (request: Waiting): Promise<void> => {
    const { signal } = request;
    if (running < max) {
      running += 1;
      // At once: many may come before the first of them goes on, after hours without any work.
      lastChange = performance.now();
      return;
    }
    if (isInVain()) {
      const evicted = queue.evictFor(request);
      if (!evicted) return refusals.refuse();
      evicted.refuse();
    }
    queued += 1;
    await new Promise<void>((settle, reject) => {
      const leave = () => {
        signal.removeEventListener('abort', onAbort);
        queue.remove(request, turn);
        if (queue.size === 0) queued = 0;
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
        refuse() {
          leave();
          refusals.refuse().catch(reject);
        },
      };
      signal.addEventListener('abort', onAbort, { once: true });
      queue.add(request, turn);
    });
  };

  const endTurn = () => {
    const next = queue.next();
    // Handed on, so that a request that has just come is not faster.
    if (next) next.begin();
    else running -= 1;
  };

  return {
    get running() {
      return running;
    },
    get waiting() {
      return queue.size;
    },
    /** @throws HttpError 503 as soon as waiting would be in vain */
    async run<Result>(work: () => Promise<Result>, request: Waiting): Promise<Result> {
      const { signal } = request;
      signal.throwIfAborted();
      await takeTurn(request);
      if (signal.aborted) {
        // It has left as its turn came: what never began says nothing about how long work takes.
        endTurn();
        throw signal.reason;
      }
      const begun = performance.now();
      lastChange = begun;
      try {
        return await work();
      } finally {
        lastChange = performance.now();
        if (!request.isRefused) usual += (lastChange - begun - usual) / averaged;
        endTurn();
        if (request.isRefused) await lateRefusals.delay();
      }
    },
  };
}

/** @param checkServers throws when statements of a task ran on a server that is not the current one */
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
 * Backpressure: the more are being refused, the later each is, since clients may retry at once. Without it, 1,280
 * clients of which 128 were let in made an answer take 1,200 ms instead of 8.
 */
class Refusals {
  #underWay = 0;

  /**
   * @param rate refusals per second that leave most of the time for work
   * @param maxDelay milliseconds that a client waits at most to be refused
   */
  constructor(
    private readonly rate: number,
    private readonly maxDelay: number,
  ) {}

  async delay(): Promise<void> {
    this.#underWay += 1;
    await sleep(Math.min((this.#underWay * 1000) / this.rate, this.maxDelay));
    this.#underWay -= 1;
  }

  async refuse(): Promise<never> {
    await this.delay();
    throw overloaded();
  }
}

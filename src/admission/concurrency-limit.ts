// How much work is done at a time, who waits for a turn, and who is refused.
import { FairQueue, type Origin } from '../database/fair-queue.ts';
import type { StopSignal } from '../database/stop-signal.ts';
import { afterWork, beforeWork, Refusals } from './refusals.ts';

/** Bounds the work that is done at a time. Whatever needs none, such as a cached answer, passes by. */
export interface ConcurrencyLimit {
  /** Work that is being done. */
  readonly running: number;
  /** Work that waits for its turn. */
  readonly waiting: number;
  /**
   * Does the work, at once or when its turn has come.
   * @param request its sender waits in turn with others; its signal is aborted when all of its clients have
   *   left: then it leaves the queue
   * @throws HttpError 503 as soon as waiting would be in vain
   */
  run<Result>(work: () => Promise<Result>, request: Waiting): Promise<Result>;
}

interface Waiting extends Origin {
  readonly signal: StopSignal;
  /** Whether the work was refused: then the end of it is delayed, in no place. */
  readonly isRefused: boolean;
}

/** How many times the work that is done at a time a burst may bring to the queue. */
const burst = 8;
/** Pieces of work that the usual time is that of, about. */
const averaged = 20;

/**
 * A queue that tells a burst from an overload (as in controlled delay, CoDel): an overload is a
 * queue that does not get empty. Since it was last empty, a number of requests that one burst may
 * have is let in; from then on only half as many may wait as are worked on, so that an answer takes
 * about one and a half times its usual time (and what refusing the others takes), however many ask.
 * Senders are served in turn, and the one with the most waiting requests is refused first.
 * @param max work that is done at a time
 * @param timeout milliseconds that work may take together with waiting for it
 */
export function createConcurrencyLimit(max: number, timeout: number): ConcurrencyLimit {
  const queue = new FairQueue<{ begin(): void; refuse(): void }>();
  let running = 0;
  const refusals = new Refusals(beforeWork);
  const lateRefusals = new Refusals(afterWork);
  /** Work that had to wait since the queue was last empty. */
  let queued = 0;
  /** Milliseconds that work takes: a moving average. */
  let usual = 0;
  /** When work last began or ended. */
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
    // The turn is handed on, so that nobody who has just come is faster.
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
    async run(work, request) {
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

// Concurrency limit with a fair queue and load shedding (CoDel): requests run, wait for a slot, or are refused (503).
import { setTimeout as sleep } from 'node:timers/promises';
import { Lane } from '../database/connection/lane.ts';
import { SharedTask, type StartTask, type TaskScope } from '../database/task.ts';

/** When its work was refused, the end is delayed, after its slot is released. */
type Request = Pick<TaskScope, 'isRefused' | 'sender' | 'signal'>;

/** Size of a burst that may be queued, in multiples of the limit. */
const burst = 8;
/** Fields from which an execution is heavy: a page of a hundred outfits has two thousand. */
const heavy = 2_500;
/** Heavy executions at a time: each of them keeps its rows and its result in memory, and connections busy. */
const heavyLimits = { slots: 4, perSender: 2 };
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
  readonly #lane: Lane;
  readonly #heavy = new Lane(heavyLimits);
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
  ) {
    this.#lane = new Lane({ slots: max }, () => this.#isOverloaded());
    this.#heavy.limitWaiting(max);
  }

  get running(): number {
    return this.#lane.running;
  }

  get waiting(): number {
    return this.#lane.waiting;
  }

  /** @throws HttpError 503 as soon as waiting would exceed the timeout */
  async run<Result>(work: () => Promise<Result>, request: Request): Promise<Result> {
    const { signal } = request;
    // Without a promise where there is none to wait for, here and below: each costs as much as some fields.
    const turn = this.#acquire(request);
    if (turn) await turn;
    if (signal.aborted) {
      // Aborted in the same tick: work that never began has no duration to average.
      this.#lane.leave(request);
      throw signal.reason;
    }
    const begun = performance.now();
    this.#lastChange = begun;
    try {
      return await work();
    } finally {
      this.#lastChange = performance.now();
      if (!request.isRefused) this.#usual += (this.#lastChange - begun - this.#usual) / averaged;
      this.#lane.leave(request);
      if (request.isRefused) await this.#lateRefusals.delay();
    }
  }

  /** Waits for the turn of a heavy execution, without a slot. @returns what ends it */
  async enterHeavy(request: Request): Promise<() => void> {
    await this.#heavy.enter(request, request.signal);
    return () => this.#heavy.leave(request);
  }

  #acquire(request: Request): Promise<void> | undefined {
    const { signal } = request;
    const { waiting } = this;
    if (waiting === 0) this.#queued = 0;
    const turn = this.#lane.enter(request, signal);
    // Before the first of a burst runs: after hours without work, `lastChange` is old.
    if (!turn) this.#lastChange = performance.now();
    if (this.waiting > waiting) this.#queued += 1;
    return turn?.catch(async (error) => {
      if (!signal.aborted) await this.#refusals.delay();
      throw error;
    });
  }

  #isOverloaded(): boolean {
    const { max, waiting: size } = this;
    if (this.#queued >= burst * max && size >= max / 2) return true;
    // While nothing ends, the database hangs, and the average says nothing.
    const oneTurn = Math.max(this.#usual, performance.now() - this.#lastChange);
    return (size / max + 1) * oneTurn > this.timeout;
  }
}

/** @param checkServers throws when the database is not filled yet, or a statement of the task ran on a server that is no longer the primary */
export function createTaskStarter(
  limit: ConcurrencyLimit,
  timeout: number,
  checkServers: (scope: TaskScope) => void,
): StartTask {
  return (work, sender, after, fields = 0) => {
    const limited = async (scope: TaskScope) => {
      // Also where it is undefined: the work begins when its task has been returned.
      await after;
      checkServers(scope);
      const leave = fields >= heavy && (await limit.enterHeavy(scope));
      try {
        const result = await limit.run(work, scope);
        checkServers(scope);
        return result;
      } finally {
        if (leave) leave();
      }
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
}

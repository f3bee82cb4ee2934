// Backpressure for refused requests: a refusal is delayed, so that clients that retry at once do not take all time.
import { setTimeout as sleep } from 'node:timers/promises';
import { overloaded } from '../errors.ts';

interface Pace {
  /** Refusals per second that leave most of the time for work. */
  readonly rate: number;
  /** Milliseconds that a client waits at most to be refused. */
  readonly maxDelay: number;
}

/** Of requests of which no more is known than who sent them. */
export const beforeWork: Pace = { rate: 750, maxDelay: 500 };
/** Of documents that were parsed, or even begun, which takes three times as long. */
export const afterWork: Pace = { rate: 250, maxDelay: 2000 };

/**
 * Refuses, later the more are being refused. With 1,280 clients that were refused at once, of which 128
 * were let in, an answer took 1,200 ms instead of 8.
 */
export class Refusals {
  readonly #pace: Pace;
  #underWay = 0;

  constructor(pace: Pace) {
    this.#pace = pace;
  }

  /** Waits for as long as a refusal is delayed. */
  async delay(): Promise<void> {
    this.#underWay += 1;
    const { rate, maxDelay } = this.#pace;
    await sleep(Math.min((this.#underWay * 1000) / rate, maxDelay));
    this.#underWay -= 1;
  }

  /** @throws HttpError 503, after the delay */
  async refuse(): Promise<never> {
    await this.delay();
    throw overloaded();
  }
}

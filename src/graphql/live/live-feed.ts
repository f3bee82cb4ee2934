// A feed: one operation with all its subscribers, executed for all of them at once, one execution at a time.
import type { OperationCaller } from '../../admission/admission.ts';
import type { Viewer } from '../../admission/viewer.ts';
import { type ChangeLog, type Dependencies, sizeOf } from '../../database/changes/change-log.ts';
import { HttpError } from '../../errors.ts';
import type { Operation } from '../operations.ts';
import type { EncodedAnswer, Execution, Reading } from '../run.ts';

export interface LiveExecution extends Omit<Execution<EncodedAnswer>, 'operation'> {
  readonly operation: () => Operation;
}

export interface Subscriber {
  readonly viewer: Viewer | undefined;
  readonly sender: string;
  /** @param kept bytes that its feed keeps */
  readonly onAnswer: (answer: EncodedAnswer, kept: number) => void;
  readonly onFailure: (error: unknown) => void;
  hasAnswer: boolean;
  /** Number of its first reading: one that began before it subscribed may lack a commit that it must see. */
  firstReading: number;
}

/** Milliseconds before a failed reading is retried. */
const retryDelay = 1000;

export type Read = (
  execution: Execution<EncodedAnswer>,
  caller: Pick<OperationCaller, 'sender' | 'signal' | 'viewer'>,
) => Promise<Reading<EncodedAnswer>>;

/** A reading begins when the previous one has ended, and is sent to those who subscribed before it began. */
export class LiveFeed {
  readonly subscribers = new Set<Subscriber>();
  readonly #abort = new AbortController();
  #readings = 0;
  /** A version of the database before the last reading; undefined: there was none. */
  #version: number | undefined;
  #dependencies: Dependencies | undefined;
  #isReading = false;
  /** Whether to read even if nothing was invalidated: for a new subscriber, say. */
  #mustRead = true;
  #notBefore = 0;

  /**
   * @param isShared whether its answers are the same for every viewer
   * @param viewer of a feed that is not shared; undefined: anonymous
   * @param expensivePause throttle: milliseconds after an expensive reading before the next one
   */
  constructor(
    readonly execution: LiveExecution,
    readonly isShared: boolean,
    private readonly viewer: Viewer | undefined,
    private readonly changes: Pick<ChangeLog, 'isInvalidated' | 'current'>,
    private readonly expensivePause: number,
  ) {}

  get isDue(): boolean {
    return !this.#isReading && this.delay === 0 && (this.#mustRead || this.#isInvalidated());
  }

  get delay(): number {
    return Math.max(this.#notBefore - performance.now(), 0);
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** The sender charged for the next reading: the one with the least load, so that a busy one does not delay it. */
  findPayer(loadOf: (sender: string) => number): string {
    let payer = '';
    let least = Number.POSITIVE_INFINITY;
    for (const { sender } of this.subscribers) {
      const load = loadOf(sender);
      if (load < least) [payer, least] = [sender, load];
      if (load === 0) break;
    }
    return payer;
  }

  add(subscriber: Subscriber): void {
    subscriber.firstReading = this.#readings + 1;
    this.subscribers.add(subscriber);
    this.#mustRead = true;
  }

  remove(subscriber: Subscriber): void {
    this.subscribers.delete(subscriber);
    if (this.subscribers.size === 0) this.#abort.abort();
  }

  markUnknown(): void {
    this.#mustRead = true;
  }

  #isInvalidated(): boolean {
    return (
      this.#version === undefined || this.changes.isInvalidated(this.#dependencies, this.#version)
    );
  }

  /** @throws what the reading fails with: subscribers keep their last answer */
  async read(read: Read, sender: string): Promise<void> {
    // Before the reading, so that commits during it invalidate the answer.
    const version = this.changes.current;
    this.#isReading = true;
    this.#mustRead = false;
    this.#readings += 1;
    const number = this.#readings;
    try {
      const viewer = this.isShared ? undefined : this.viewer;
      const caller = { viewer, signal: this.signal, sender };
      const reading = await read(
        { ...this.execution, operation: this.execution.operation() },
        caller,
      );
      const { answer, dependencies, isExpensive } = reading;
      if (this.isShared && !answer.isShared) throw new PersonalAnswerError();
      this.#version = version;
      this.#dependencies = dependencies;
      if (isExpensive) this.#pause(this.expensivePause);
      const kept = sizeOf(dependencies);
      for (const subscriber of this.subscribers) {
        if (subscriber.firstReading > number) continue;
        subscriber.hasAnswer = true;
        subscriber.onAnswer(answer, kept);
      }
    } catch (error) {
      this.#mustRead = true;
      // After a timeout too, although that took as long itself.
      if (error instanceof HttpError) this.#pause(retryDelay);
      throw error;
    } finally {
      this.#isReading = false;
    }
  }

  #pause(milliseconds: number): void {
    this.#notBefore = performance.now() + milliseconds;
  }

  fail(error: unknown): void {
    for (const subscriber of this.subscribers) {
      if (!subscriber.hasAnswer) subscriber.onFailure(error);
    }
  }

  /** Does not retry until a commit follows `version`, the version before the failed reading. */
  waitForCommit(version: number): void {
    this.#version = version;
    this.#dependencies = undefined;
    this.#mustRead = false;
  }
}

export class PersonalAnswerError extends Error {}

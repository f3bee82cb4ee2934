// A feed: one operation with all its readers, executed for all of them at once, one execution at a time.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Viewer } from '../../admission/viewer.ts';
import { type ChangeLog, type Dependencies, sizeOf } from '../../database/changes/change-log.ts';
import { httpErrorFor } from '../../database/errors.ts';
import type { Operation } from '../operations.ts';
import type { EncodedAnswer, Execution, Reading } from '../run.ts';
import type { LiveStream } from './live-stream.ts';

export interface LiveExecution extends Omit<Execution<EncodedAnswer>, 'operation'> {
  readonly operation: () => Operation;
}

/** Milliseconds before a failed reading is retried. */
const retryDelay = 1000;

type Read = (execution: Execution<EncodedAnswer>) => Promise<Reading<EncodedAnswer>>;

/** A reading begins when the previous one has ended, and is sent to those who came before it began. */
export class LiveFeed {
  readonly streams = new Set<LiveStream>();
  readonly #abort = new AbortController();
  #readings = 0;
  /** A version of the database before the last reading; undefined: it failed. */
  #version: number | undefined;
  #dependencies: Dependencies | undefined;
  /** Milliseconds before the next reading. */
  #pause = 0;
  #isDue = false;
  /** While it waits until it is due. */
  #wake: (() => void) | undefined;

  /**
   * @param isShared whether its answers are the same for every viewer
   * @param viewer of a feed that is not shared; undefined: anonymous
   * @param expensivePause throttle: milliseconds after an expensive reading before the next one
   */
  constructor(
    readonly key: string,
    readonly execution: LiveExecution,
    readonly isShared: boolean,
    readonly viewer: Viewer | undefined,
    private readonly changes: Pick<ChangeLog, 'isInvalidated' | 'current'>,
    private readonly expensivePause: number,
  ) {}

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** The sender charged for the next reading: the one with the least load, so that a busy one does not delay it. */
  findPayer(loadOf: (sender: string) => number): string {
    let payer = '';
    let least = Number.POSITIVE_INFINITY;
    for (const { options } of this.streams) {
      const { sender } = options;
      const load = loadOf(sender);
      if (load < least) [payer, least] = [sender, load];
      if (load === 0) break;
    }
    return payer;
  }

  add(stream: LiveStream): void {
    stream.firstReading = this.#readings + 1;
    this.streams.add(stream);
    this.#setDue();
  }

  remove(stream: LiveStream): void {
    this.streams.delete(stream);
    if (this.streams.size > 0) return;
    this.#abort.abort();
    this.#setDue();
  }

  /** After a poll; one that is being read compares at its end. @param isKnown false: anything may have changed */
  check(isKnown: boolean): void {
    if (!this.#wake) return;
    const isCurrent =
      isKnown &&
      this.#version !== undefined &&
      !this.changes.isInvalidated(this.#dependencies, this.#version);
    if (!isCurrent) this.#setDue();
  }

  #setDue(): void {
    this.#isDue = true;
    this.#wake?.();
  }

  /** Waits until it is to be read; false: all its readers have left. */
  async untilDue(): Promise<boolean> {
    const { signal } = this;
    if (this.#pause > 0) await sleep(this.#pause, undefined, { signal }).catch(() => {});
    if (!this.#isDue) {
      await new Promise<void>((settle) => {
        this.#wake = settle;
      });
      this.#wake = undefined;
    }
    return !signal.aborted;
  }

  /** @throws PersonalAnswerError, and what is unexpected; readers keep their last answer */
  async read(read: Read): Promise<void> {
    // Before the reading, so that commits during it invalidate the answer.
    const version = this.changes.current;
    this.#isDue = false;
    this.#pause = 0;
    this.#readings += 1;
    const number = this.#readings;
    try {
      const operation = this.execution.operation();
      const { answer, dependencies, isExpensive } = await read({ ...this.execution, operation });
      if (this.isShared && !answer.isShared) throw new PersonalAnswerError();
      this.#version = version;
      this.#dependencies = dependencies;
      if (this.changes.isInvalidated(dependencies, version)) this.#setDue();
      if (isExpensive) this.#pause = this.expensivePause;
      const kept = sizeOf(dependencies);
      for (const stream of this.streams) {
        if (stream.firstReading <= number) stream.offer(answer, kept);
      }
    } catch (error) {
      this.#fail(error, version);
    }
  }

  /** @param version before the reading */
  #fail(error: unknown, version: number): void {
    if (error instanceof PersonalAnswerError) throw error;
    for (const stream of this.streams) stream.fail(error);
    const isExpected = httpErrorFor(error) !== undefined;
    this.#dependencies = undefined;
    this.#version = isExpected ? undefined : version;
    // After a timeout too, although that took as long itself.
    if (isExpected) this.#pause = retryDelay;
    // Not retried until a commit follows.
    else throw error;
  }
}

export class PersonalAnswerError extends Error {}

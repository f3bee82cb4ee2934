// One question and all who follow it: read for all of them at once, one reading after the other.
import type { OperationCaller } from '../../admission/admission.ts';
import type { Viewer } from '../../admission/viewer.ts';
import type { ChangeLog, Dependencies } from '../../database/changes/change-log.ts';
import { HttpError } from '../../errors.ts';
import type { Answer } from '../engine/answer-cache.ts';
import type { Question } from '../engine/engine.ts';

export interface LiveAnswer extends Answer {
  readonly events: Buffer;
  readonly isForAll: boolean;
  /** Whether no other answer can follow: the variables do not fit, say. */
  readonly isFinal: boolean;
}

export type LiveQuestion = Question<LiveAnswer>;

export interface Follower {
  readonly viewer: Viewer | undefined;
  readonly sender: string;
  readonly onAnswer: (answer: LiveAnswer) => void;
  readonly onFailure: (error: unknown) => void;
  hasAnswer: boolean;
  /** The reading that is the first for it: one that began before it came may lack what it must see. */
  firstReading: number;
}

const failurePause = 1000;

export type Read = (
  question: LiveQuestion,
  caller: Pick<OperationCaller, 'sender' | 'signal' | 'viewer'>,
) => Promise<LiveAnswer>;

/** Each reading begins when the one before has ended, and is given to those who came before it began. */
export class LiveFeed {
  readonly followers = new Set<Follower>();
  readonly #left = new AbortController();
  #readings = 0;
  /** A version of the database before the last answer was read; undefined: there is none. */
  #version: number | undefined;
  #dependencies: Dependencies | undefined;
  #isReading = false;
  /** Whether the next reading is needed whatever has changed: a follower came during the last one, say. */
  #mustRead = true;
  #notBefore = 0;

  /**
   * @param isForAll whether it gives what is the same for everyone
   * @param viewer who gets the answers; undefined: those without a token
   * @param expensivePause least milliseconds between an expensive reading and the next one
   */
  constructor(
    readonly question: LiveQuestion,
    readonly isForAll: boolean,
    private readonly viewer: Viewer | undefined,
    private readonly changes: Pick<ChangeLog, 'isInvalidated' | 'current'>,
    private readonly expensivePause: number,
  ) {}

  get isDue(): boolean {
    return !this.#isReading && this.pauseLeft === 0 && (this.#mustRead || this.#isInvalidated());
  }

  get pauseLeft(): number {
    return Math.max(this.#notBefore - performance.now(), 0);
  }

  get left(): AbortSignal {
    return this.#left.signal;
  }

  /** Who is charged for the next reading: the sender with the least load, so that a busy one does not delay it. */
  findPayer(loadOf: (sender: string) => number): string {
    let payer = '';
    let least = Number.POSITIVE_INFINITY;
    for (const { sender } of this.followers) {
      const load = loadOf(sender);
      if (load < least) [payer, least] = [sender, load];
      if (load === 0) break;
    }
    return payer;
  }

  add(follower: Follower): void {
    follower.firstReading = this.#readings + 1;
    this.followers.add(follower);
    this.#mustRead = true;
  }

  remove(follower: Follower): void {
    this.followers.delete(follower);
    if (this.followers.size === 0) this.#left.abort();
  }

  markUnknown(): void {
    this.#mustRead = true;
  }

  #isInvalidated(): boolean {
    return (
      this.#version === undefined || this.changes.isInvalidated(this.#dependencies, this.#version)
    );
  }

  /** @throws what the reading fails with: followers keep the answer that they have */
  async read(read: Read, sender: string): Promise<void> {
    // What is committed during the reading will be known to have come after this.
    const version = this.changes.current;
    this.#isReading = true;
    this.#mustRead = false;
    this.#readings += 1;
    const number = this.#readings;
    try {
      const viewer = this.isForAll ? undefined : this.viewer;
      const caller = { viewer, signal: this.left, sender };
      const answer = await read(this.question, caller);
      if (this.isForAll && !answer.isForAll) throw new PersonalAnswerError();
      this.#version = version;
      this.#dependencies = answer.dependencies;
      if (answer.isExpensive) this.#pause(this.expensivePause);
      for (const follower of this.followers) {
        if (follower.firstReading > number) continue;
        follower.hasAnswer = true;
        follower.onAnswer(answer);
      }
    } catch (error) {
      this.#mustRead = true;
      // Also a reading that was ended by its time limit: that itself took as long as the pause is.
      if (error instanceof HttpError) this.#pause(failurePause);
      throw error;
    } finally {
      this.#isReading = false;
    }
  }

  #pause(milliseconds: number): void {
    this.#notBefore = performance.now() + milliseconds;
  }

  fail(error: unknown): void {
    for (const follower of this.followers) {
      if (!follower.hasAnswer) follower.onFailure(error);
    }
  }

  /** Does not read again until something is committed after `version`, a version before the failed reading. */
  giveUp(version: number): void {
    this.#version = version;
    this.#dependencies = undefined;
    this.#mustRead = false;
  }
}

export class PersonalAnswerError extends Error {}

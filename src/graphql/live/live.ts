// Live answers: state, not events. What is followed is read anew when something touches it.
import { AsyncResource } from 'node:async_hooks';
import type { FastifyBaseLogger } from 'fastify';
import type { Viewer } from '../../admission/viewer.ts';
import type { StateSource } from '../../database/changes/snapshots.ts';
import { Lane } from '../../database/connection/lane.ts';
import { httpErrorFor } from '../../database/errors.ts';
import { timedOut } from '../../errors.ts';
import type { Engine } from '../engine/engine.ts';
import {
  type Follower,
  type LiveAnswer,
  LiveFeed,
  type LiveQuestion,
  PersonalAnswerError,
  type Read,
} from './live-feed.ts';

const interval = 250;
/** Feeds of each kind that are read at a time: together fewer than there are connections. */
const places = { slots: 4, perSender: 2 };

/** Asks the database what was committed, once for all followers, and reads again what that invalidates. */
export class LiveAnswers {
  readonly #feeds = new Map<string, LiveFeed>();
  /** Two lanes: thousands of viewers' own answers do not hold up what is for all, nor it them. */
  readonly #forAll = new Lane(places);
  readonly #own = new Lane(places);
  readonly #waiting = new Set<LiveFeed>();
  /** Feeds that wait or are read, by who is charged. */
  readonly #load = new Map<string, number>();
  /** What is read for all who follow belongs to no request, nor to its trace. */
  readonly #outside = new AsyncResource('LiveAnswers');
  #timer: NodeJS.Timeout | undefined;

  /** @param expensivePause least milliseconds between an expensive reading of a question and its next one */
  constructor(
    private readonly engine: Engine,
    private readonly snapshots: StateSource,
    private readonly log: FastifyBaseLogger,
    private readonly expensivePause: number,
  ) {}

  /**
   * Calls back with the answer, and again with each that may differ from the one before.
   * @param sender who is charged for readings
   * @returns `first` settles with the first answer, or fails as it does; with 503 when the follower has left
   */
  follow(
    question: LiveQuestion,
    viewer: Viewer | undefined,
    sender: string,
    onAnswer: (answer: LiveAnswer) => void,
  ): { readonly first: Promise<void>; leave(): void } {
    let leave = () => {};
    const first = new Promise<void>((settle, reject) => {
      const follower: Follower = {
        viewer,
        sender,
        hasAnswer: false,
        firstReading: 0,
        onAnswer: (answer) => {
          onAnswer(answer);
          settle();
        },
        onFailure: reject,
      };
      this.#join(question, follower, this.engine.isForAll(question.operation, viewer));
      leave = () => {
        reject(timedOut());
        this.#leave(question, follower);
      };
    });
    first.catch(() => {});
    return { first, leave };
  }

  #join(question: LiveQuestion, follower: Follower, isForAll: boolean): void {
    const key = keyOf(question, follower, isForAll);
    const { changes } = this.snapshots;
    const feed =
      this.#feeds.get(key) ??
      new LiveFeed(question, isForAll, follower.viewer, changes, this.expensivePause);
    this.#feeds.set(key, feed);
    feed.add(follower);
    if (feed.isDue) this.#enqueue(feed);
    // Not left to the next look, which does nothing while the database is away.
    else if (feed.pauseLeft > 0)
      setTimeout(() => this.#enqueueAgain(key, feed), feed.pauseLeft + 1);
    this.#timer ??= this.#lookLater();
  }

  #enqueueAgain(key: string, feed: LiveFeed): void {
    if (this.#feeds.get(key) === feed && feed.isDue) this.#enqueue(feed);
  }

  #leave(question: LiveQuestion, follower: Follower): void {
    for (const isForAll of [true, false]) {
      const key = keyOf(question, follower, isForAll);
      const feed = this.#feeds.get(key);
      if (!feed?.followers.has(follower)) continue;
      feed.remove(follower);
      if (feed.followers.size === 0) this.#feeds.delete(key);
    }
    if (this.#feeds.size > 0) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #lookLater(): NodeJS.Timeout {
    return this.#outside.runInAsyncScope(() => setTimeout(() => this.#look(), interval));
  }

  async #look(): Promise<void> {
    const timer = this.#timer;
    try {
      const isKnown = (await this.snapshots.next()) !== undefined;
      for (const feed of this.#feeds.values()) {
        if (!isKnown) feed.markUnknown();
        if (feed.isDue) this.#enqueue(feed);
      }
    } catch {
      // The database is away, which others tell: all keep what they have until it is back.
    }
    // Everyone may have left, and others have come, for whom there is another timer.
    if (this.#timer === timer && this.#feeds.size > 0) {
      this.#timer = this.#lookLater();
    }
  }

  #enqueue(feed: LiveFeed): void {
    if (this.#waiting.has(feed)) return;
    this.#waiting.add(feed);
    this.#outside.runInAsyncScope(() => this.#readInTurn(feed));
  }

  async #readInTurn(feed: LiveFeed): Promise<void> {
    const lane = feed.isForAll ? this.#forAll : this.#own;
    const sender = feed.findPayer((name) => this.#load.get(name) ?? 0);
    const origin = { sender };
    this.#charge(sender, 1);
    try {
      await lane.enter(origin, feed.left);
    } catch {
      this.#waiting.delete(feed);
      this.#charge(sender, -1);
      return;
    }
    this.#waiting.delete(feed);
    try {
      await this.#readOne(feed, sender);
    } finally {
      this.#charge(sender, -1);
      lane.leave(origin);
    }
  }

  #charge(sender: string, change: number): void {
    const load = (this.#load.get(sender) ?? 0) + change;
    if (load > 0) this.#load.set(sender, load);
    else this.#load.delete(sender);
  }

  readonly #ask: Read = (question, caller) =>
    this.engine.answer(question, { ...caller, idempotencyKey: undefined, log: this.log });

  async #readOne(feed: LiveFeed, sender: string): Promise<void> {
    const version = this.snapshots.changes.current;
    try {
      await feed.read(this.#ask, sender);
      if (feed.isDue) this.#enqueue(feed);
    } catch (error) {
      if (error instanceof PersonalAnswerError) return this.#split(feed);
      feed.fail(error);
      if (httpErrorFor(error)) return;
      this.log.error({ err: error }, 'unexpected error');
      feed.giveUp(version);
    }
  }

  #split(feed: LiveFeed): void {
    const { question } = feed;
    for (const follower of [...feed.followers]) {
      this.#leave(question, follower);
      this.#join(question, follower, false);
    }
  }
}

function keyOf({ key }: LiveQuestion, { viewer }: Follower, isForAll: boolean): string {
  return isForAll ? key : `${key} ${viewer ? `user ${viewer.userId}` : 'nobody'}`;
}

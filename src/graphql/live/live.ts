// Live queries, for subscriptions: an answer is sent again when a commit has invalidated it. State, not events.
import { AsyncResource } from 'node:async_hooks';
import type { FastifyBaseLogger } from 'fastify';
import type { Viewer } from '../../admission/viewer.ts';
import type { StateSource } from '../../database/changes/snapshots.ts';
import { Lane } from '../../database/connection/lane.ts';
import { httpErrorFor } from '../../database/errors.ts';
import { timedOut } from '../../errors.ts';
import type { Engine } from '../engine/engine.ts';
import {
  type LiveExecution,
  LiveFeed,
  PersonalAnswerError,
  type Read,
  type Subscriber,
} from './live-feed.ts';

/** Milliseconds between two polls of the database state. */
const pollInterval = 250;
/** Concurrent readings per lane: both lanes together use fewer connections than the pool has. */
const laneLimits = { slots: 4, perSender: 2 };

/** Polls the database state, once for all subscribers, and reads again the feeds that a commit has invalidated. */
export class LiveAnswers {
  readonly #feeds = new Map<string, LiveFeed>();
  /** Two lanes: thousands of personal feeds do not delay shared ones, nor the reverse. */
  readonly #shared = new Lane(laneLimits);
  readonly #personal = new Lane(laneLimits);
  readonly #waiting = new Set<LiveFeed>();
  /** Feeds that wait or are read, by charged sender. */
  readonly #load = new Map<string, number>();
  /** Readings belong to no request, nor to its trace. */
  readonly #outside = new AsyncResource('LiveAnswers');
  #timer: NodeJS.Timeout | undefined;

  /** @param expensivePause throttle: milliseconds after an expensive reading of a feed before the next one */
  constructor(
    private readonly engine: Engine,
    private readonly snapshots: StateSource,
    private readonly log: FastifyBaseLogger,
    private readonly expensivePause: number,
  ) {}

  /**
   * Calls back with the first answer, and again with each that may differ.
   * @param sender charged for readings
   * @returns `first` settles with the first answer, rejects as it does; with 503 after `unsubscribe`
   */
  subscribe(
    execution: LiveExecution,
    viewer: Viewer | undefined,
    sender: string,
    onAnswer: Subscriber['onAnswer'],
  ): { readonly first: Promise<void>; unsubscribe(): void } {
    let unsubscribe = () => {};
    const first = new Promise<void>((settle, reject) => {
      const subscriber: Subscriber = {
        viewer,
        sender,
        hasAnswer: false,
        firstReading: 0,
        onAnswer: (answer, kept) => {
          onAnswer(answer, kept);
          settle();
        },
        onFailure: reject,
      };
      this.#subscribe(execution, subscriber, this.engine.isShared(execution.operation(), viewer));
      unsubscribe = () => {
        reject(timedOut());
        this.#unsubscribe(execution, subscriber);
      };
    });
    first.catch(() => {});
    return { first, unsubscribe };
  }

  #subscribe(execution: LiveExecution, subscriber: Subscriber, isShared: boolean): void {
    const key = keyOf(execution, subscriber, isShared);
    const { changes } = this.snapshots;
    const feed =
      this.#feeds.get(key) ??
      new LiveFeed(execution, isShared, subscriber.viewer, changes, this.expensivePause);
    this.#feeds.set(key, feed);
    feed.add(subscriber);
    if (feed.isDue) this.#enqueue(feed);
    // Not left to the next poll, which does nothing while the database is down.
    else if (feed.delay > 0) setTimeout(() => this.#enqueueDelayed(key, feed), feed.delay + 1);
    this.#timer ??= this.#schedulePoll();
  }

  #enqueueDelayed(key: string, feed: LiveFeed): void {
    if (this.#feeds.get(key) === feed && feed.isDue) this.#enqueue(feed);
  }

  #unsubscribe(execution: LiveExecution, subscriber: Subscriber): void {
    for (const isShared of [true, false]) {
      const key = keyOf(execution, subscriber, isShared);
      const feed = this.#feeds.get(key);
      if (!feed?.subscribers.has(subscriber)) continue;
      feed.remove(subscriber);
      if (feed.subscribers.size === 0) this.#feeds.delete(key);
    }
    if (this.#feeds.size > 0) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #schedulePoll(): NodeJS.Timeout {
    return this.#outside.runInAsyncScope(() => setTimeout(() => this.#poll(), pollInterval));
  }

  async #poll(): Promise<void> {
    const timer = this.#timer;
    try {
      const isKnown = (await this.snapshots.next()) !== undefined;
      for (const feed of this.#feeds.values()) {
        if (!isKnown) feed.markUnknown();
        if (feed.isDue) this.#enqueue(feed);
      }
    } catch {
      // The database is down, which its monitor logs: subscribers keep their last answer.
    }
    // All may have unsubscribed meanwhile, and others subscribed, with a timer of their own.
    if (this.#timer === timer && this.#feeds.size > 0) {
      this.#timer = this.#schedulePoll();
    }
  }

  #enqueue(feed: LiveFeed): void {
    if (this.#waiting.has(feed)) return;
    this.#waiting.add(feed);
    this.#outside.runInAsyncScope(() => this.#readInTurn(feed));
  }

  async #readInTurn(feed: LiveFeed): Promise<void> {
    const lane = feed.isShared ? this.#shared : this.#personal;
    const sender = feed.findPayer((name) => this.#load.get(name) ?? 0);
    const origin = { sender };
    this.#charge(sender, 1);
    try {
      await lane.enter(origin, feed.signal);
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

  readonly #read: Read = (execution, caller) =>
    this.engine.answer(execution, { ...caller, idempotencyKey: undefined, log: this.log });

  async #readOne(feed: LiveFeed, sender: string): Promise<void> {
    const version = this.snapshots.changes.current;
    try {
      await feed.read(this.#read, sender);
      if (feed.isDue) this.#enqueue(feed);
    } catch (error) {
      if (error instanceof PersonalAnswerError) return this.#split(feed);
      feed.fail(error);
      if (httpErrorFor(error)) return;
      this.log.error({ err: error }, 'unexpected error');
      feed.waitForCommit(version);
    }
  }

  #split(feed: LiveFeed): void {
    const { execution } = feed;
    for (const subscriber of [...feed.subscribers]) {
      this.#unsubscribe(execution, subscriber);
      this.#subscribe(execution, subscriber, false);
    }
  }
}

function keyOf({ key }: LiveExecution, { viewer }: Subscriber, isShared: boolean): string {
  return isShared
    ? key
    : `${key} ${viewer ? `user ${viewer.userId}${viewer.isStaff ? ' staff' : ''}` : 'anonymous'}`;
}

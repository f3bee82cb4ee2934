// Live queries, for subscriptions: an answer is sent again when a commit has invalidated it. State, not events.
import { AsyncResource } from 'node:async_hooks';
import { createHash } from 'node:crypto';
import type { FastifyBaseLogger } from 'fastify';
import type { OperationCaller } from '../../admission/admission.ts';
import type { StateSource } from '../../database/changes/snapshots.ts';
import { Lane } from '../../database/connection/lane.ts';
import { httpErrorFor } from '../../database/errors.ts';
import type { Engine } from '../engine.ts';
import type { Operation } from '../operations.ts';
import { encodingOf, eventType } from '../run.ts';
import {
  type LiveExecution,
  LiveFeed,
  PersonalAnswerError,
  type Read,
  type Subscriber,
} from './live-feed.ts';
import type { LiveStream, LiveStreams, Transport } from './live-stream.ts';

/** Milliseconds between two polls of the database state. */
const pollInterval = 250;
/** Bytes of memory that a stream keeps. */
const bytesPerCharacter = { text: 2, variables: 4 };
const bytesPerStream = 2_048;
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
    private readonly streams: LiveStreams,
    private readonly log: FastifyBaseLogger,
    private readonly expensivePause: number,
  ) {}

  /**
   * The answers of a subscription to one reader, as soon as it has the first one.
   * @param bytes what its transport keeps
   * @throws the error of the first reading; HttpError 503 when it ends before
   */
  async open(
    operation: Operation,
    sent: Record<string, unknown>,
    { viewer, sender, signal }: OperationCaller,
    transport: Transport,
    bytes = 0,
  ): Promise<LiveStream> {
    const execution = toExecution(this.engine, operation, pickDeclared(operation, sent));
    const ofText = bytesPerCharacter.text * (operation.text?.length ?? 0);
    const ofVariables = bytesPerCharacter.variables * writeCanonical(execution.variables).length;
    const stream = this.streams.add({
      ...{ transport, sender, lease: viewer ?? {} },
      bytes: bytes + bytesPerStream + ofText + ofVariables,
    });
    const leave = () => stream.destroy();
    signal.addEventListener('abort', leave, { once: true });
    await new Promise<void>((settle, reject) => {
      const subscriber: Subscriber = {
        ...{ viewer, sender, hasAnswer: false, firstReading: 0 },
        onAnswer: (answer, kept) => {
          stream.offer(answer, kept);
          settle();
        },
        onFailure: (error) => {
          reject(error);
          stream.destroy();
        },
      };
      stream.onClose((reason) => {
        signal.removeEventListener('abort', leave);
        this.#unsubscribe(execution, subscriber);
        reject(reason);
      });
      this.#subscribe(execution, subscriber, this.engine.isShared(operation, viewer));
      if (signal.aborted) leave();
    });
    return stream;
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

/**
 * With a digest of what it depends on as its key. It keeps the text alone: the engine keeps what was parsed, within its
 * limit. In its scope is nothing else that was sent, which its function would keep.
 */
function toExecution(
  engine: Engine,
  { name, text = '' }: Operation,
  variables: Record<string, unknown>,
): LiveExecution {
  const digest = createHash('sha256').update(JSON.stringify([name ?? null, text]));
  const key = `live ${digest.update(writeCanonical(variables)).digest('base64')}`;
  const operation = () => engine.find(text, name) as Operation;
  return { ...encodingOf(eventType, key), variables, operation };
}

function pickDeclared({ node }: Operation, sent: Record<string, unknown>): Record<string, unknown> {
  const names = node.variableDefinitions?.map(({ variable }) => variable.name.value) ?? [];
  return Object.fromEntries(
    names.flatMap((name) => (Object.hasOwn(sent, name) ? [[name, sent[name]]] : [])),
  );
}

/** Canonical text: equal for equal variables, in any order. JSON would write Infinity, parsed from 1e400, as null. */
export function writeCanonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(writeCanonical).join()}]`;
  if (typeof value === 'number') return Object.is(value, -0) ? '-0' : String(value);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const fields = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${fields.map(([name, inner]) => `${JSON.stringify(name)}:${writeCanonical(inner)}`).join()}}`;
}

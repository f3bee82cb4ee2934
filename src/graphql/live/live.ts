// Live queries, for subscriptions: an answer is sent again when a commit has invalidated it. State, not events.
import { AsyncResource } from 'node:async_hooks';
import { hash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyBaseLogger } from 'fastify';
import type { OperationCaller } from '../../admission/admission.ts';
import type { Viewer } from '../../admission/viewer.ts';
import { type ChangeLog, type Dependencies, sizeOf } from '../../database/changes/change-log.ts';
import type { StateSource } from '../../database/changes/snapshots.ts';
import { Lane } from '../../database/connection/lane.ts';
import { httpErrorFor } from '../../database/errors.ts';
import type { Engine } from '../engine.ts';
import type { Operation } from '../operations.ts';
import { type EncodedAnswer, type Execution, encodingOf, eventType, type Reading } from '../run.ts';
import type { LiveStream, LiveStreams, Transport } from './live-stream.ts';

/** Milliseconds between two polls of the database state. */
const pollInterval = 250;
/** Milliseconds before a failed reading is retried. */
const retryDelay = 1000;
/** Bytes of memory that a stream keeps. */
const bytesPerCharacter = 4;
const bytesPerStream = 2_048;
/** Concurrent readings per lane: both lanes together use fewer connections than the pool has. */
const laneLimits = { slots: 4, perSender: 2 };

interface LiveExecution extends Omit<Execution<EncodedAnswer>, 'operation'> {
  /** Characters of its text and its variables. */
  readonly length: number;
  readonly operation: () => Operation;
}

type Read = (execution: Execution<EncodedAnswer>) => Promise<Reading<EncodedAnswer>>;

/**
 * One operation with all its readers, executed for all of them at once. A reading begins when the previous one has ended,
 * and is sent to those who came before it began.
 */
export class LiveFeed {
  readonly streams = new Set<LiveStream>();
  readonly #abort = new AbortController();
  readonly signal = this.#abort.signal;
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

class PersonalAnswerError extends Error {}

/** Polls the database state, once for all readers, and reads again the feeds that a commit has invalidated. */
export class LiveAnswers {
  readonly #feeds = new Map<string, LiveFeed>();
  /** The feed of each stream. */
  readonly #feedOf = new Map<LiveStream, LiveFeed>();
  /** Two lanes: thousands of personal feeds do not delay shared ones, nor the reverse. */
  readonly #shared = new Lane(laneLimits);
  readonly #personal = new Lane(laneLimits);
  /** Feeds that wait or are read, by charged sender. */
  readonly #load = new Map<string, number>();
  /** Readings belong to no request, nor to its trace. */
  readonly #outside = new AsyncResource('LiveAnswers');
  #isPolling = false;

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
    const kept = bytes + bytesPerStream + bytesPerCharacter * execution.length;
    const stream = this.streams.add({ transport, sender, viewer, bytes: kept });
    const leave = () => stream.destroy();
    signal.addEventListener('abort', leave, { once: true });
    stream.onClose(() => {
      signal.removeEventListener('abort', leave);
      this.#unsubscribe(stream);
    });
    this.#subscribe(execution, stream, this.engine.isShared(operation, viewer));
    if (signal.aborted) leave();
    await stream.begun;
    return stream;
  }

  #subscribe(execution: LiveExecution, stream: LiveStream, isShared: boolean): void {
    const { viewer } = stream.options;
    const key = isShared ? execution.key : `${execution.key} ${nameOf(viewer)}`;
    const known = this.#feeds.get(key);
    const { changes } = this.snapshots;
    const feed =
      known ?? new LiveFeed(key, execution, isShared, viewer, changes, this.expensivePause);
    feed.add(stream);
    this.#feedOf.set(stream, feed);
    if (known) return;
    this.#feeds.set(key, feed);
    this.#outside.runInAsyncScope(() => this.#readRepeatedly(feed));
    if (!this.#isPolling) this.#outside.runInAsyncScope(() => this.#poll());
  }

  #unsubscribe(stream: LiveStream): void {
    const feed = this.#feedOf.get(stream);
    this.#feedOf.delete(stream);
    feed?.remove(stream);
    if (feed?.streams.size === 0) this.#feeds.delete(feed.key);
  }

  async #poll(): Promise<void> {
    this.#isPolling = true;
    while (this.#feeds.size > 0) {
      try {
        const isKnown = (await this.snapshots.next()) !== undefined;
        for (const feed of this.#feeds.values()) feed.check(isKnown);
      } catch {
        // The database is down, which its monitor logs: readers keep their last answer.
      }
      await sleep(pollInterval, undefined, { ref: false });
    }
    this.#isPolling = false;
  }

  async #readRepeatedly(feed: LiveFeed): Promise<void> {
    const { engine, log } = this;
    const { isShared, signal } = feed;
    const viewer = isShared ? undefined : feed.viewer;
    const lane = isShared ? this.#shared : this.#personal;
    while (await feed.untilDue()) {
      const sender = feed.findPayer((name) => this.#load.get(name) ?? 0);
      const origin = { sender };
      const caller = { viewer, signal, sender, idempotencyKey: undefined, log };
      this.#charge(sender, 1);
      try {
        await lane.enter(origin, signal);
        const reading = feed.read((execution) => engine.answer(execution, caller));
        await reading.finally(() => lane.leave(origin));
      } catch (error) {
        if (error instanceof PersonalAnswerError) this.#split(feed);
        else if (!signal.aborted) log.error({ err: error }, 'unexpected error');
      }
      this.#charge(sender, -1);
    }
  }

  #charge(sender: string, change: number): void {
    const load = (this.#load.get(sender) ?? 0) + change;
    if (load > 0) this.#load.set(sender, load);
    else this.#load.delete(sender);
  }

  #split(feed: LiveFeed): void {
    for (const stream of [...feed.streams]) {
      this.#unsubscribe(stream);
      this.#subscribe(feed.execution, stream, false);
    }
  }
}

function nameOf(viewer: Viewer | undefined): string {
  return viewer ? `user ${viewer.userId}${viewer.isStaff ? ' staff' : ''}` : 'anonymous';
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
  const all = JSON.stringify([name, text, variables], (_name, value) =>
    // Which 1e400 is parsed as, and JSON would write as null.
    value === Number.POSITIVE_INFINITY || value === Number.NEGATIVE_INFINITY
      ? { [value]: null }
      : value,
  );
  const key = `live ${hash('sha256', all, 'base64')}`;
  const operation = () => engine.find(text, name) as Operation;
  return { ...encodingOf(eventType, key), variables, operation, length: all.length };
}

function pickDeclared({ node }: Operation, sent: Record<string, unknown>): Record<string, unknown> {
  const names = node.variableDefinitions?.map(({ variable }) => variable.name.value) ?? [];
  return Object.fromEntries(
    names.flatMap((name) => (Object.hasOwn(sent, name) ? [[name, sent[name]]] : [])),
  );
}

// Live queries, for subscriptions: an answer is sent again when a commit has invalidated it. State, not events.
import { AsyncResource } from 'node:async_hooks';
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyBaseLogger } from 'fastify';
import type { OperationCaller } from '../../admission/admission.ts';
import type { Viewer } from '../../admission/viewer.ts';
import type { StateSource } from '../../database/changes/snapshots.ts';
import { Lane } from '../../database/connection/lane.ts';
import type { Engine } from '../engine.ts';
import type { Operation } from '../operations.ts';
import { encodingOf, eventType } from '../run.ts';
import { type LiveExecution, LiveFeed, PersonalAnswerError } from './live-feed.ts';
import type { LiveStream, LiveStreams, Transport } from './live-stream.ts';

/** Milliseconds between two polls of the database state. */
const pollInterval = 250;
/** Bytes of memory that a stream keeps. */
const bytesPerCharacter = { text: 2, variables: 4 };
const bytesPerStream = 2_048;
/** Concurrent readings per lane: both lanes together use fewer connections than the pool has. */
const laneLimits = { slots: 4, perSender: 2 };

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
    const ofText = bytesPerCharacter.text * (operation.text?.length ?? 0);
    const ofVariables = bytesPerCharacter.variables * writeCanonical(execution.variables).length;
    const kept = bytes + bytesPerStream + ofText + ofVariables;
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

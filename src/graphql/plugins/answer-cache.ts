// Executes a query once for all viewers if it can be shared, and keeps its answer until a commit invalidates one of its
// dependencies. Concurrent reads are coalesced.
import type { ExecutionArgs, ExecutionResult } from 'graphql';
import { LRUCache } from 'lru-cache';
import type { GuardWrite, OperationCaller } from '../../admission/admission.ts';
import type { Viewer } from '../../admission/viewer.ts';
import { type Dependencies, sizeOf } from '../../database/changes/change-log.ts';
import type { DatabaseState, StateSource } from '../../database/changes/snapshots.ts';
import type { ReadAt } from '../../database/standby/replicas.ts';
import { type Caller, currentTask, type SharedTask, type StartTask } from '../../database/task.ts';
import { HttpError } from '../../errors.ts';
import type { Context, ContextFactory } from '../context.ts';
import type { Operation } from '../operations.ts';
import type { Answer, Executed, Found, OperationPlugin, Reading, Run } from '../run.ts';

export interface AnswerCacheOptions {
  readonly cache: AnswerCache;
  readonly startTask: StartTask;
  readonly contexts: ContextFactory;
  readonly readAt?: ReadAt | undefined;
  /** Throws the refusal of every mutation while writes are switched off. */
  readonly guardWrite: GuardWrite;
}

/** Whether this viewer gets the same answer as every other, until an execution proves the operation personal. */
export function isShared(
  { type, isPersonal }: Operation,
  viewer: Viewer | undefined,
  contexts: ContextFactory,
): boolean {
  return type === 'query' && !isPersonal && (viewer === undefined || contexts.sharesWithViewers);
}

export function useAnswerCache(options: AnswerCacheOptions): OperationPlugin {
  return {
    onExecute({ context, executeFn, setExecuteFn }) {
      const { operation } = context.run;
      if (!operation) return;
      const added = addedTo(context);
      setExecuteFn((args: ExecutionArgs) => {
        const execute = (contextValue: Context) => executeFn({ ...args, contextValue });
        return read(options, operation, context.run, added, execute);
      });
    },
  };
}

/** Names that Yoga and this gateway give to the context of an operation. */
const known = new Set(['run', 'request', 'params']);

/** What other plugins have added to the context, for resolvers. */
function addedTo(context: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(context).filter(([name]) => !known.has(name)));
}

async function read(
  { cache, contexts, guardWrite, readAt, startTask }: AnswerCacheOptions,
  operation: Operation,
  run: Run,
  added: Record<string, unknown>,
  execute: (context: Context) => Promise<ExecutionResult>,
): Promise<ExecutionResult> {
  const { caller, cost, encoding, idempotencyKey } = run;
  const { log, viewer } = caller;
  const isWrite = operation.type === 'mutation';
  if (isWrite) guardWrite(viewer);
  const toExecuted = (
    result: ExecutionResult,
    isSharedResult: boolean,
    dependencies?: Dependencies,
  ): Executed<Answer> => {
    // Before the answer is made, which REST refuses for some errors: traces have their codes.
    run.result = result;
    return {
      answer: encoding.toAnswer(result, isSharedResult),
      result,
      dependencies,
      isExpensive: currentTask()?.isExpensive ?? false,
      operationName: operation.name,
      cost,
    };
  };
  /** Undefined: it turned out to be personal. */
  const readShared: Read = async (state) => {
    const context = contexts.createShared(readAt?.(state), added);
    const result = await execute(context);
    if (context.isPersonal) {
      operation.isPersonal = true;
      return undefined;
    }
    const dependencies = result.errors ? undefined : context.tracker.dependencies();
    return toExecuted(result, true, dependencies);
  };
  const readPersonal = async () => {
    const source = isWrite ? undefined : readAt?.(await cache.currentState());
    const context = contexts.createPersonal({ idempotencyKey, log, viewer }, source, added);
    return toExecuted(await execute(context), false);
  };
  if (isShared(operation, viewer, contexts)) {
    run.executed = await cache.read(encoding.key, readShared, caller, run.found, cost?.fields);
  }
  const { sender } = caller;
  run.executed ??= await startTask(readPersonal, sender, undefined, cost?.fields).wait(caller);
  // A copy: some plugins change it in place.
  return { ...run.executed.result };
}

/** Bytes of memory for an entry, beside its answer. */
const bytesPerEntry = 2_000;

interface Entry {
  readonly reading: Reading<Answer>;
  /** The latest version of the database at which it was valid. */
  version: number;
}

/** Outcome of a lookup; `shared`: coalesced with the read of another caller. */
type Lookup = 'hit' | 'miss' | 'shared';

/**
 * Reads an answer at this state of the database or a later one; without a state, it is unknown. The answer is undefined
 * if it cannot be shared.
 */
type Read = (state: DatabaseState | undefined) => Promise<Executed<Answer> | undefined>;

/** Its answer may be stale by `maxAge` if it allows that. */
type CacheCaller = Caller & Pick<OperationCaller, 'allowsStale'>;

/** Reads of one key: the one that runs, and the one that will follow it. */
interface PendingReads {
  /** Never rejects. */
  running?: Promise<void> | undefined;
  next?: SharedTask<Executed<Answer> | undefined> | undefined;
  latest?: Executed<Answer> | undefined;
}

/**
 * Never stale: each call validates its answer against a snapshot of the database that is taken after the call, and so
 * contains what was committed before it.
 */
export class AnswerCache {
  hits = 0;
  misses = 0;
  /** Entries that a lookup found invalidated. */
  invalidated = 0;
  /** Times that the whole cache was cleared, because the change log was truncated. */
  cleared = 0;
  readonly #entries: LRUCache<string, Entry> | undefined;
  readonly #pending = new Map<string, PendingReads>();
  /** The state of the database at the latest snapshot; undefined: unknown. */
  #state: DatabaseState | undefined;
  /** When that snapshot was requested, by `performance.now()`. */
  #stateAt = Number.NEGATIVE_INFINITY;
  /** The snapshot under way, and its result, processed once for all callers that wait for it. */
  #snapshot:
    | { readonly taken: Promise<unknown>; readonly state: Promise<DatabaseState | undefined> }
    | undefined;
  /** The version at which the cache was cleared last. */
  #clearedAt = 0;
  /**
   * @param maxAge milliseconds by which an answer may be stale for callers that allow it
   * @param readsNeedState whether reads need the state of the database even when the cache is off: to choose a standby
   */
  constructor(
    private readonly snapshots: StateSource,
    private readonly startTask: StartTask,
    maxBytes: number,
    private readonly maxAge = 0,
    private readonly readsNeedState = false,
    private readonly onLookup?: (outcome: Lookup) => void,
  ) {
    if (maxBytes > 0) this.#entries = new LRUCache({ maxSize: maxBytes });
  }

  get bytes(): number {
    return this.#entries?.calculatedSize ?? 0;
  }

  /**
   * What is cached and still valid; and the state of the database, if it was taken to decide that.
   * @throws HttpError 503 on timeout
   */
  find(key: string, caller: CacheCaller): Found | Promise<Found> {
    if (!this.#entries?.has(key)) return {};
    const state = this.#stateFor(caller);
    return state instanceof Promise
      ? state.then((taken) => this.#findAt(key, taken))
      : this.#findAt(key, state);
  }

  #findAt(key: string, state: DatabaseState | undefined): Found {
    const reading = state && this.#findValid(key);
    if (!reading) return { state };
    this.hits += 1;
    this.onLookup?.('hit');
    return { reading };
  }

  /**
   * Reads what `find` has not found, together with others who ask for it.
   * @param fields that the read executes at most
   * @throws the error of the read; HttpError 503 on timeout
   */
  async read(
    key: string,
    read: Read,
    caller: CacheCaller,
    found: Found,
    fields = 0,
  ): Promise<Executed<Answer> | undefined> {
    const known = found.state ?? this.#stateFor(caller);
    const state = known instanceof Promise ? await known : known;
    if (!this.#entries || !state) {
      return this.startTask(() => read(state), caller.sender, undefined, fields).wait(caller);
    }
    this.misses += 1;
    return this.#coalesce(key, read, caller, fields).wait(caller);
  }

  delete(key: string): void {
    this.#entries?.delete(key);
  }

  /** The state of the database for a read that is not cached. @throws HttpError 503 on timeout */
  async currentState(): Promise<DatabaseState | undefined> {
    return this.readsNeedState ? this.#takeSnapshot() : undefined;
  }

  #stateFor({
    allowsStale,
  }: CacheCaller): Promise<DatabaseState | undefined> | DatabaseState | undefined {
    if (!this.#entries && !this.readsNeedState) return undefined;
    const age = performance.now() - this.#stateAt;
    if (!allowsStale || !this.#state || age > this.maxAge) return this.#takeSnapshot();
    // Refreshed ahead of expiry, so that no request waits for it.
    if (age > this.maxAge / 2) this.#takeSnapshot().catch(() => {});
    return this.#state;
  }

  /** Joins the next read that has not begun: one that has may miss what was committed before this call. */
  #coalesce(
    key: string,
    read: Read,
    { sender }: Caller,
    fields: number,
  ): SharedTask<Executed<Answer> | undefined> {
    const pending = this.#pending.get(key) ?? {};
    if (pending.next && !pending.next.isStopped) {
      this.onLookup?.('shared');
      return pending.next;
    }
    this.onLookup?.('miss');
    this.#pending.set(key, pending);
    const work = () => {
      pending.next = undefined;
      return this.#read(key, read, pending);
    };
    const next = this.startTask(work, sender, pending.running, fields);
    pending.next = next;
    next.onEnd(() => {
      if (pending.next === next) pending.next = undefined;
      this.#dropIdle(key, pending);
    });
    return next;
  }

  #read(key: string, read: Read, pending: PendingReads): ReturnType<Read> {
    const before = this.#state;
    // The previous read began late enough.
    if (pending.latest && this.#findValid(key)) return Promise.resolve(pending.latest);
    const reading = read(before);
    pending.running = reading
      .then((value) => {
        pending.latest = value;
        if (value) this.#store(key, value, before);
      })
      .catch(() => {})
      .finally(() => {
        pending.running = undefined;
        this.#dropIdle(key, pending);
      });
    return reading;
  }

  #dropIdle(key: string, pending: PendingReads): void {
    if (!pending.running && !pending.next && this.#pending.get(key) === pending) {
      this.#pending.delete(key);
    }
  }

  #findValid(key: string): Reading<Answer> | undefined {
    const entry = this.#entries?.get(key);
    if (!entry) return undefined;
    const { changes } = this.snapshots;
    if (changes.isInvalidated(entry.reading.dependencies, entry.version)) {
      this.#entries?.delete(key);
      this.invalidated += 1;
      return undefined;
    }
    entry.version = changes.current;
    return entry.reading;
  }

  /** @param before the state before the read: every later change is checked, whether or not the read has seen it */
  #store(key: string, reading: Reading<Answer>, before: DatabaseState | undefined): void {
    const { changes } = this.snapshots;
    const { answer, dependencies, isExpensive, operationName, cost } = reading;
    if (!answer.shareable || !before || changes.isInvalidated(dependencies, before.version)) return;
    const size = bytesPerEntry + answer.size + key.length + sizeOf(dependencies);
    const kept = { answer, dependencies, isExpensive, operationName, cost };
    this.#entries?.set(key, { reading: kept, version: changes.current }, { size });
  }

  /** Undefined when the state is unknown. @throws HttpError 503 on timeout */
  #takeSnapshot(): Promise<DatabaseState | undefined> {
    const taken = this.snapshots.next();
    if (this.#snapshot?.taken !== taken) {
      const sentAt = performance.now();
      const state = taken.then(
        (found) => this.#setState(found, sentAt),
        (error) => {
          if (error instanceof HttpError) throw error;
          return this.#setState(undefined, sentAt);
        },
      );
      this.#snapshot = { taken, state };
    }
    return this.#snapshot.state;
  }

  #setState(state: DatabaseState | undefined, sentAt: number): DatabaseState | undefined {
    this.#state = state;
    this.#stateAt = sentAt;
    this.#clearTruncated();
    return state;
  }

  /** Clears the cache when every entry is invalid, because the change log was truncated. */
  #clearTruncated(): void {
    const { current, oldestKnown } = this.snapshots.changes;
    if (oldestKnown !== current || this.#clearedAt === current) return;
    this.#clearedAt = current;
    if (this.#entries?.size) this.cleared += 1;
    this.#entries?.clear();
  }
}

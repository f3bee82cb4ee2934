// Keeps answers until a commit invalidates what they were made of.
import { LRUCache } from 'lru-cache';
import { type Dependencies, sizeOf } from '../../database/changes/change-log.ts';
import type { DatabaseState } from '../../database/changes/database-state.ts';
import type { StateSource } from '../../database/changes/snapshots.ts';
import type { Caller, SharedTask, StartTask } from '../../database/task.ts';
import { HttpError } from '../../errors.ts';

export interface Answer {
  readonly size: number;
  /** Whether it may be given to others at all: not an error, and nothing of one viewer's own. */
  readonly shareable: boolean;
  /** Its dependencies; undefined: any commit may have invalidated it. */
  dependencies?: Dependencies | undefined;
  /** Whether reading it took the lane of expensive statements. */
  isExpensive?: boolean;
}

interface Kept {
  readonly answer: Answer;
  /** The version of the database up to which it is known to be valid. */
  version: number;
}

/** Whether an answer was kept, was read for this call, or by a read that others wait for too. */
type Lookup = 'hit' | 'miss' | 'shared';

/** Reads an answer that is at least as new as this state of the database; undefined: it is not known. */
type Read<Value extends Answer> = (shown: DatabaseState | undefined) => Promise<Value>;

interface Reads {
  /** Never rejects. */
  underWay?: Promise<void> | undefined;
  next?: SharedTask<Answer> | undefined;
}

/** Every call learns what was committed before it, from a snapshot taken after it: no answer is ever stale. */
export class AnswerCache {
  hits = 0;
  misses = 0;
  /** Kept answers that were found invalid when they were wanted again. */
  touched = 0;
  /** Times that all kept answers ended, because the change log was truncated. */
  cleared = 0;
  readonly #kept: LRUCache<string, Kept> | undefined;
  readonly #reads = new Map<string, Reads>();
  /** The state of the database at the latest probe; undefined: it is not known. */
  #latest: DatabaseState | undefined;
  /** When that probe was sent, by `performance.now()`. */
  #latestAt = Number.NEGATIVE_INFINITY;
  /** The probe under way, and what becomes of it: worked out once for all who wait for it. */
  #probe:
    | { readonly taken: Promise<unknown>; readonly shown: Promise<DatabaseState | undefined> }
    | undefined;
  /** The version at which all answers ended. */
  #clearedAt = 0;
  onLookup: ((outcome: Lookup) => void) | undefined;

  /**
   * @param maxAge milliseconds by which an answer may be stale for callers that allow it
   * @param tellsReads whether reads need the state of the database, also when nothing is kept
   */
  constructor(
    private readonly snapshots: StateSource,
    private readonly startTask: StartTask,
    maxBytes: number,
    private readonly maxAge = 0,
    private readonly tellsReads = false,
  ) {
    if (maxBytes > 0) this.#kept = new LRUCache({ maxSize: maxBytes });
  }

  get bytes(): number {
    return this.#kept?.calculatedSize ?? 0;
  }

  /**
   * @param mayBeOld whether it may be as stale as this cache allows
   * @throws whatever the read fails with; HttpError 503 when it takes too long
   */
  async get<Value extends Answer>(
    key: string,
    read: Read<Value>,
    caller: Caller,
    mayBeOld = false,
  ): Promise<Value> {
    const shown = await this.#findShown(mayBeOld);
    if (!this.#kept || !shown) return this.startTask(() => read(shown), caller.sender).wait(caller);
    const kept = this.#findKept(key);
    if (kept) {
      this.hits += 1;
      this.onLookup?.('hit');
      return kept as Value;
    }
    this.misses += 1;
    return this.#share(key, read, caller).wait(caller) as Promise<Value>;
  }

  /** For a read that is not kept. @throws HttpError 503 when that took as long as a request may take */
  async currentState(): Promise<DatabaseState | undefined> {
    return this.tellsReads ? this.#takeSnapshot() : undefined;
  }

  #findShown(mayBeOld: boolean): Promise<DatabaseState | undefined> | DatabaseState | undefined {
    if (!this.#kept && !this.tellsReads) return undefined;
    const age = performance.now() - this.#latestAt;
    if (!mayBeOld || !this.#latest || age > this.maxAge) return this.#takeSnapshot();
    // Asked for before it is needed, so that no request waits for it.
    if (age > this.maxAge / 2) this.#takeSnapshot().catch(() => {});
    return this.#latest;
  }

  /** The next read that has not begun: one that has may have missed what was committed before this call. */
  #share(key: string, read: Read<Answer>, { sender }: Caller): SharedTask<Answer> {
    const reads = this.#reads.get(key) ?? {};
    if (reads.next && !reads.next.isStopped) {
      this.onLookup?.('shared');
      return reads.next;
    }
    this.onLookup?.('miss');
    this.#reads.set(key, reads);
    const work = () => {
      reads.next = undefined;
      return this.#read(key, read, reads);
    };
    const next = this.startTask(work, sender, reads.underWay);
    reads.next = next;
    next.onEnd(() => {
      if (reads.next === next) reads.next = undefined;
      this.#forget(key, reads);
    });
    return next;
  }

  #read(key: string, read: Read<Answer>, reads: Reads): Promise<Answer> {
    const before = this.#latest;
    const kept = this.#findKept(key);
    // The read before this one began late enough.
    if (kept) return Promise.resolve(kept);
    const answer = read(before);
    reads.underWay = answer
      .then((value) => this.#keep(key, value, before))
      .catch(() => {})
      .finally(() => {
        reads.underWay = undefined;
        this.#forget(key, reads);
      });
    return answer;
  }

  #forget(key: string, reads: Reads): void {
    if (!reads.underWay && !reads.next && this.#reads.get(key) === reads) this.#reads.delete(key);
  }

  #findKept(key: string): Answer | undefined {
    const kept = this.#kept?.get(key);
    if (!kept) return undefined;
    const { changes } = this.snapshots;
    if (changes.isInvalidated(kept.answer.dependencies, kept.version)) {
      this.#kept?.delete(key);
      this.touched += 1;
      return undefined;
    }
    kept.version = changes.current;
    return kept.answer;
  }

  /** @param before the state that the answer has seen at least: later changes are checked, seen or not */
  #keep(key: string, answer: Answer, before: DatabaseState | undefined): void {
    const { changes } = this.snapshots;
    if (!answer.shareable || !before || changes.isInvalidated(answer.dependencies, before.version))
      return;
    const size = answer.size + key.length + sizeOf(answer.dependencies);
    this.#kept?.set(key, { answer, version: changes.current }, { size });
  }

  /** Undefined when it cannot be known. @throws HttpError 503 when that took as long as a request may take */
  #takeSnapshot(): Promise<DatabaseState | undefined> {
    const taken = this.snapshots.next();
    if (this.#probe?.taken !== taken) {
      const askedAt = performance.now();
      const shown = taken.then(
        (found) => this.#note(found, askedAt),
        (error) => {
          if (error instanceof HttpError) throw error;
          return this.#note(undefined, askedAt);
        },
      );
      this.#probe = { taken, shown };
    }
    return this.#probe.shown;
  }

  #note(shown: DatabaseState | undefined, askedAt: number): DatabaseState | undefined {
    this.#latest = shown;
    this.#latestAt = askedAt;
    this.#clear();
    return shown;
  }

  /** Clears the cache when every entry is invalid: the change log was truncated. */
  #clear(): void {
    const { current, oldestKnown } = this.snapshots.changes;
    if (oldestKnown !== current || this.#clearedAt === current) return;
    this.#clearedAt = current;
    if (this.#kept?.size) this.cleared += 1;
    this.#kept?.clear();
  }
}

// Keeps answers for as long as the database shows the same data.
import { LRUCache } from 'lru-cache';
import type { Shown, Snapshots } from '../database/snapshots.ts';
import type { SharedTask, StartTask, Waiter } from '../database/task.ts';
import { HttpError } from '../errors.ts';

/** Something that was read and can be given again while the database shows the same data. */
export interface Answer {
  /** Size in bytes. */
  readonly size: number;
  /** Whether it may be given to others at all: not an error, and nothing of one viewer's own. */
  readonly shareable: boolean;
}

interface Kept {
  readonly snapshot: string;
  readonly answer: Answer;
}

/** Whether an answer was kept, was read for this call, or by a read that others wait for too. */
export type Lookup = 'hit' | 'miss' | 'shared';

/** Reads an answer that is at least as new as what the database showed; undefined: nobody knows that. */
export type Read<Value extends Answer> = (shown: Shown | undefined) => Promise<Value>;

export interface CacheOptions {
  /** Most bytes of answers to keep; 0 keeps none. */
  readonly maxBytes: number;
  /** Milliseconds by which an answer may be too old for whoever allows that. */
  readonly maxAge?: number;
  /** Whether reads need to know what the database shows, also when nothing is kept. */
  readonly tellsReads?: boolean;
}

/** The reads of one key: one under way, and one that has not begun, for all who come until then. */
interface Reads {
  /** Never rejects. */
  underWay?: Promise<void> | undefined;
  next?: SharedTask<Answer> | undefined;
}

/**
 * Keeps answers for exactly as long as the database shows the same data. Every call learns what
 * the database shows now, from a snapshot taken after the call, so no answer is ever stale,
 * whoever writes.
 */
export class AnswerCache {
  readonly #snapshots: Pick<Snapshots, 'takeNext'>;
  readonly #kept: LRUCache<string, Kept> | undefined;
  readonly #startTask: StartTask;
  readonly #reads = new Map<string, Reads>();
  readonly #maxAge: number;
  readonly #tellsReads: boolean;
  #latest: Shown | undefined;
  /** When the latest probe was asked for, by `performance.now()`. */
  #latestAt = Number.NEGATIVE_INFINITY;
  /** The probe under way, and what becomes of it: worked out once for all who wait for it. */
  #probe:
    | { readonly taken: Promise<unknown>; readonly shown: Promise<Shown | undefined> }
    | undefined;
  #onLookup: ((outcome: Lookup) => void) | undefined;
  #hits = 0;
  #misses = 0;

  constructor(
    snapshots: Pick<Snapshots, 'takeNext'>,
    startTask: StartTask,
    { maxBytes, maxAge = 0, tellsReads = false }: CacheOptions,
  ) {
    this.#snapshots = snapshots;
    this.#startTask = startTask;
    this.#maxAge = maxAge;
    this.#tellsReads = tellsReads;
    if (maxBytes > 0) this.#kept = new LRUCache({ maxSize: maxBytes });
  }

  /** Calls that were answered from memory. */
  get hits(): number {
    return this.#hits;
  }

  /** Calls that needed a read, or shared one. */
  get misses(): number {
    return this.#misses;
  }

  /** Bytes of answers in memory. */
  get bytes(): number {
    return this.#kept?.calculatedSize ?? 0;
  }

  /** Tells of each call, within it, where its answer comes from. */
  observe(onLookup: (outcome: Lookup) => void): void {
    this.#onLookup = onLookup;
  }

  /**
   * The answer under `key`, kept or read anew. The kind of answer must be the same for all calls
   * with a key.
   * @param mayBeOld whether it may be as much too old as this cache allows
   * @throws whatever the read fails with; HttpError 503 when it takes too long
   */
  async get<Value extends Answer>(
    key: string,
    read: Read<Value>,
    waiter: Waiter,
    mayBeOld = false,
  ): Promise<Value> {
    const shown = await this.#find(mayBeOld);
    if (!this.#kept || !shown) return this.#startTask(() => read(shown)).wait(waiter);
    const kept = this.#kept.get(key);
    if (kept?.snapshot === shown.name) {
      this.#hits += 1;
      this.#onLookup?.('hit');
      return kept.answer as Value;
    }
    this.#misses += 1;
    return this.#share(key, read).wait(waiter) as Promise<Value>;
  }

  /**
   * What the database shows to a read that needs to know it and is not for memory; else undefined.
   * @throws HttpError 503 when that took as long as a request may take
   */
  async tell(): Promise<Shown | undefined> {
    return this.#tellsReads ? this.#takeSnapshot() : undefined;
  }

  /** What the database shows now, or showed a moment ago. */
  #find(mayBeOld: boolean): Promise<Shown | undefined> | Shown | undefined {
    if (!this.#kept && !this.#tellsReads) return undefined;
    const age = performance.now() - this.#latestAt;
    if (!mayBeOld || !this.#latest || age > this.#maxAge) return this.#takeSnapshot();
    // Asked for before it is needed, so that nobody waits for it.
    if (age > this.#maxAge / 2) this.#takeSnapshot().catch(() => {});
    return this.#latest;
  }

  /**
   * The next read of `key` that has not begun: one that has may have missed what was committed
   * before this call. So there is one read at a time, however many ask.
   */
  #share(key: string, read: Read<Answer>): SharedTask<Answer> {
    const reads = this.#reads.get(key) ?? {};
    if (reads.next && !reads.next.isStopped) {
      this.#onLookup?.('shared');
      return reads.next;
    }
    this.#onLookup?.('miss');
    this.#reads.set(key, reads);
    const next = this.#startTask(() => {
      reads.next = undefined;
      return this.#read(key, read, reads);
    }, reads.underWay);
    reads.next = next;
    next.onEnd(() => {
      if (reads.next === next) reads.next = undefined;
      this.#forget(key, reads);
    });
    return next;
  }

  #read(key: string, read: Read<Answer>, reads: Reads): Promise<Answer> {
    const before = this.#latest;
    const kept = this.#kept?.get(key);
    // The read before this one began late enough.
    if (kept && kept.snapshot === before?.name) return Promise.resolve(kept.answer);
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

  /**
   * Keeps an answer under the snapshot that was known before it was read. Whatever is committed
   * after that changes the name for good, so the answer is only given if nothing was.
   */
  #keep(key: string, answer: Answer, before: Shown | undefined): void {
    if (!answer.shareable || before === undefined || before !== this.#latest) return;
    this.#kept?.set(key, { snapshot: before.name, answer }, { size: answer.size + key.length });
  }

  /**
   * Forgets everything that an older snapshot showed. Undefined when there is no way to know.
   * @throws HttpError 503 when that took as long as a request may take
   */
  #takeSnapshot(): Promise<Shown | undefined> {
    const taken = this.#snapshots.takeNext();
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

  /** Of one name the first is kept: its place in the log is the earliest that shows all of it. */
  #note(shown: Shown | undefined, askedAt: number): Shown | undefined {
    this.#latestAt = askedAt;
    if (shown?.name !== this.#latest?.name) {
      this.#latest = shown;
      this.#kept?.clear();
    }
    return this.#latest;
  }
}

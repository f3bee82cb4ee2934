// Keeps answers for as long as nothing that they were made of has changed.
import { LRUCache } from 'lru-cache';
import { type MadeOf, sizeOf } from '../database/changes.ts';
import type { Shown, Snapshots } from '../database/snapshots.ts';
import type { SharedTask, StartTask, Waiter } from '../database/task.ts';
import { HttpError } from '../errors.ts';

/** Something that was read and can be given again until what it was made of has changed. */
export interface Answer {
  /** Size in bytes. */
  readonly size: number;
  /** Whether it may be given to others at all: not an error, and nothing of one viewer's own. */
  readonly shareable: boolean;
  /** What was read for it, noted by who read it; undefined: any commit may have changed it. */
  madeOf?: MadeOf | undefined;
  /** Whether reading it took the lane of expensive statements. */
  isExpensive?: boolean;
}

interface Kept {
  readonly answer: Answer;
  /** Until when it is known that nothing has touched it. */
  moment: number;
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

/** What tells the cache of the state of the database. */
export type Probes = Pick<Snapshots, 'changes' | 'takeNext'>;

/**
 * Keeps answers until something is committed that touches them. Every call learns what the database
 * shows now, from a snapshot taken after the call, and all that was committed until then. So no answer
 * is ever stale, whoever writes.
 */
export class AnswerCache {
  readonly #snapshots: Probes;
  readonly #kept: LRUCache<string, Kept> | undefined;
  readonly #startTask: StartTask;
  readonly #reads = new Map<string, Reads>();
  readonly #maxAge: number;
  readonly #tellsReads: boolean;
  /** What the database showed at the latest probe; undefined: nobody knows. */
  #latest: Shown | undefined;
  /** When that was asked for, by `performance.now()`. */
  #latestAt = Number.NEGATIVE_INFINITY;
  /** The probe under way, and what becomes of it: worked out once for all who wait for it. */
  #probe:
    | { readonly taken: Promise<unknown>; readonly shown: Promise<Shown | undefined> }
    | undefined;
  /** The moment at which all answers ended. */
  #clearedAt = 0;
  #onLookup: ((outcome: Lookup) => void) | undefined;
  #hits = 0;
  #misses = 0;
  #touched = 0;
  #cleared = 0;

  constructor(
    snapshots: Probes,
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

  /** Kept answers that something committed was found to touch, when they were wanted again. */
  get touched(): number {
    return this.#touched;
  }

  /** Times that all kept answers ended, because nobody knew what was committed. */
  get cleared(): number {
    return this.#cleared;
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
    const shown = await this.#findShown(mayBeOld);
    if (!this.#kept || !shown)
      return this.#startTask(() => read(shown), waiter.sender).wait(waiter);
    const kept = this.#findKept(key);
    if (kept) {
      this.#hits += 1;
      this.#onLookup?.('hit');
      return kept as Value;
    }
    this.#misses += 1;
    return this.#share(key, read, waiter).wait(waiter) as Promise<Value>;
  }

  /**
   * What the database shows to a read that needs to know it and is not for memory; else undefined.
   * @throws HttpError 503 when that took as long as a request may take
   */
  async tell(): Promise<Shown | undefined> {
    return this.#tellsReads ? this.#takeSnapshot() : undefined;
  }

  /** What the database shows now, or showed a moment ago. */
  #findShown(mayBeOld: boolean): Promise<Shown | undefined> | Shown | undefined {
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
  #share(key: string, read: Read<Answer>, { sender }: Waiter): SharedTask<Answer> {
    const reads = this.#reads.get(key) ?? {};
    if (reads.next && !reads.next.isStopped) {
      this.#onLookup?.('shared');
      return reads.next;
    }
    this.#onLookup?.('miss');
    this.#reads.set(key, reads);
    const next = this.#startTask(
      () => {
        reads.next = undefined;
        return this.#read(key, read, reads);
      },
      sender,
      reads.underWay,
    );
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

  /** The answer under `key`, unless something has touched it. */
  #findKept(key: string): Answer | undefined {
    const kept = this.#kept?.get(key);
    if (!kept) return undefined;
    const { changes } = this.#snapshots;
    if (changes.isTouched(kept.answer.madeOf, kept.moment)) {
      this.#kept?.delete(key);
      this.#touched += 1;
      return undefined;
    }
    kept.moment = changes.now;
    return kept.answer;
  }

  /**
   * Keeps an answer that nothing is known to have touched since before it was read. Whatever is
   * committed after that moment will be asked about, whether the read has seen it or not.
   * @param before what the answer shows at least
   */
  #keep(key: string, answer: Answer, before: Shown | undefined): void {
    const { changes } = this.#snapshots;
    if (!answer.shareable || !before || changes.isTouched(answer.madeOf, before.moment)) return;
    const size = answer.size + key.length + sizeOf(answer.madeOf);
    this.#kept?.set(key, { answer, moment: changes.now }, { size });
  }

  /**
   * Learns what the database shows, and what was committed until now. Undefined when there is no way to know.
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

  #note(shown: Shown | undefined, askedAt: number): Shown | undefined {
    this.#latest = shown;
    this.#latestAt = askedAt;
    this.#clear();
    return shown;
  }

  /** Lets go of what nobody can be given any more, if that is all. */
  #clear(): void {
    const { now, start } = this.#snapshots.changes;
    if (start !== now || this.#clearedAt === now) return;
    this.#clearedAt = now;
    if (this.#kept?.size) this.#cleared += 1;
    this.#kept?.clear();
  }
}

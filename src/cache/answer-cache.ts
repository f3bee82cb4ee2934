// Keeps answers for as long as the database shows the same data.
import { LRUCache } from 'lru-cache';
import type { Snapshots } from '../database/snapshots.ts';
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
  #latest: string | undefined;
  /** The probe under way, and what becomes of it: worked out once for all who wait for it. */
  #probe:
    | { readonly taken: Promise<unknown>; readonly snapshot: Promise<string | undefined> }
    | undefined;
  #onLookup: ((outcome: Lookup) => void) | undefined;
  #hits = 0;
  #misses = 0;

  /** @param maxBytes most bytes of answers to keep; 0 keeps none */
  constructor(snapshots: Pick<Snapshots, 'takeNext'>, maxBytes: number, startTask: StartTask) {
    this.#snapshots = snapshots;
    this.#startTask = startTask;
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
   * @throws whatever the read fails with; HttpError 503 when it takes too long
   */
  async get<Value extends Answer>(
    key: string,
    read: () => Promise<Value>,
    waiter: Waiter,
  ): Promise<Value> {
    if (!this.#kept) return this.#startTask(read).wait(waiter);
    const snapshot = await this.#takeSnapshot();
    if (snapshot === undefined) return this.#startTask(read).wait(waiter);
    const kept = this.#kept.get(key);
    if (kept?.snapshot === snapshot) {
      this.#hits += 1;
      this.#onLookup?.('hit');
      return kept.answer as Value;
    }
    this.#misses += 1;
    return this.#share(key, read).wait(waiter) as Promise<Value>;
  }

  /**
   * The next read of `key` that has not begun: one that has may have missed what was committed
   * before this call. So there is one read at a time, however many ask.
   */
  #share(key: string, read: () => Promise<Answer>): SharedTask<Answer> {
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

  #read(key: string, read: () => Promise<Answer>, reads: Reads): Promise<Answer> {
    const before = this.#latest;
    const kept = this.#kept?.get(key);
    // The read before this one began late enough.
    if (kept && kept.snapshot === before) return Promise.resolve(kept.answer);
    const answer = read();
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
  #keep(key: string, answer: Answer, before: string | undefined): void {
    if (!answer.shareable || before === undefined || before !== this.#latest) return;
    this.#kept?.set(key, { snapshot: before, answer }, { size: answer.size + key.length });
  }

  /**
   * Forgets everything that an older snapshot showed. Undefined when there is no way to know.
   * @throws HttpError 503 when that took as long as a request may take
   */
  #takeSnapshot(): Promise<string | undefined> {
    const taken = this.#snapshots.takeNext();
    if (this.#probe?.taken !== taken) {
      const snapshot = taken.then(
        (name) => this.#note(name),
        (error) => {
          if (error instanceof HttpError) throw error;
          return this.#note(undefined);
        },
      );
      this.#probe = { taken, snapshot };
    }
    return this.#probe.snapshot;
  }

  #note(snapshot: string | undefined): string | undefined {
    if (snapshot !== this.#latest) {
      this.#latest = snapshot;
      this.#kept?.clear();
    }
    return snapshot;
  }
}

import { LRUCache } from 'lru-cache';
import type { Snapshots } from '../database/snapshots.ts';
import type { SharedTask, StartTask, Waiter } from '../database/task.ts';
import { HttpError, timedOut } from '../errors.ts';

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

/** The reads of one key: one under way, and one that starts when it has ended. */
interface Reads {
  /** Never rejects. */
  underWay: Promise<unknown>;
  next?: SharedTask<Answer>;
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
    const reads = this.#reads.get(key);
    if (!reads) return this.#startTask(() => this.#read(key, read));
    if (!reads.next || reads.next.isStopped) reads.next = this.#queue(key, reads, read);
    return reads.next;
  }

  #queue(key: string, reads: Reads, read: () => Promise<Answer>): SharedTask<Answer> {
    const next: SharedTask<Answer> = this.#startTask(async () => {
      await reads.underWay;
      const kept = this.#kept?.get(key);
      const isCurrent = kept !== undefined && kept.snapshot === this.#latest;
      if (reads.next === next && (isCurrent || next.isStopped)) this.#reads.delete(key);
      if (isCurrent) return kept.answer;
      if (next.isStopped) throw timedOut();
      return this.#read(key, read);
    });
    return next;
  }

  #read(key: string, read: () => Promise<Answer>): Promise<Answer> {
    const before = this.#latest;
    const answer = read();
    const reads: Reads = {
      underWay: answer
        .then((value) => this.#keep(key, value, before))
        .catch(() => {})
        .finally(() => {
          if (!reads.next) this.#reads.delete(key);
        }),
    };
    this.#reads.set(key, reads);
    return answer;
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
  async #takeSnapshot(): Promise<string | undefined> {
    const snapshot = await this.#snapshots.takeNext().catch((error) => {
      if (error instanceof HttpError) throw error;
      return undefined;
    });
    if (snapshot !== this.#latest) {
      this.#latest = snapshot;
      this.#kept?.clear();
    }
    return snapshot;
  }
}

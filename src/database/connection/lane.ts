// Bulkhead: a concurrency limit for one class of statements or requests, with a bounded queue: round robin over senders, and
// over the requests of each sender.
import { type HttpError, overloaded } from '../../errors.ts';

export interface LaneLimits {
  readonly slots: number;
  /** Most concurrent statements of one request, and of one sender. */
  readonly perRequest?: number;
  readonly perSender?: number;
  /** Most milliseconds in the queue. */
  readonly maxWait?: number;
}

/** What waiting for a slot or a connection needs of an `AbortSignal`. */
export interface StopSignal {
  readonly aborted: boolean;
  readonly reason: Error;
  throwIfAborted(): void;
  addEventListener(type: 'abort', listener: () => void, options?: { readonly once: true }): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}

export type LaneState = Readonly<Pick<Lane, 'refused' | 'running' | 'waiting'>>;

interface Waiting {
  readonly origin: Origin;
  readonly admit: () => void;
  readonly refuse: (error: unknown) => void;
}

/** Admits statements up to its limits. Others wait in a queue that is fair to senders, and to requests of a sender. */
export class Lane {
  readonly #queue = new FairQueue<Waiting>();
  /** Concurrent statements by request and by sender, if these have a limit. */
  readonly #underWay = new Map<Origin | string, number>();
  running = 0;
  /** Statements rejected since the start, because the queue was full or the wait too long. */
  refused = 0;

  /** @param isFull whether nothing more may wait: then an item of the sender with the most is evicted, or it is refused */
  constructor(
    private readonly limits: LaneLimits,
    private isFull: () => boolean = () => false,
  ) {}

  get waiting(): number {
    return this.#queue.size;
  }

  /** @param most length of the queue */
  limitWaiting(most: number): void {
    this.isFull = () => this.#queue.size >= most;
  }

  /** Acquires a slot: undefined when one was free, else a promise. @throws HttpError 503, or `signal.reason` */
  enter(origin: Origin, signal?: StopSignal): Promise<void> | undefined {
    // No request waits for the result of a stopped task.
    signal?.throwIfAborted();
    if (this.running < this.limits.slots && this.#isWithinLimits(origin)) {
      this.#begin(origin);
      return undefined;
    }
    return this.#wait(origin, signal);
  }

  /** Releases the slot. */
  leave(origin: Origin): void {
    this.running -= 1;
    this.#count(origin, -1);
    while (this.running < this.limits.slots) {
      const next = this.#queue.next((waiting) => this.#isWithinLimits(waiting));
      if (!next) return;
      this.#begin(next.origin);
      next.admit();
    }
  }

  async #wait(origin: Origin, signal: StopSignal | undefined): Promise<void> {
    const { maxWait } = this.limits;
    if (this.isFull()) {
      const evicted = this.#queue.evictFor(origin);
      if (!evicted) throw this.#refuse();
      evicted.refuse(this.#refuse());
    }
    let onAbort = () => {};
    let timer: NodeJS.Timeout | undefined;
    try {
      await new Promise<void>((admit, refuse) => {
        const waiting = { origin, admit, refuse };
        const withdraw = (error: unknown) => {
          this.#queue.remove(origin, waiting);
          refuse(error);
        };
        onAbort = () => withdraw(signal?.reason);
        signal?.addEventListener('abort', onAbort, { once: true });
        if (maxWait !== undefined) timer = setTimeout(() => withdraw(this.#refuse()), maxWait);
        this.#queue.add(origin, waiting);
      });
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
    }
  }

  #refuse(): HttpError {
    this.refused += 1;
    return overloaded();
  }

  #isWithinLimits(origin: Origin): boolean {
    const { perRequest = Number.POSITIVE_INFINITY, perSender = Number.POSITIVE_INFINITY } =
      this.limits;
    return (
      (this.#underWay.get(origin) ?? 0) < perRequest &&
      (this.#underWay.get(origin.sender) ?? 0) < perSender
    );
  }

  #begin(origin: Origin): void {
    this.running += 1;
    this.#count(origin, 1);
  }

  #count(origin: Origin, change: number): void {
    const { perRequest, perSender } = this.limits;
    if (perRequest !== undefined) this.#add(origin, change);
    if (perSender !== undefined) this.#add(origin.sender, change);
  }

  #add(key: Origin | string, change: number): void {
    const count = (this.#underWay.get(key) ?? 0) + change;
    if (count > 0) this.#underWay.set(key, count);
    else this.#underWay.delete(key);
  }
}

export interface Origin {
  /** Name of a viewer, an address, or the gateway. */
  readonly sender: string;
}

/** Queue of the items of senders: a sender with many items delays another sender's item by one item only. */
export class FairQueue<Item> {
  /** In the order of their turns: the sender that was served last is at the end. */
  readonly #senders = new Map<string, Map<Origin, Item[]>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(origin: Origin, item: Item): void {
    const requests = this.#senders.get(origin.sender) ?? new Map<Origin, Item[]>();
    this.#senders.set(origin.sender, requests);
    const items = requests.get(origin);
    if (items) items.push(item);
    else requests.set(origin, [item]);
    this.#size += 1;
  }

  /** Dequeues the next item. @param isReady false: the origin is skipped, and keeps its turn */
  next(isReady: (origin: Origin) => boolean = () => true): Item | undefined {
    for (const [sender, requests] of this.#senders) {
      for (const [origin, items] of requests) {
        if (!isReady(origin)) continue;
        const item = items[0] as Item;
        this.remove(origin, item);
        moveToEnd(requests, origin);
        moveToEnd(this.#senders, sender);
        return item;
      }
    }
    return undefined;
  }

  remove(origin: Origin, item: Item): void {
    const requests = this.#senders.get(origin.sender);
    const items = requests?.get(origin);
    const index = items?.indexOf(item) ?? -1;
    if (!requests || !items || index < 0) return;
    items.splice(index, 1);
    this.#size -= 1;
    if (items.length === 0) requests.delete(origin);
    if (requests.size === 0) this.#senders.delete(origin.sender);
  }

  /** Evicts the newest item of the sender with the most items, if that has at least two more than this sender. */
  evictFor({ sender }: Origin): Item | undefined {
    const counts = [...this.#senders].map(([name, requests]) => ({
      name,
      requests,
      count: [...requests.values()].reduce((sum, items) => sum + items.length, 0),
    }));
    const longest = counts.reduce((a, b) => (b.count > a.count ? b : a), counts[0] as never);
    const own = counts.find(({ name }) => name === sender)?.count ?? 0;
    if (!longest || longest.count < own + 2) return undefined;
    const [origin, items] = [...longest.requests].at(-1) as [Origin, Item[]];
    const item = items.at(-1) as Item;
    this.remove(origin, item);
    return item;
  }
}

function moveToEnd<Key, Value>(map: Map<Key, Value>, key: Key): void {
  const value = map.get(key);
  if (value === undefined) return;
  map.delete(key);
  map.set(key, value);
}

// Fair queue: round robin over senders, and over the requests of each sender.

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

// A bounded number of names that clients choose: each costs memory and a series of the metrics for good.
import { LRUCache } from 'lru-cache';

/** The name under which names beyond the limit are counted together. */
const other = 'other';

/** Milliseconds without a request after which a name makes room for a new one. */
const idleTimeout = 600_000;

/** One value for each name up to a maximum; other names share one. */
export class BoundedNames<Value extends object> {
  readonly #values: LRUCache<string, Value>;
  #other: Value | undefined;

  constructor(
    private readonly max: number,
    private readonly create: (name: string) => Value,
  ) {
    // Who is idle stays until there is no room.
    const kept = { allowStale: true, noDeleteOnStaleGet: true, ttlResolution: 0 };
    this.#values = new LRUCache({ max, ttl: idleTimeout, ...kept });
  }

  /** The value of a name that is in use. */
  get(name: string): Value {
    const known = this.#values.get(name);
    if (!known && this.#values.size === this.max) this.#values.purgeStale();
    if (!known && this.#values.size === this.max) {
      this.#other ??= this.create(other);
      return this.#other;
    }
    const value = known ?? this.create(name);
    this.#values.set(name, value);
    return value;
  }

  *values(): Generator<Value> {
    for (const value of this.#values.rvalues()) if (value) yield value;
    if (this.#other !== undefined) yield this.#other;
  }
}

interface ClientCount {
  readonly client: string;
  readonly name: string;
  requests: number;
}

const maxClients = 50;

/** Counts by client and a second name, such as a path or a parameter. */
export class ClientCounts {
  readonly #clients: BoundedNames<BoundedNames<ClientCount>>;

  /** @param max second names for each client */
  constructor(max: number) {
    this.#clients = new BoundedNames(
      maxClients,
      (client) => new BoundedNames(max, (name) => ({ client, name, requests: 0 })),
    );
  }

  /** @returns the count after this request */
  count(client: string, name: string): ClientCount {
    const found = this.#clients.get(client).get(name);
    found.requests += 1;
    return found;
  }

  *[Symbol.iterator](): Generator<ClientCount> {
    for (const names of this.#clients.values()) yield* names.values();
  }
}

// A bounded number of names that clients choose: each costs memory and a series of the metrics for good.

/** The name under which names beyond the limit are counted together. */
export const other = 'other';

/** Requests from which on a name counts as established, not as noise. */
const established = 100;
/** Milliseconds without a request after which a name may be evicted for a new one. */
const idleTimeout = { passing: 60_000, established: 86_400_000 };

interface Entry<Value> {
  readonly value: Value;
  requests: number;
  lastSeen: number;
}

/** One value per name up to a maximum; other names share one. Evicts idle names: after a day, or a minute if rare. */
export class BoundedNames<Value> {
  readonly #entries = new Map<string, Entry<Value>>();
  #other: Value | undefined;
  /** Time of the next possible eviction, so that a flood of names does not cost a search per request. */
  #fullUntil = 0;

  constructor(
    private readonly max: number,
    private readonly create: (name: string) => Value,
  ) {}

  /** The value of a name that is in use. */
  get(name: string): Value {
    const now = performance.now();
    const entry = this.#entries.get(name);
    if (entry) {
      entry.requests += 1;
      entry.lastSeen = now;
      return entry.value;
    }
    if (name === other || !this.#makeRoom(now)) {
      this.#other ??= this.create(other);
      return this.#other;
    }
    const value = this.create(name);
    this.#entries.set(name, { value, requests: 1, lastSeen: now });
    return value;
  }

  *values(): Generator<Value> {
    for (const { value } of this.#entries.values()) yield value;
    if (this.#other !== undefined) yield this.#other;
  }

  #makeRoom(now: number): boolean {
    if (this.#entries.size < this.max) return true;
    if (now < this.#fullUntil) return false;
    let idlest: string | undefined;
    let earliest = Number.POSITIVE_INFINITY;
    for (const [name, { requests, lastSeen }] of this.#entries) {
      const until = lastSeen + idleTimeout[requests < established ? 'passing' : 'established'];
      if (until < earliest) [idlest, earliest] = [name, until];
    }
    if (idlest === undefined || now < earliest) {
      this.#fullUntil = earliest;
      return false;
    }
    return this.#entries.delete(idlest);
  }
}

export interface ClientCount {
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

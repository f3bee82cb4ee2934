// Bounded cardinality: names that clients choose are counted separately up to a limit, since each costs memory and a
// line of the metrics.

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
  /** Names that were evicted. */
  evicted = 0;
  /** Time of the next possible eviction, so that a flood of names does not cost a search per request. */
  #fullUntil = 0;

  constructor(
    private readonly max: number,
    private readonly create: (name: string) => Value,
  ) {}

  /** The value of a name, and counts a request. */
  count(name: string, now: number): Value {
    return this.#find(name, now, 1);
  }

  /** The value of a name whose request is counted elsewhere, as when it is logged. */
  lookup(name: string, now: number): Value {
    return this.#find(name, now, 0);
  }

  #find(name: string, now: number, requests: number): Value {
    const entry = this.#entries.get(name);
    if (entry) {
      entry.requests += requests;
      entry.lastSeen = now;
      return entry.value;
    }
    if (name === other || !this.#makeRoom(now)) {
      this.#other ??= this.create(other);
      return this.#other;
    }
    const value = this.create(name);
    this.#entries.set(name, { value, requests, lastSeen: now });
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
    this.#entries.delete(idlest);
    this.evicted += 1;
    return true;
  }
}

// Names that clients choose, told apart up to a bound: each costs memory, and a line of the metrics.

/** What all names beyond the bound share. */
export const other = 'other';

/** From how many requests on a name is in use, and no passing rubbish. */
const established = 100;
/** Milliseconds of quiet after which a name gives way to a new one, when there is no place left. */
const patience = { passing: 60_000, established: 86_400_000 };

interface Entry<Value> {
  readonly value: Value;
  requests: number;
  lastSeen: number;
}

/**
 * A value for each name, for at most so many names at a time; the rest share one. A name gives way when it has been
 * quiet for a day, or for a minute if it came fewer than 100 times: so rubbish keeps others out only while it goes on.
 */
export class BoundedNames<Value> {
  readonly #max: number;
  readonly #create: (name: string) => Value;
  readonly #entries = new Map<string, Entry<Value>>();
  #other: Value | undefined;
  #forgotten = 0;
  /** Before this moment none of them can give way: so a flood is not searched for each request. */
  #fullUntil = 0;

  constructor(max: number, create: (name: string) => Value) {
    this.#max = max;
    this.#create = create;
  }

  /** How many names have given way. */
  get forgotten(): number {
    return this.#forgotten;
  }

  /**
   * The value of a name, which counts as seen now.
   * @param now milliseconds since 1970
   * @param requests 0 for one that is counted elsewhere: being logged too is no other use
   */
  take(name: string, now: number, requests = 1): Value {
    const known = this.#entries.get(name);
    if (known) {
      known.requests += requests;
      known.lastSeen = now;
      return known.value;
    }
    if (name === other || !this.#hasPlace(now)) {
      this.#other ??= this.#create(other);
      return this.#other;
    }
    const value = this.#create(name);
    this.#entries.set(name, { value, requests, lastSeen: now });
    return value;
  }

  *values(): Generator<Value> {
    for (const { value } of this.#entries.values()) yield value;
    if (this.#other !== undefined) yield this.#other;
  }

  #hasPlace(now: number): boolean {
    if (this.#entries.size < this.#max) return true;
    if (now < this.#fullUntil) return false;
    let next: string | undefined;
    let moment = Number.POSITIVE_INFINITY;
    for (const [name, { requests, lastSeen }] of this.#entries) {
      const until = lastSeen + patience[requests < established ? 'passing' : 'established'];
      if (until < moment) [next, moment] = [name, until];
    }
    if (next === undefined || now < moment) {
      this.#fullUntil = moment;
      return false;
    }
    this.#entries.delete(next);
    this.#forgotten += 1;
    return true;
  }
}

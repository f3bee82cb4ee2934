// Names that clients choose, told apart up to a bound: each costs memory, and a line of the metrics.

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

/** A value for each of so many names; the rest share one. A quiet name gives way, after a day, or a minute if rare. */
export class BoundedNames<Value> {
  readonly #entries = new Map<string, Entry<Value>>();
  #other: Value | undefined;
  /** How many names have given way. */
  forgotten = 0;
  /** Before this moment none of them can give way: so a flood is not searched for each request. */
  #fullUntil = 0;

  constructor(
    private readonly max: number,
    private readonly create: (name: string) => Value,
  ) {}

  /** The value of a name, seen now. @param requests 0 for one that is counted elsewhere, as when it is logged */
  take(name: string, now: number, requests = 1): Value {
    const known = this.#entries.get(name);
    if (known) {
      known.requests += requests;
      known.lastSeen = now;
      return known.value;
    }
    if (name === other || !this.#hasPlace(now)) {
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

  #hasPlace(now: number): boolean {
    if (this.#entries.size < this.max) return true;
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
    this.forgotten += 1;
    return true;
  }
}

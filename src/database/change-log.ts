// Remembers what commits have changed for a while, so that answers can be asked whether that touches them.
import type { Changes, ListPart, MadeOf, OutfitChange } from './changes.ts';

/** Most changes that are kept: asking about all of them takes some hundredths of a millisecond. */
const defaultMax = 10_000;

interface Noted extends OutfitChange {
  readonly moment: number;
}

/**
 * Counts the moments at which the database was seen to show something new, and knows what was
 * committed between them. Answers are asked about when they are wanted again, not when something
 * changes: so a change costs the same however many answers there are.
 */
export class ChangeLog {
  #now = 0;
  /** Of what was committed by then, nothing is known. */
  #start = 0;
  #outfitChanges: Noted[] = [];
  /** When an outfit or a user was last seen to have changed. */
  readonly #outfits = new Map<number, number>();
  readonly #users = new Map<number, number>();
  #anyUser = 0;
  readonly #max: number;

  /** @param max most changes that are kept */
  constructor(max = defaultMax) {
    this.#max = max;
  }

  /** The latest moment. */
  get now(): number {
    return this.#now;
  }

  /** What was read before this moment may have been changed by anything. */
  get start(): number {
    return this.#start;
  }

  /**
   * Something was committed since the latest moment.
   * @param changes undefined: nobody knows what
   */
  add(changes: Changes | undefined): void {
    this.#now += 1;
    if (!changes) this.#forget(this.#now);
    for (const change of changes?.outfits ?? []) {
      this.#outfitChanges.push({ ...change, moment: this.#now });
      this.#outfits.set(change.id, this.#now);
    }
    for (const id of changes?.users ?? []) {
      this.#users.set(id, this.#now);
      this.#anyUser = this.#now;
    }
    if (this.#outfitChanges.length > this.#max || this.#users.size > this.#max) {
      this.#forget(this.#outfitChanges.at(-(this.#max >> 1))?.moment ?? this.#now);
    }
  }

  /**
   * Whether what was read may be something else by now.
   * @param madeOf undefined: any commit may have changed it
   * @param since a moment no later than the reading's begin, or one for which this was false
   */
  isTouched(madeOf: MadeOf | undefined, since: number): boolean {
    if (since === this.#now) return false;
    if (since < this.#start || !madeOf) return true;
    const { outfits = [], users = [], lists = [], anyUser = false } = madeOf;
    if (anyUser && this.#anyUser > since) return true;
    for (const id of outfits) if ((this.#outfits.get(id) ?? 0) > since) return true;
    for (const id of users) if ((this.#users.get(id) ?? 0) > since) return true;
    return lists.some((list) => this.#isListTouched(list, since));
  }

  #isListTouched({ aspects, isTouched }: ListPart, since: number): boolean {
    for (let index = this.#outfitChanges.length - 1; index >= 0; index--) {
      const change = this.#outfitChanges[index] as Noted;
      if (change.moment <= since) return false;
      if (change.aspects & aspects && isTouched(change.before, change.after)) return true;
    }
    return false;
  }

  #forget(until: number): void {
    this.#start = until;
    this.#outfitChanges = this.#outfitChanges.filter(({ moment }) => moment > until);
    for (const moments of [this.#outfits, this.#users]) {
      for (const [id, moment] of moments) if (moment <= until) moments.delete(id);
    }
  }
}

// Random choices, the same for the same seed.

/** Gives whole numbers from 0 to below its argument. */
export type Random = (below: number) => number;

export function randomOf(seed: number): Random {
  const dice = new Dice(seed);
  return (below) => dice.below(below);
}

export class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** Dice of their own for things that happen at the same time: the order in which they are thrown must not count. */
  split(count: number): Dice[] {
    return Array.from({ length: count }, () => new Dice(this.below(2 ** 32)));
  }

  /** A number below 1. By mulberry32. */
  number(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number below `most`. */
  below(most: number): number {
    return Math.floor(this.number() * most);
  }

  chance(share: number): boolean {
    return this.number() < share;
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[this.below(items.length)] as Item;
  }

  times<Item>(most: number, make: (index: number) => Item): Item[] {
    return Array.from({ length: this.below(most + 1) }, (_, index) => make(index));
  }

  /** The same word in other letters: upper and lower case by chance. */
  spell(word: string): string {
    return [...word].map((it) => (this.chance(0.4) ? it.toUpperCase() : it.toLowerCase())).join('');
  }

  /** One piece, or several. */
  cut(bytes: Buffer): Buffer[] {
    if (this.chance(0.5)) return [bytes];
    const at = this.below(bytes.length + 1);
    return [bytes.subarray(0, at), bytes.subarray(at)];
  }
}

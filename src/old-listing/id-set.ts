// A set of ids as a sparse bitmap.
const idsPerBlock = 1 << 16;

/** Ten million neighbours take 1.3 MB, where a Set takes 400 MB and ends at 16.7 million. */
export class IdSet {
  readonly #blocks = new Map<number, Uint8Array>();
  #size = 0;
  /** Numbers that are no integers of 32 bits, which no outfit has: they may be far apart. */
  readonly #others = new Set<number>();

  get size(): number {
    return this.#size + this.#others.size;
  }

  has(id: number): boolean {
    if ((id | 0) !== id) return this.#others.has(id);
    const { block, index, bit } = this.#find(id);
    return ((block?.[index] ?? 0) & bit) !== 0;
  }

  add(id: number): boolean {
    if ((id | 0) !== id) {
      const { size } = this.#others;
      return this.#others.add(id).size > size;
    }
    const { key, index, bit, block = new Uint8Array(idsPerBlock / 8) } = this.#find(id);
    const bits = block[index] ?? 0;
    if (bits & bit) return false;
    block[index] = bits | bit;
    this.#blocks.set(key, block);
    this.#size++;
    return true;
  }

  [Symbol.iterator](): Generator<number> {
    return this.without(new IdSet());
  }

  *without(other: IdSet): Generator<number> {
    for (const id of this.#others) if (!other.has(id)) yield id;
    for (const [key, block] of this.#blocks) {
      const others = other.#blocks.get(key);
      for (const [index, bits] of block.entries()) {
        const left = bits & ~(others?.[index] ?? 0);
        for (let bit = 0; left >> bit; bit++) {
          if ((left >> bit) & 1) yield key * idsPerBlock + index * 8 + bit;
        }
      }
    }
  }

  #find(id: number) {
    const key = Math.floor(id / idsPerBlock);
    const place = id - key * idsPerBlock;
    return { key, index: place >> 3, bit: 1 << (place & 7), block: this.#blocks.get(key) };
  }
}

// Records of one side, as digests.
import { readProperty } from '../import/record.ts';
import { digestOf } from './compare.ts';

/** Records whose values are held too, so that a small listing need not be read again. */
const maxHeld = 10_000;

/**
 * The records of a listing in its order, some 40 bytes each: what they say is kept as a digest, in
 * typed arrays with a hash table of our own (a Map takes three times as much, and ends at 16.7
 * million).
 */
export class Records {
  /** How many there are; their numbers are smaller than this. */
  size = 0;
  readonly #held = new Map<number, unknown>();
  #order: Uint32Array | undefined;
  #ids = new Int32Array(1024);
  #digests = new BigUint64Array(1024);
  #likes = new Float64Array(1024);
  /** The number of a record + 1 where its id leads, or behind; 0: free. Never half full. */
  #slots = new Int32Array(4096);

  /** Of a record that comes twice the last one counts, as it does in an import. */
  set(id: number, record: unknown): void {
    let number = this.find(id);
    if (number === -1) {
      if (this.size === this.#ids.length) this.#grow();
      number = this.size++;
      this.#ids[number] = id;
      this.#slots[this.#findSlot(id)] = number + 1;
    }
    this.#digests[number] = digestOf(record);
    this.#likes[number] = likesOf(record);
    if (number < maxHeld) this.#held.set(number, record);
  }

  /** All numbers, in the order of the listing. */
  *numbers(): Generator<number> {
    for (let place = 0; place < this.size; place++) yield this.#order?.[place] ?? place;
  }

  /** From now on they are in the order of their likes; equal ones stay as they are. */
  sortByLikes(): void {
    this.#order = Uint32Array.from({ length: this.size }, (_, number) => number);
    this.#order.sort((a, b) => this.likesOf(a) - this.likesOf(b) || a - b);
  }

  /** The number of the record with this id, or -1. */
  find(id: number): number {
    return (this.#slots[this.#findSlot(id)] ?? 0) - 1;
  }

  idOf(number: number): number {
    return this.#ids[number] ?? Number.NaN;
  }

  likesOf(number: number): number {
    return this.#likes[number] ?? Number.NaN;
  }

  isSame(number: number, record: unknown): boolean {
    return this.#digests[number] === digestOf(record);
  }

  /** The record itself, if it is held. */
  valueOf(number: number): unknown {
    return this.#held.get(number);
  }

  #findSlot(id: number): number {
    const slots = this.#slots;
    const mask = slots.length - 1;
    // Fibonacci hashing: neighbours are spread, and so are multiples of a power of two.
    let slot = Math.imul(id, 0x9e3779b1) >>> (Math.clz32(slots.length) + 1);
    for (;;) {
      const number = slots[slot] ?? 0;
      if (number === 0 || this.#ids[number - 1] === id) return slot;
      slot = (slot + 1) & mask;
    }
  }

  #grow(): void {
    const length = 2 * this.size;
    const [ids, digests, likes] = [this.#ids, this.#digests, this.#likes];
    this.#ids = new Int32Array(length);
    this.#digests = new BigUint64Array(length);
    this.#likes = new Float64Array(length);
    this.#ids.set(ids);
    this.#digests.set(digests);
    this.#likes.set(likes);
    this.#slots = new Int32Array(4 * length);
    for (const [number, id] of ids.entries()) this.#slots[this.#findSlot(id)] = number + 1;
  }
}

export function likesOf(record: unknown): number {
  return Number(readProperty(record, 'likes'));
}

// The records of saved files, as digests: files may have any order, so all must be held.
import { hash } from 'node:crypto';
import { formatTimestamp, parseTimestamp } from '../outfits/timestamps.ts';

/** Records whose values are held too, so that few files need be read again. */
const maxHeld = 10_000;

/**
 * The records of a source in its order, some 30 bytes each: what they say is kept as a digest, in
 * typed arrays with a hash table of our own (a Map takes three times as much, and ends at 16.7
 * million).
 */
export class Records {
  /** How many there are; their numbers are smaller than this. */
  size = 0;
  readonly #held = new Map<number, unknown>();
  #ids = new Int32Array(1024);
  #digests = new BigUint64Array(1024);
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
    if (number < maxHeld) this.#held.set(number, record);
  }

  /** The number of the record with this id, or -1. */
  find(id: number): number {
    return (this.#slots[this.#findSlot(id)] ?? 0) - 1;
  }

  idOf(number: number): number {
    return this.#ids[number] ?? Number.NaN;
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
    const [ids, digests] = [this.#ids, this.#digests];
    this.#ids = new Int32Array(length);
    this.#digests = new BigUint64Array(length);
    this.#ids.set(ids);
    this.#digests.set(digests);
    this.#slots = new Int32Array(4 * length);
    for (const [number, id] of ids.entries()) this.#slots[this.#findSlot(id)] = number + 1;
  }
}

/** 64 bits that are the same for two records that differ in digits of moments at most. */
function digestOf(record: unknown): bigint {
  const text = JSON.stringify(record, (key, value) => normalize(key, value) ?? value);
  return hash('sha1', text, 'buffer').readBigUInt64LE();
}

/** The field of a record whose moment has not the six digits that are written here. */
export function findShortFraction(record: unknown): string | undefined {
  return ['created', 'modified'].find((field) => {
    const value: unknown = Object(record)[field];
    const normal = normalize(field, value);
    return normal !== undefined && normal !== value;
  });
}

function normalize(key: string, value: unknown): string | undefined {
  if ((key !== 'created' && key !== 'modified') || typeof value !== 'string') return undefined;
  const moment = parseTimestamp(value);
  return moment === undefined ? undefined : formatTimestamp(moment);
}

// Places and bytes that clients hold, in all and by sender: streams, sockets, bodies that have not arrived yet.
import type { IncomingMessage } from 'node:http';
import { getHeapStatistics } from 'node:v8';

interface Limits {
  readonly places: number;
  readonly bytes: number;
}

interface Holder {
  readonly places: Set<Place>;
  bytes: number;
}

/** What one connection or stream holds. */
export interface Place {
  /** Bytes that it holds from now on. When all are taken, the newest place of the largest holder ends: this one, maybe. */
  hold(bytes: number): void;
  /** Its client has named itself. */
  moveTo(sender: string): void;
  release(): void;
}

/** Bytes for each kind of what clients hold: 64 MB of a heap of 512. */
export const shareOfHeap = () => getHeapStatistics().heap_size_limit / 8;

/**
 * Any sender may use what is idle. When all places or bytes are taken, the newest place of the sender that holds the
 * most ends, so that another sender may come.
 */
export class Places {
  readonly #holders = new Map<string, Holder>();
  /** What ends a place for another sender. */
  readonly #ends = new Map<Place, () => void>();
  #bytes = 0;

  constructor(private readonly limits: Limits) {}

  get bytes(): number {
    return this.#bytes;
  }

  /**
   * @param end ends this place for another sender; it is released by then
   * @returns undefined: everything is taken, and nobody holds more than this sender would
   */
  take(sender: string, bytes: number, end: () => void): Place | undefined {
    const own = this.#holders.get(sender);
    while (this.#ends.size >= this.limits.places) {
      if (!this.#endNewest(({ places }) => places.size, (own?.places.size ?? 0) + 1)) return;
    }
    while (this.#bytes + bytes > this.limits.bytes) {
      if (!this.#endNewest((holder) => holder.bytes, (own?.bytes ?? 0) + bytes)) return;
    }
    let holder = sender;
    let held = bytes;
    const place: Place = {
      hold: (changed) => {
        if (!this.#ends.has(place) || changed === held) return;
        this.#add(holder, changed - held);
        held = changed;
        while (this.#bytes > this.limits.bytes && this.#endNewest(({ bytes }) => bytes, 0));
      },
      moveTo: (other) => {
        if (!this.#ends.has(place) || other === holder) return;
        this.#remove(holder, place, held);
        holder = other;
        this.#add(holder, held, place);
      },
      release: () => {
        if (this.#ends.delete(place)) this.#remove(holder, place, held);
      },
    };
    this.#ends.set(place, end);
    this.#add(holder, held, place);
    return place;
  }

  #add(sender: string, bytes: number, place?: Place): void {
    const holder = this.#holders.get(sender) ?? { places: new Set(), bytes: 0 };
    this.#holders.set(sender, holder);
    if (place) holder.places.add(place);
    holder.bytes += bytes;
    this.#bytes += bytes;
  }

  #remove(sender: string, place: Place, bytes: number): void {
    const holder = this.#holders.get(sender) as Holder;
    this.#add(sender, -bytes);
    holder.places.delete(place);
    if (holder.places.size === 0) this.#holders.delete(sender);
  }

  /** Ends the newest place of the sender that holds the most, if that is more than `least`. */
  #endNewest(sizeOf: (holder: Holder) => number, least: number): boolean {
    let largest: Holder | undefined;
    let most = least;
    for (const holder of this.#holders.values()) {
      if (sizeOf(holder) > most) {
        largest = holder;
        most = sizeOf(holder);
      }
    }
    const newest = largest && [...largest.places].at(-1);
    const end = newest && this.#ends.get(newest);
    newest?.release();
    end?.();
    return newest !== undefined;
  }
}

/** Bytes of the address and the headers, which a connection keeps as long as its request. */
export function bytesOfHead({ url = '', headers }: IncomingMessage): number {
  return url.length + JSON.stringify(headers).length;
}

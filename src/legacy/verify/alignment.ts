// Matches the records of two listings by id while they are read. A record that one listing lacks shifts all
// later records onto other pages, and must be reported once, not on every later page.
import { IdSet } from '../../old-listing/id-set.ts';
import { SourceError } from '../../old-listing/page.ts';
import type { PageRecord } from '../compare/listing-page.ts';
import type { Both, Side } from './compared-service.ts';

export interface Placed extends PageRecord {
  readonly page: number;
  /** Index in its listing. */
  readonly place: number;
  /** Whether a neighbour has the same sort value; known once the next record has come. */
  isTied: boolean;
}

/** A record that stands on different pages of the two listings. */
export type Moved = Both<Placed>;

/** Unmatched records of a listing whose values are kept, and those after which a comparison makes no sense. */
const maxHeld = 50_000;
const maxWaiting = 1_000_000;

export class Alignment {
  /** Current offset between the places of matched records: ours minus theirs. */
  shift = 0;
  readonly #lists = { theirs: new UnmatchedRecords(), ours: new UnmatchedRecords() };

  /** @param common gets the ids of matched records */
  constructor(private readonly common?: IdSet) {}

  /** @returns the records that stand on different pages, as far as both values are still there */
  add(side: Side, records: readonly PageRecord[], page: number): Moved[] {
    const [own, other] =
      side === 'theirs' ? (['theirs', 'ours'] as const) : (['ours', 'theirs'] as const);
    const moved: Moved[] = [];
    for (const record of records) {
      const placed = this.#lists[own].place(record, page);
      if (!placed) continue;
      const match = this.#lists[other].take(placed.id);
      if (!match) {
        this.#lists[own].wait(placed);
        continue;
      }
      const both = { [own]: placed, [other]: match } as Both<Placed>;
      this.common?.add(toNumber(placed.id) ?? 0);
      this.shift = both.ours.place - both.theirs.place;
      if (match.page !== page && match.value !== undefined) moved.push(both);
    }
    return moved;
  }

  /** Records that only one listing has. */
  get unmatched(): Both<readonly Placed[]> {
    const { theirs, ours } = this.#lists;
    return { theirs: [...theirs.waiting.values()], ours: [...ours.waiting.values()] };
  }
}

class UnmatchedRecords {
  readonly waiting = new Map<string, Placed>();
  readonly #seen = new IdSet();
  #places = 0;
  #last: Placed | undefined;

  /** Undefined for a repeated record: insertions before it shifted it onto this page. */
  place(record: PageRecord, page: number): Placed | undefined {
    const number = toNumber(record.id);
    if (number === undefined ? this.waiting.has(record.id) : !this.#seen.add(number))
      return undefined;
    const last = this.#last;
    const isTied = last?.key === record.key;
    if (last && isTied) last.isTied = true;
    this.#last = { ...record, page, place: this.#places++, isTied };
    return this.#last;
  }

  /** @throws SourceError when too many have no match: the listings are not the same one */
  wait(record: Placed): void {
    const { size } = this.waiting;
    if (size >= maxWaiting) {
      throw new SourceError(
        `More than ${maxWaiting} outfits are in one listing only: import first.`,
      );
    }
    this.waiting.set(record.id, size < maxHeld ? record : { ...record, value: undefined });
  }

  take(id: string): Placed | undefined {
    const record = this.waiting.get(id);
    this.waiting.delete(id);
    return record;
  }
}

/** The number of an outfit, or undefined for any other id. */
export function toNumber(id: string): number | undefined {
  const number = Number(id);
  return number === (number | 0) && `${number}` === id ? number : undefined;
}

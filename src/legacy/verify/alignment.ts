// Merges two listings record by record while they are read. A record that one listing lacks shifts all
// later records, and must be reported once, not on every later page.
import { SourceError } from '../../old-listing/page.ts';
import type { PageRecord } from '../compare/listing-page.ts';

interface AlignmentEvents {
  matched(id: string): void;
  matchedAcrossPages(theirs: Placed, ours: Placed): void;
  /** The record comes after `before` in the source, but not here. */
  misplaced(theirs: Placed, before: Placed, ours: Placed): void;
}

/** Records whose order is checked later, because a record before them has no match yet. */
const maxQueued = 10_000;

interface Queued {
  readonly theirs: Placed;
  ours: Placed | undefined;
}

/** Records that only one listing has. */
interface OneSided {
  readonly missing: readonly Placed[];
  readonly additional: readonly Placed[];
}

export class Alignment {
  /** Records with equal sort values that come in another order among themselves. */
  tied = 0;
  /** Current offset between the places of matched records: ours minus theirs. */
  shift = 0;
  readonly #theirs = new RecordStream();
  readonly #ours = new RecordStream();
  /** The source in its order, from the first record without a match. */
  readonly #queue = new Map<string, Queued>();
  #group: { key: string; last: Placed; max: number; before: number } | undefined;
  /** The last record of the source whose order was checked. */
  #furthest: { readonly theirs: Placed; readonly ours: Placed } | undefined;
  constructor(private readonly events: AlignmentEvents) {}

  add(side: 'theirs' | 'ours', records: readonly PageRecord[], page: number): void {
    const stream = side === 'theirs' ? this.#theirs : this.#ours;
    const other = side === 'theirs' ? this.#ours : this.#theirs;
    for (const record of records) {
      const placed = stream.place(record, page);
      if (!placed) continue;
      if (side === 'theirs') this.#queue.set(placed.id, { theirs: placed, ours: undefined });
      const match = other.take(placed.id);
      if (!match) stream.wait(placed);
      else if (side === 'theirs') this.#match(placed, match);
      else this.#match(match, placed);
    }
    this.#advance();
  }

  finish(): OneSided {
    this.#advance(true);
    return { missing: this.#theirs.waiting(), additional: this.#ours.waiting() };
  }

  #match(theirs: Placed, ours: Placed): void {
    const queued = this.#queue.get(theirs.id);
    if (queued) queued.ours = ours;
    else this.#followLate(theirs, ours);
    this.shift = ours.place - theirs.place;
    this.events.matched(theirs.id);
    const isHeld = theirs.text !== '' && ours.text !== '';
    if (isHeld && theirs.page !== ours.page) this.events.matchedAcrossPages(theirs, ours);
  }

  #advance(isEnd = false): void {
    for (const [id, { theirs, ours }] of this.#queue) {
      if (!ours && !isEnd && this.#queue.size <= maxQueued) return;
      this.#queue.delete(id);
      // With another sort value it belongs elsewhere; the value is reported as the difference.
      if (ours && ours.key === theirs.key) this.#follow(theirs, ours);
    }
  }

  /** Here it comes after all checked records; in the source it must, too. */
  #followLate(theirs: Placed, ours: Placed): void {
    if (theirs.key !== ours.key) return;
    const furthest = this.#furthest;
    if (!furthest || furthest.theirs.place < theirs.place) this.#furthest = { theirs, ours };
    else if (furthest.theirs.key === theirs.key) this.tied++;
    else this.events.misplaced(furthest.theirs, theirs, furthest.ours);
  }

  /** Comparing neighbours is enough: if each comes after the one before it, the order is the same. */
  #follow(theirs: Placed, ours: Placed): void {
    if ((this.#furthest?.theirs.place ?? -1) < theirs.place) this.#furthest = { theirs, ours };
    const group = this.#group;
    if (group?.key === theirs.key) {
      if (ours.place < group.max) this.tied++;
      if (ours.place < group.before) this.events.misplaced(theirs, group.last, ours);
      group.max = Math.max(group.max, ours.place);
      group.last = theirs;
      return;
    }
    const before = group?.max ?? -1;
    if (group && ours.place < before) this.events.misplaced(theirs, group.last, ours);
    this.#group = { key: theirs.key, last: theirs, max: ours.place, before };
  }
}

export interface Placed extends PageRecord {
  /** Empty when too many records wait for their match. */
  text: string;
  readonly page: number;
  /** Index in its listing. */
  readonly place: number;
  /** Whether a neighbour has the same sort value; known once the next record has come. */
  isTied: boolean;
}

/** Unmatched records of a listing whose texts are held, and those after which a comparison makes no sense. */
const maxHeld = 100_000;
const maxWaiting = 1_000_000;
/** Records of a listing that are recognised when insertions before them shift them onto the next page. */
const maxRecent = 2_000;

/** One listing, and its unmatched records. */
class RecordStream {
  readonly #waiting = new Map<string, Placed>();
  readonly #recent = new Set<string>();
  #places = 0;
  last: Placed | undefined;

  /** Undefined for a repeated record: insertions before it shifted it onto this page. */
  place(record: PageRecord, page: number): Placed | undefined {
    if (this.#recent.has(record.id) || this.#waiting.has(record.id)) return undefined;
    this.#recent.add(record.id);
    const [oldest] = this.#recent;
    if (this.#recent.size > maxRecent && oldest) this.#recent.delete(oldest);
    const { id, key, text } = record;
    const isTied = this.last?.key === key;
    if (this.last && isTied) this.last.isTied = true;
    // A substring would keep the text of its whole page in memory.
    this.last = { id, key: copy(key), text: copy(text), page, place: this.#places++, isTied };
    return this.last;
  }

  /** @throws SourceError when too many have no match: the listings are not the same one */
  wait(record: Placed): void {
    const { size } = this.#waiting;
    if (size >= maxWaiting) {
      throw new SourceError(
        `More than ${maxWaiting} outfits are in one listing only: import first.`,
      );
    }
    if (size >= maxHeld) record.text = '';
    this.#waiting.set(record.id, record);
  }

  take(id: string): Placed | undefined {
    const record = this.#waiting.get(id);
    this.#waiting.delete(id);
    return record;
  }

  waiting(): Placed[] {
    return [...this.#waiting.values()];
  }
}

const copy = (text: string) => Buffer.from(text).toString();

/** The number of an outfit, or undefined for any other id. */
export function toNumber(id: string): number | undefined {
  const number = Number(id);
  return number === (number | 0) && number > 0 && `${number}` === id ? number : undefined;
}

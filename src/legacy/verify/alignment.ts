// Two listings, brought together record by record while they are read: a record that one of them
// lacks moves all that follow it, and must be told once, not on every later page.
import { IdSet } from '../../transfer/source/id-set.ts';
import type { PageRecord } from '../compare/listing-page.ts';

interface AlignmentEvents {
  both(id: string): void;
  apart(theirs: Placed, ours: Placed): void;
  /** It comes behind `before` in the source, but not here. */
  misplaced(theirs: Placed, before: Placed, ours: Placed): void;
}

/** Records whose order is held back until those before them are found. */
const maxQueued = 10_000;

interface Queued {
  readonly theirs: Placed;
  ours: Placed | undefined;
}

/** What only one of them has; of `lost` ones no place is known. */
interface OneSided {
  readonly missing: readonly Placed[];
  readonly additional: readonly Placed[];
  readonly lostMissing: Iterable<string>;
  readonly lostAdditional: Iterable<string>;
}

export class Alignment {
  /** Records that share what they are sorted by, and come in another order among themselves. */
  tied = 0;
  /** Records that the other side had so much later that their order could not be followed. */
  lost = 0;
  /** How many places further our records come than theirs, at the moment. */
  shift = 0;
  readonly #theirs = new RecordStream();
  readonly #ours = new RecordStream();
  /** The source in its order, from the first record that is not found here yet. */
  readonly #queue = new Map<string, Queued>();
  #group: { key: string; last: Placed; max: number; before: number } | undefined;
  /** Of the records whose order was looked at, the last one of the source. */
  #furthest: { readonly theirs: Placed; readonly ours: Placed } | undefined;
  /** Came when the other side had been given up; whether they are tied is not known yet. */
  #late: Placed[] = [];

  constructor(private readonly events: AlignmentEvents) {}

  add(side: 'theirs' | 'ours', records: readonly PageRecord[], page: number): void {
    const stream = side === 'theirs' ? this.#theirs : this.#ours;
    const other = side === 'theirs' ? this.#ours : this.#theirs;
    for (const record of records) {
      const placed = stream.place(record, page);
      if (!placed) continue;
      if (side === 'theirs') this.#queue.set(placed.id, { theirs: placed, ours: undefined });
      const match = other.take(placed.id);
      if (!match && other.takeGiven(placed.id)) {
        this.#queue.delete(placed.id);
        this.#late.push(placed);
        this.events.both(placed.id);
      } else if (!match) stream.wait(placed);
      else if (side === 'theirs') this.#match(placed, match);
      else this.#match(match, placed);
    }
    for (const id of this.#theirs.giveUp()) this.#queue.delete(id);
    this.#ours.giveUp();
    this.#advance();
    this.#judgeLate([this.#theirs.last, this.#ours.last]);
  }

  finish(): OneSided {
    this.#advance(true);
    this.#judgeLate([]);
    return {
      missing: this.#theirs.waiting(),
      additional: this.#ours.waiting(),
      lostMissing: this.#theirs.given(),
      lostAdditional: this.#ours.given(),
    };
  }

  /** @param open those whose next neighbour has not come */
  #judgeLate(open: readonly (Placed | undefined)[]): void {
    for (const record of this.#late) {
      if (open.includes(record)) continue;
      if (record.isTied) this.tied++;
      else this.lost++;
    }
    this.#late = this.#late.filter((record) => open.includes(record));
  }

  #match(theirs: Placed, ours: Placed): void {
    const queued = this.#queue.get(theirs.id);
    if (queued) queued.ours = ours;
    else this.#followLate(theirs, ours);
    this.shift = ours.place - theirs.place;
    this.events.both(theirs.id);
    if (theirs.page !== ours.page) this.events.apart(theirs, ours);
  }

  #advance(isEnd = false): void {
    for (const [id, { theirs, ours }] of this.#queue) {
      if (!ours && !isEnd && this.#queue.size <= maxQueued) return;
      this.#queue.delete(id);
      // Sorted by another value it stands elsewhere, and that value is the difference.
      if (ours && ours.key === theirs.key) this.#follow(theirs, ours);
    }
  }

  /** It comes here behind all that were looked at, and so it should there. */
  #followLate(theirs: Placed, ours: Placed): void {
    if (theirs.key !== ours.key) return;
    const furthest = this.#furthest;
    if (!furthest || furthest.theirs.place < theirs.place) this.#furthest = { theirs, ours };
    else if (furthest.theirs.key === theirs.key) this.tied++;
    else this.events.misplaced(furthest.theirs, theirs, furthest.ours);
  }

  /** It is enough to look at neighbours: where each comes behind the one before it, all do. */
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
  readonly page: number;
  /** How many records of its listing came before it. */
  readonly place: number;
  /** Whether a neighbour has the same value to sort by; known once the next one has come. */
  isTied: boolean;
}

/** Records of a side that wait for the other to have them too. */
const maxWaiting = 100_000;
/** Records of a side that are known when they come again, because others were added before them. */
const maxRecent = 2_000;

class RecordStream {
  readonly #waiting = new Map<string, Placed>();
  readonly #recent = new Set<string>();
  /** Records that waited for too long; of them nothing is kept but their ids. */
  readonly #given = new IdSet();
  readonly #found = new IdSet();
  #places = 0;
  last: Placed | undefined;

  /** Undefined for a record that came already: others were added before it, and have moved it on. */
  place(record: PageRecord, page: number): Placed | undefined {
    if (this.#recent.has(record.id) || this.#waiting.has(record.id)) return undefined;
    this.#recent.add(record.id);
    const [oldest] = this.#recent;
    if (this.#recent.size > maxRecent && oldest) this.#recent.delete(oldest);
    const { id, key, text } = record;
    const isTied = this.last?.key === key;
    if (this.last && isTied) this.last.isTied = true;
    // As they are, they may be parts of the text of a page, and would hold all of it.
    this.last = { id, key: copy(key), text: copy(text), page, place: this.#places++, isTied };
    return this.last;
  }

  wait(record: Placed): void {
    this.#waiting.set(record.id, record);
  }

  take(id: string): Placed | undefined {
    const record = this.#waiting.get(id);
    this.#waiting.delete(id);
    return record;
  }

  /** Whether a record that the other side has now was given up here. */
  takeGiven(id: string): boolean {
    const number = toNumber(id);
    return number !== undefined && this.#given.has(number) && this.#found.add(number);
  }

  /** Lets the first ones go where too many wait. @returns the ids that went */
  giveUp(): string[] {
    const gone: string[] = [];
    for (const { id } of this.#waiting.values()) {
      if (this.#waiting.size <= maxWaiting) break;
      this.#waiting.delete(id);
      const number = toNumber(id);
      if (number !== undefined) this.#given.add(number);
      gone.push(id);
    }
    return gone;
  }

  waiting(): Placed[] {
    return [...this.#waiting.values()];
  }

  /** The ids of those that were given up, and never came on the other side. */
  *given(): Generator<string> {
    for (const id of this.#given.without(this.#found)) yield `${id}`;
  }
}

const copy = (text: string) => Buffer.from(text).toString();

/** An id as it is written, where it is the number of an outfit. */
export function toNumber(id: string): number | undefined {
  const number = Number(id);
  return number === (number | 0) && number > 0 && `${number}` === id ? number : undefined;
}

// One of two listings that are brought together: where its records came, and which still wait.
import { IdSet } from '../import/id-set.ts';
import type { PageRecord } from './listing-page.ts';

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

export class RecordStream {
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
    for (const id of this.#recent) {
      if (this.#recent.size <= maxRecent) break;
      this.#recent.delete(id);
    }
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

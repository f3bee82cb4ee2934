// Fields of a source that are not kept, or are outside of the contract, with the numbers of records that have them.
import { readProperty } from '../../old-listing/page.ts';
import { formatNumber, listFirst } from '../reporter.ts';
import { fieldNames, findOutside, shorten, userFieldNames } from '../source/record.ts';

/** Distinct names that are counted: a source may have another one in each record. */
const maxCounted = 1_000;

type Entries = readonly (readonly [name: string, records: number])[];

export class FieldCounts {
  readonly #unkept: Map<string, number>;
  /** By the name of a field and its first value. */
  readonly #outside: Map<string, number>;

  constructor(unkept: Entries = [], outside: Entries = []) {
    this.#unkept = new Map(unkept);
    this.#outside = new Map(outside);
  }

  /** For a checkpoint. */
  get entries() {
    return { unkept: [...this.#unkept], outside: [...this.#outside] };
  }

  add(record: unknown): void {
    for (const [name, value] of findOutside(record)) {
      const known = [...this.#outside.keys()].find((key) => key.startsWith(`${name} such as `));
      this.#count(this.#outside, known ?? `${name} such as ${shorten(value)}`);
    }
    this.#addUnkept(record, fieldNames, '');
    this.#addUnkept(readProperty(record, 'user'), userFieldNames, 'user.');
  }

  #addUnkept(holder: unknown, saved: ReadonlySet<string>, prefix: string): void {
    for (const key of Object.keys(Object(holder))) {
      if (saved.has(key)) continue;
      this.#count(this.#unkept, prefix + (/^[\w-]{1,60}$/.test(key) ? key : shorten(key)));
    }
  }

  #count(fields: Map<string, number>, name: string): void {
    const number = fields.get(name);
    if (number !== undefined || fields.size < maxCounted) fields.set(name, (number ?? 0) + 1);
  }

  describe(): string[] {
    const kinds = [
      ['Saved, but outside of the contract', this.#outside],
      ['Fields that are not kept', this.#unkept],
    ] as const;
    return kinds.flatMap(([what, fields]) => {
      const named = [...fields].map(
        ([name, number]) => `${name} (${formatNumber(number)} record${number === 1 ? '' : 's'})`,
      );
      return named.length > 0 ? [`${what}: ${listFirst(named, named.length, 20)}.`] : [];
    });
  }
}

// Fields of a source that the contract does not have: named once, so that they are not lost unseen.

import { fieldNames, readProperty, shorten, userFieldNames } from './record.ts';
import { formatNumber } from './reporter.ts';

/** Different names that are counted, and that are printed; a source may have one for each record. */
const maxCounted = 1_000;
const maxPrinted = 20;

/** Numbers of records by the name of the field. */
export type Unkept = Map<string, number>;

export function countUnkept(unkept: Unkept, record: unknown): void {
  const add = (holder: unknown, known: ReadonlySet<string>, prefix: string) => {
    for (const key of Object.keys(Object(holder))) {
      if (known.has(key)) continue;
      const name = prefix + (/^[\w-]{1,60}$/.test(key) ? key : shorten(key));
      const number = unkept.get(name);
      if (number !== undefined || unkept.size < maxCounted) unkept.set(name, (number ?? 0) + 1);
    }
  };
  add(record, fieldNames, '');
  add(readProperty(record, 'user'), userFieldNames, 'user.');
}

/** A sentence, or undefined when all is kept. */
export function describeUnkept(unkept: Unkept): string | undefined {
  if (unkept.size === 0) return undefined;
  const fields = [...unkept].slice(0, maxPrinted).map(([name, number]) => {
    return `${name} (${formatNumber(number)} record${number === 1 ? '' : 's'})`;
  });
  const more = unkept.size > maxPrinted ? ' and more' : '';
  return `Fields that are not kept: ${fields.join(', ')}${more}.`;
}

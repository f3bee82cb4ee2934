// What it means that a record of the old service and one of this gateway are the same.
import { hash } from 'node:crypto';
import { readProperty, shorten } from '../import/record.ts';
import { parseTimestamp } from '../outfits/timestamps.ts';

/** A sentence for each field that differs. */
export function compareRecords(id: number, theirs: unknown, ours: unknown): Generator<string> {
  return compareValues(`Outfit ${id}`, '', theirs, ours);
}

/** 64 bits that are the same for two records that do not differ, and for hardly any others. */
export function digestOf(record: unknown): bigint {
  return hash('sha1', normalize('', record), 'buffer').readBigUInt64LE();
}

function normalize(field: string, value: unknown): string {
  if (isObject(value)) {
    const keys = Object.keys(value).sort();
    const members = keys.map((key) => {
      return `${JSON.stringify(key)}:${normalize(nameField(field, key), readProperty(value, key))}`;
    });
    return `{${members.join()}}`;
  }
  return momentOf(field, value)?.toString() ?? JSON.stringify(value);
}

function* compareValues(
  record: string,
  field: string,
  theirs: unknown,
  ours: unknown,
): Generator<string> {
  if (isObject(theirs) && isObject(ours)) {
    for (const key of new Set([...Object.keys(theirs), ...Object.keys(ours)])) {
      yield* compareValues(
        record,
        nameField(field, key),
        readProperty(theirs, key),
        readProperty(ours, key),
      );
    }
  } else if (
    JSON.stringify(theirs) !== JSON.stringify(ours) &&
    !isSameMoment(field, theirs, ours)
  ) {
    const [there, here] = showBoth(theirs, ours);
    yield `${record}: ${field} is ${there} in the source, ${here} here.`;
  }
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function nameField(holder: string, key: string): string {
  return holder ? `${holder}.${key}` : key;
}

/** A service that leaves out digits of 0 still means the same moment. */
function momentOf(field: string, value: unknown): bigint | undefined {
  const isMoment = (field === 'created' || field === 'modified') && typeof value === 'string';
  return isMoment ? parseTimestamp(value) : undefined;
}

function isSameMoment(field: string, theirs: unknown, ours: unknown): boolean {
  const moment = momentOf(field, theirs);
  return moment !== undefined && moment === momentOf(field, ours);
}

/** Long texts are shown from where they differ, because their beginnings look the same. */
function showBoth(theirs: unknown, ours: unknown): [string, string] {
  const shown: [string, string] = [shorten(theirs), shorten(ours)];
  if (shown[0] !== shown[1] || typeof theirs !== 'string' || typeof ours !== 'string') return shown;
  let start = 0;
  while (theirs[start] === ours[start]) start++;
  const show = (text: string) => `(from character ${start}) ${shorten(text.slice(start))}`;
  return [show(theirs), show(ours)];
}

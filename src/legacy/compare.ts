import { readProperty, shorten } from '../import/record.ts';
import { parseTimestamp } from '../outfits/timestamps.ts';

/** Records by id, in the order of their listing. */
export type Records = Map<number, unknown>;

export interface Orders {
  /** Of the listing, for messages. */
  readonly name: string;
  /** Field by which both sides are sorted, where rows of the same value may come in any order. */
  readonly tieField?: string;
  /** Whether the order of the source's records means something. */
  readonly isOrdered: boolean;
}

/**
 * Compares both sides record by record and in order.
 * @returns a sentence for each field that differs, each record that one side lacks, and each pair
 * of neighbours of the source that comes in another order here
 */
export function* compareRecords(theirs: Records, ours: Records, orders: Orders): Generator<string> {
  for (const [id, record] of theirs) {
    if (!ours.has(id)) yield `Outfit ${id} is missing here.`;
    else yield* compareValues(`Outfit ${id}`, '', record, ours.get(id));
  }
  for (const id of ours.keys()) {
    if (!theirs.has(id)) yield `Outfit ${id} is not in the source.`;
  }
  if (orders.isOrdered) yield* compareOrder(theirs, ours, orders);
}

function* compareValues(
  record: string,
  field: string,
  theirs: unknown,
  ours: unknown,
): Generator<string> {
  if (isObject(theirs) && isObject(ours)) {
    for (const key of new Set([...Object.keys(theirs), ...Object.keys(ours)])) {
      const name = field ? `${field}.${key}` : key;
      yield* compareValues(record, name, readProperty(theirs, key), readProperty(ours, key));
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

/** A service that leaves out digits of 0 still means the same moment. */
function isSameMoment(field: string, theirs: unknown, ours: unknown): boolean {
  if (field !== 'created' && field !== 'modified') return false;
  if (typeof theirs !== 'string' || typeof ours !== 'string') return false;
  const moment = parseTimestamp(theirs);
  return moment !== undefined && moment === parseTimestamp(ours);
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

/** It is enough to look at neighbours: where each comes behind the one before it, all do. */
function* compareOrder(theirs: Records, ours: Records, orders: Orders): Generator<string> {
  const { name, tieField } = orders;
  const ranks = rank(ours, tieField);
  const tieOf = (record: unknown) => tieField && readProperty(record, tieField);
  let before: { id: number; rank: number; tie: unknown } | undefined;
  for (const [id, record] of theirs) {
    const place = ranks.get(id);
    const tie = tieOf(record);
    // Missing or sorted by another value: reported already, and no reason to doubt its neighbours.
    if (place === undefined || tie !== tieOf(ours.get(id))) continue;
    const isTied = tieField !== undefined && tie === before?.tie;
    if (before && (isTied ? place !== before.rank : place <= before.rank)) {
      yield `Order (${name}): outfit ${id} comes behind outfit ${before.id} in the source, but not here.`;
    }
    before = { id, rank: place, tie };
  }
}

/** The place of each record; with a field for ties, neighbours of the same value share one. */
function rank(records: Records, tieField: string | undefined): Map<number, number> {
  const ranks = new Map<number, number>();
  let last: unknown;
  let place = 0;
  for (const [id, record] of records) {
    const tie = tieField && readProperty(record, tieField);
    if (tieField === undefined || tie !== last) place++;
    last = tie;
    ranks.set(id, place);
  }
  return ranks;
}

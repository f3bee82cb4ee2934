// Both sides of a comparison in one order: the source as digests, this service as it comes.
import type { Batch } from '../import/batch.ts';
import { IdSet } from '../import/id-set.ts';
import { readProperty } from '../import/record.ts';
import { compareRecords } from './compare.ts';
import type { Differences } from './differences.ts';
import { likesOf, type Records } from './records.ts';

export type Visit = (id: number, record: unknown) => void;

export interface Sides {
  /** The source, in its order. */
  readonly records: Records;
  /** Whether that order means something. */
  readonly isOrdered: boolean;
  /** Whether both are sorted by likes, and records with the same number may come in any order. */
  readonly byLikes: boolean;
  /** Goes through the records of this service. */
  readonly walkOurs: (visit: Visit) => Promise<unknown>;
  /** Reads the source once more; undefined when that is impossible. */
  readonly readAgain: (() => AsyncIterable<Batch>) | undefined;
  readonly differences: Differences;
  /** Outfits of which something has been said; they are left alone, and more are added. */
  readonly known: IdSet;
}

/** Records that differ and are held, to say in what; of more it is only said that they do. */
const maxExplained = 1_000;

/** The place of a record that is not here, or that is here but sorted by another number of likes. */
const missing = 0;
const elsewhere = -1;

/**
 * Adds a sentence for each field that differs, each record that one side lacks, and each pair of
 * neighbours of the source that comes in another order here.
 */
export async function compareSides(sides: Sides): Promise<void> {
  const { records, byLikes, differences, known } = sides;
  const places = new Int32Array(records.size);
  const different = new Map<number, unknown>();
  const unexplained = new IdSet();
  const others = new IdSet();
  let place = 0;
  let last: number | undefined;
  await sides.walkOurs((id, record) => {
    const likes = likesOf(record);
    if (!byLikes || likes !== last) place++;
    last = likes;
    const number = records.find(id);
    const isNew = number === -1 ? others.add(id) : places[number] === missing;
    if (!isNew) differences.add(`Outfit ${id} comes twice here.`);
    if (number === -1) return;
    places[number] = byLikes && likes !== records.likesOf(number) ? elsewhere : place;
    if (known.has(id) || records.isSame(number, record)) return;
    if (different.size < maxExplained) different.set(number, record);
    else unexplained.add(number);
  });

  const explanations = await explain(sides, different);
  for (const number of records.numbers()) {
    const id = records.idOf(number);
    const found =
      places[number] === missing ? [`Outfit ${id} is missing here.`] : explanations.get(number);
    if (known.has(id)) continue;
    if (unexplained.has(number)) differences.add(`Outfit ${id} is not the same here.`);
    for (const sentence of found ?? []) differences.add(sentence);
    if (found || unexplained.has(number)) known.add(id);
  }
  for (const id of others.without(known)) {
    differences.add(`Outfit ${id} is not in the source.`);
    known.add(id);
  }
  if (sides.isOrdered) compareOrder(sides, places);
}

/** The sentences for records that differ; the source is read again for those it does not hold. */
async function explain(
  { records, readAgain }: Sides,
  different: ReadonlyMap<number, unknown>,
): Promise<Map<number, readonly string[]>> {
  const theirs = new Map<number, unknown>();
  for (const number of different.keys()) {
    const value = records.valueOf(number);
    if (value !== undefined) theirs.set(number, value);
  }
  if (theirs.size < different.size && readAgain) {
    for await (const batch of readAgain()) {
      for (const { value } of batch.records) {
        const number = records.find(Number(readProperty(value, 'id')));
        // Of a record that comes twice the last one counts.
        if (different.has(number)) theirs.set(number, value);
      }
    }
  }
  const sentences = new Map<number, readonly string[]>();
  for (const [number, ours] of different) {
    const id = records.idOf(number);
    const found = theirs.has(number)
      ? [...compareRecords(id, theirs.get(number), ours)]
      : [`Outfit ${id} is not the same here.`];
    // None: it has changed while both sides were read, and is the same by now.
    if (found.length > 0) sentences.set(number, found);
  }
  return sentences;
}

/** It is enough to look at neighbours: where each comes behind the one before it, all do. */
function compareOrder({ records, byLikes, differences }: Sides, places: Int32Array): void {
  const name = byLikes ? 'ordering=like_count' : 'default';
  let before: { id: number; place: number; likes: number } | undefined;
  for (const number of records.numbers()) {
    const place = places[number] ?? missing;
    // Reported already, and no reason to doubt its neighbours.
    if (place === missing || place === elsewhere) continue;
    const id = records.idOf(number);
    const likes = records.likesOf(number);
    const isTied = byLikes && likes === before?.likes;
    if (before && (isTied ? place !== before.place : place <= before.place)) {
      differences.add(
        `Order (${name}): outfit ${id} comes behind outfit ${before.id} in the source, but not here.`,
      );
    }
    before = { id, place, likes };
  }
}

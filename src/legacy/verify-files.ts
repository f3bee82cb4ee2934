// Saved files against this service, as far as a file can tell: which records there are, what they say,
// and their order where the file is pages in the default one.
import type { Batch } from '../import/batch.ts';
import { IdSet } from '../import/id-set.ts';
import { readListing } from '../import/listing.ts';
import { readProperty, shorten } from '../import/record.ts';
import type { Reporter } from '../import/reporter.ts';
import { readSource, type SourceOptions } from '../import/source.ts';
import { type Answer, compareAnswers } from './compare.ts';
import type { Difference, Kind } from './difference.ts';
import { findShortFraction, Records } from './records.ts';
import type { Report } from './report.ts';
import type { Side } from './side.ts';

export interface VerifyFilesOptions extends Omit<SourceOptions, 'from' | 'notify' | 'headers'> {
  /** Files and folders, or `-` for standard input. */
  readonly sources: readonly string[];
  readonly ours: Side;
  readonly report: Report;
}

/** Records that differ and are held, to say in what; of more it is only said that they do. */
const maxExplained = 1_000;
const missing = 0;

/**
 * Compares files with this service in its default order. It holds some 30 bytes for each record of
 * the files, and of this service only a page.
 * @returns how many records the files have
 * @throws SourceError when a side cannot be read
 */
export async function verifyFiles(
  options: VerifyFilesOptions,
  reporter: Reporter,
): Promise<number> {
  const { sources, ours, report, signal, stdin } = options;
  const notify = reporter.note;
  const add = (kind: Kind, sentence: string) => report.add({ kind, where: 'results', sentence });
  const walk = createWalk(add, reporter);
  const readTheirs = () => readSource(sources, { signal, stdin, headers: new Headers(), notify });

  const records = new Records();
  const isOrdered = await walk(readTheirs(), 'in the source', (id, record) => {
    records.set(id, record);
    const field = findShortFraction(record);
    if (field === undefined) return;
    const sentence = `Outfit ${id}: ${field} is ${shorten(readProperty(record, field))} in the source, and has six digits here.`;
    report.add({ kind: 'fraction', where: `results.${field}`, sentence });
  });

  const places = new Int32Array(records.size);
  const different = new Map<number, unknown>();
  const unexplained = new IdSet();
  const additional = new IdSet();
  let place = 0;
  const fetchPage = createPageFetcher(ours);
  const readOurs = readListing(`${ours.base}${ours.path}`, { signal, notify, fetchPage });
  await walk(readOurs, 'here', (id, record) => {
    place++;
    const number = records.find(id);
    const isNew = number === -1 ? additional.add(id) : places[number] === missing;
    if (!isNew) add('record-number', `Outfit ${id} comes twice here.`);
    if (number === -1) return;
    places[number] = place;
    if (records.isSame(number, record)) return;
    if (different.size < maxExplained) different.set(number, record);
    else unexplained.add(number);
  });

  // Standard input is gone once it is read.
  const again = sources.includes('-') ? undefined : readTheirs;
  for (const difference of await explain(records, different, again)) report.add(difference);
  for (let number = 0; number < records.size; number++) {
    const id = records.idOf(number);
    if (unexplained.has(number)) add('value', `Outfit ${id} is not the same here.`);
    if (places[number] === missing) add('record-number', `Outfit ${id} is missing here.`);
  }
  for (const id of additional.without(new IdSet())) {
    add('record-number', `Outfit ${id} is not in the source.`);
  }
  if (isOrdered) compareOrder(records, places, add);
  return records.size;
}

/** What differs in records; the files are read again for those that are not held. */
async function explain(
  records: Records,
  different: ReadonlyMap<number, unknown>,
  readAgain: (() => AsyncIterable<Batch>) | undefined,
): Promise<Difference[]> {
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
  const question = { method: 'GET', target: '' };
  const bases = { theirs: '', ours: '' };
  return [...different]
    .sort(([a], [b]) => a - b)
    .flatMap(([number, ours]): Difference[] => {
      if (theirs.has(number)) {
        return compareAnswers(question, wrap(theirs.get(number)), wrap(ours), bases).filter(
          // Counted for every record of the files already.
          ({ kind }) => kind !== 'fraction',
        );
      }
      const sentence = `Outfit ${records.idOf(number)} is not the same here.`;
      return [{ kind: 'value', where: 'results', sentence }];
    });
}

const wrap = (record: unknown): Answer => ({
  status: 200,
  headers: {},
  body: Buffer.from(JSON.stringify({ count: 1, results: [record] })),
});

/** It is enough to look at neighbours: where each comes behind the one before it, all do. */
function compareOrder(
  records: Records,
  places: Int32Array,
  add: (kind: Kind, sentence: string) => void,
): void {
  let before: number | undefined;
  for (const [number, place] of places.entries()) {
    // Reported already, and no reason to doubt its neighbours.
    if (place === missing) continue;
    if (before !== undefined && place <= (places[before] ?? 0)) {
      add(
        'record-order',
        `Order (default): outfit ${records.idOf(number)} comes behind outfit ${records.idOf(before)} in the source, but not here.`,
      );
    }
    before = number;
  }
}

type Visit = (id: number, record: unknown) => void;

/** Makes what goes through the records of a side and says whether all were in the default order. */
function createWalk(add: (kind: Kind, sentence: string) => void, reporter: Reporter) {
  let read = 0;
  return async (batches: AsyncIterable<Batch>, side: string, visit: Visit): Promise<boolean> => {
    let inDefaultOrder = true;
    for await (const batch of batches) {
      inDefaultOrder &&= batch.inDefaultOrder;
      for (const { where, reason } of batch.unreadable) add('not-json', `${where}: ${reason}.`);
      for (const { where, value } of batch.records) {
        const id = readProperty(value, 'id');
        if (typeof id !== 'number') {
          add('record-number', `A record without id is ${side} (${where}): ${shorten(value)}.`);
        } else if (id !== (id | 0)) {
          add('record-number', `Outfit ${id} is ${side}, but no outfit can have that id.`);
        } else visit(id, value);
      }
      read += batch.records.length;
      reporter.progress(read, batch.count && batch.count * 2);
    }
    return inDefaultOrder;
  };
}

/** The pages of a side, for whoever follows a listing. */
function createPageFetcher(side: Side) {
  return async (url: string, signal: AbortSignal) => {
    const { pathname, search } = new URL(url);
    const { status, headers, body } = await side.ask('GET', pathname + search, signal);
    return { status, body: body.toString(), retryAfter: headers['retry-after'] };
  };
}

// Reads any kind of source as checked rows, in batches for one transaction each; broken records are reported.

import { parseUrl } from '../../config/values.ts';
import { createFetchPage } from '../../old-listing/fetch-page.ts';
import { readListing } from '../../old-listing/listing.ts';
import {
  type Batch,
  type ReadOptions,
  readProperty,
  SourceError,
  type SourceRecord,
} from '../../old-listing/page.ts';
import type { OutfitRow } from '../../outfits/row.ts';
import type { Reporter } from '../reporter.ts';
import { readFiles } from './files.ts';
import { type Bases, type CheckedRow, createCheck, findBases } from './record.ts';

/** Records per transaction, and milliseconds after which a smaller batch is saved. */
const batchSize = 1_000;
const batchTime = 5_000;

export function findListingUrl(sources: readonly string[]): string | undefined {
  const url = sources.find((source) => /^https?:\/\//i.test(source));
  if (url === undefined) return undefined;
  if (sources.length > 1) throw new SourceError('A live listing must be the only source.');
  const parsed = parseUrl(url);
  if (!parsed || parsed.username || parsed.password) {
    throw new SourceError(`${url} must be a valid URL without user name and password.`);
  }
  return url;
}

export interface SourceOptions extends Omit<ReadOptions, 'notify'> {
  readonly sources: readonly string[];
  readonly headers: Headers;
  /** Ids from this one on are refused: outfits that are created here have them. Undefined: none is. */
  readonly firstId: number | undefined;
}

export interface CheckedBatch extends Pick<Batch, 'next' | 'count' | 'firstCount'> {
  readonly rows: readonly OutfitRow[];
  readonly kept: readonly unknown[];
  /** Ids of all records that have a valid one. */
  readonly ids: readonly number[];
  readonly bases: Bases;
  readonly read: number;
  readonly broken: number;
}

/** @throws SourceError as `readRows` */
export function readBatches(
  options: Omit<SourceOptions, 'firstId'>,
  reporter: Reporter,
): AsyncGenerator<Batch> {
  const reading = { ...options, notify: (sentence: string) => reporter.note(sentence) };
  const { sources, headers } = options;
  const listing = findListingUrl(sources);
  return joinBatches(
    listing === undefined
      ? readFiles(sources, reading)
      : readListing(listing, { ...reading, fetchPage: createFetchPage({ listing, headers }) }),
  );
}

/** @throws SourceError without such a source, or when a listing fails after all retries */
export async function* readRows(
  options: SourceOptions,
  startBases: Bases,
  reporter: Reporter,
): AsyncGenerator<CheckedBatch> {
  let bases = startBases;
  for await (const batch of readBatches(options, reporter)) {
    const values = batch.parts.flatMap((part) => ('value' in part ? [part.value] : []));
    bases = findBases(bases, values);
    const check = createCheck(bases, options.firstId);
    const nameOf = (value: unknown) => {
      const id = readId(value);
      return id === undefined ? 'Record without a valid id' : `Outfit ${id}`;
    };
    const valid = checkParts(batch.parts, check, nameOf, reporter);
    const rows = valid.map(({ row }) => row);
    const kept = valid.map(({ value }) => value);
    const read = batch.parts.length;
    const ids = values.map(readId).filter((id) => id !== undefined);
    const { next, count, firstCount } = batch;
    yield { rows, kept, ids, bases, read, broken: read - rows.length, next, count, firstCount };
  }
}

/** Checks the parts of a batch, and reports those that are broken. @param nameOf what a broken record is called */
export function checkParts<Row>(
  parts: Batch['parts'],
  check: (record: unknown) => CheckedRow<Row>,
  nameOf: (value: unknown) => string,
  reporter: Reporter,
): (SourceRecord & { readonly row: Row })[] {
  return parts.flatMap((part) => {
    if ('reason' in part) {
      reporter.fault(`${part.where}: ${part.reason}`, part.reason);
      return [];
    }
    const { row, reasons } = check(part.value);
    if (reasons === undefined) return [{ ...part, row }];
    const [name, why] = [nameOf(part.value), reasons.join('; ')];
    reporter.fault(`${name} (${part.where}): ${why}`, `${name}: ${why}`);
    return [];
  });
}

function readId(record: unknown): number | undefined {
  const id = readProperty(record, 'id');
  return typeof id === 'number' && (id | 0) === id ? id : undefined;
}

/** Joins small batches. Records before a failure are yielded before it is thrown. */
async function* joinBatches(batches: AsyncIterable<Batch>): AsyncGenerator<Batch> {
  let joined: Batch | undefined;
  let since = performance.now();
  let failure: { readonly error: unknown } | undefined;
  try {
    for await (const batch of batches) {
      joined = joined
        ? {
            ...batch,
            firstCount: joined.firstCount ?? joined.count,
            parts: [...joined.parts, ...batch.parts],
          }
        : batch;
      if (joined.parts.length < batchSize && performance.now() - since < batchTime) continue;
      yield joined;
      joined = undefined;
      since = performance.now();
    }
  } catch (error) {
    failure = { error };
  }
  if (joined) yield joined;
  if (failure) throw failure.error;
}

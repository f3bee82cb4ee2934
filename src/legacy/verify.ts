// npm run verify, without the command: reads both sides in both orders and says what differs.
import type { Batch } from '../import/batch.ts';
import type { FetchPage } from '../import/fetch-page.ts';
import { IdSet } from '../import/id-set.ts';
import { readListing } from '../import/listing.ts';
import { readProperty, shorten } from '../import/record.ts';
import type { Reporter } from '../import/reporter.ts';
import { findListingUrl, readSource, type SourceOptions } from '../import/source.ts';
import { Differences } from './differences.ts';
import { Records } from './records.ts';
import { compareSides, type Visit } from './sides.ts';

export interface VerifyOptions extends Omit<SourceOptions, 'from' | 'notify'> {
  /** The URL of a live listing, or files and folders, or `-` for standard input. */
  readonly sources: readonly string[];
  /** The listing of this service, and how to get its pages. */
  readonly ours: { readonly url: string; readonly fetchPage: FetchPage };
}

export interface VerifyOutcome {
  /** Records of the source. */
  readonly compared: number;
  readonly differences: Differences;
}

/**
 * Compares a source with this service, in the default order and in `ordering=like_count`. It holds
 * some 40 bytes for each record of the source, and of this service only a page.
 * @throws SourceError when a side cannot be read
 */
export async function verifyOutfits(
  options: VerifyOptions,
  reporter: Reporter,
): Promise<VerifyOutcome> {
  const { sources, ours } = options;
  const notify = reporter.note;
  const listing = findListingUrl(sources);
  const differences = new Differences();
  const known = new IdSet();
  const walk = createWalk(differences, reporter, listing === undefined ? 3 : 4);

  const readTheirs = (ordering?: string) => {
    const ordered = listing === undefined ? sources : [setOrdering(listing, ordering)];
    return readSource(ordered, { ...options, notify });
  };
  const readOurs = (ordering?: string) => {
    const { fetchPage } = ours;
    return readListing(setOrdering(ours.url, ordering), { ...options, notify, fetchPage });
  };
  const collectTheirs = async (ordering?: string) => {
    const records = new Records();
    const isOrdered = await walk(readTheirs(ordering), 'in the source', (id, record) =>
      records.set(id, record),
    );
    return { records, isOrdered };
  };
  const compare = (records: Records, isOrdered: boolean, ordering?: 'like_count') =>
    compareSides({
      records,
      isOrdered,
      byLikes: ordering !== undefined,
      walkOurs: (visit) => walk(readOurs(ordering), 'here', visit),
      // Standard input is gone once it is read.
      readAgain: sources.includes('-') ? undefined : () => readTheirs(ordering),
      differences,
      known,
    });

  const { records, isOrdered } = await collectTheirs();
  if (!isOrdered) notify('The source is not in the default order, so that order is not compared.');
  await compare(records, isOrdered);
  // Files have their records only once: sorted, they say what the other order must be.
  if (listing === undefined) records.sortByLikes();
  const byLikes = listing === undefined ? records : (await collectTheirs('like_count')).records;
  await compare(byLikes, true, 'like_count');
  return { compared: records.size, differences };
}

/** The URL of the first page in another order. */
function setOrdering(url: string, ordering: string | undefined): string {
  const result = new URL(url);
  result.searchParams.delete('page');
  result.searchParams.delete('ordering');
  if (ordering !== undefined) result.searchParams.set('ordering', ordering);
  return result.href;
}

/**
 * Makes what goes through the records of a side and says whether all were in the default order.
 * @param walks how often it will be called, each time for about the same number of records
 */
function createWalk(differences: Differences, reporter: Reporter, walks: number) {
  let read = 0;
  return async (batches: AsyncIterable<Batch>, side: string, visit: Visit): Promise<boolean> => {
    let inDefaultOrder = true;
    for await (const batch of batches) {
      inDefaultOrder &&= batch.inDefaultOrder;
      for (const { where, reason } of batch.unreadable) differences.add(`${where}: ${reason}.`);
      for (const { where, value } of batch.records) {
        const id = readProperty(value, 'id');
        if (typeof id !== 'number') {
          differences.add(`A record without id is ${side} (${where}): ${shorten(value)}.`);
        } else if (id !== (id | 0)) {
          differences.add(`Outfit ${id} is ${side}, but no outfit can have that id.`);
        } else visit(id, value);
      }
      read += batch.records.length;
      reporter.progress(read, batch.count && batch.count * walks);
    }
    return inDefaultOrder;
  };
}

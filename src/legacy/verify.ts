import type { Batch, ReadOptions } from '../import/batch.ts';
import { type FetchPage, readListing } from '../import/listing.ts';
import { readProperty, shorten } from '../import/record.ts';
import { findListingUrl, readSource } from '../import/source.ts';
import { compareRecords, type Records } from './compare.ts';

export interface VerifyOptions extends Omit<ReadOptions, 'from'> {
  /** The URL of a live listing, or files and folders, or `-` for standard input. */
  readonly sources: readonly string[];
  /** The listing of this service, and how to get its pages. */
  readonly ours: { readonly url: string; readonly fetchPage: FetchPage };
}

export interface VerifyOutcome {
  /** Records of the source. */
  readonly compared: number;
  /** A sentence each; what shows in both orderings is there once. */
  readonly differences: ReadonlySet<string>;
}

/**
 * Compares a source with this service, in the default order and in `ordering=like_count`. Both
 * sides are held in memory, about 2 KB for a record.
 * @throws SourceError when a side cannot be read
 */
export async function verifyOutfits(options: VerifyOptions): Promise<VerifyOutcome> {
  const differences = new Set<string>();
  const addAll = (found: Iterable<string>) => {
    for (const difference of found) differences.add(difference);
  };
  const readOurs = async (ordering?: string) => {
    const url = setOrdering(options.ours.url, ordering);
    const batches = readListing(url, { ...options, fetchPage: options.ours.fetchPage });
    const onRepeat = (id: number) => differences.add(`Outfit ${id} comes twice here.`);
    return collect(batches, 'here', differences, onRepeat);
  };
  const listing = findListingUrl(options.sources);
  const readTheirs = async (ordering?: string) => {
    const sources = listing === undefined ? options.sources : [setOrdering(listing, ordering)];
    return collect(readSource(sources, options), 'in the source', differences);
  };

  const theirs = await readTheirs();
  if (!theirs.inDefaultOrder) {
    options.notify('The source is not in the default order, so that order is not compared.');
  }
  const { inDefaultOrder: isOrdered } = theirs;
  const ours = await readOurs();
  addAll(compareRecords(theirs.records, ours.records, { name: 'default', isOrdered }));

  // Files have their records only once: sorted, they say what the other order must be.
  const isLive = listing !== undefined;
  const byLikes = isLive ? (await readTheirs('like_count')).records : sortByLikes(theirs.records);
  const oursByLikes = await readOurs('like_count');
  addAll(
    compareRecords(byLikes, oursByLikes.records, {
      name: 'ordering=like_count',
      tieField: 'likes',
      isOrdered: true,
    }),
  );
  return { compared: theirs.records.size, differences };
}

/** The URL of the first page in another order. */
function setOrdering(url: string, ordering: string | undefined): string {
  const result = new URL(url);
  result.searchParams.delete('page');
  result.searchParams.delete('ordering');
  if (ordering !== undefined) result.searchParams.set('ordering', ordering);
  return result.href;
}

interface Collected {
  readonly records: Records;
  readonly inDefaultOrder: boolean;
}

/** Of a record that comes twice the last one counts, as it does in an import. */
async function collect(
  batches: AsyncIterable<Batch>,
  side: string,
  differences: Set<string>,
  onRepeat: (id: number) => void = () => {},
): Promise<Collected> {
  const records: Records = new Map();
  let inDefaultOrder = true;
  for await (const batch of batches) {
    inDefaultOrder &&= batch.inDefaultOrder;
    for (const { where, reason } of batch.unreadable) differences.add(`${where}: ${reason}.`);
    for (const { where, value } of batch.records) {
      const id = readProperty(value, 'id');
      if (typeof id === 'number') {
        if (records.has(id)) onRepeat(id);
        records.set(id, value);
      } else differences.add(`A record without id is ${side} (${where}): ${shorten(value)}.`);
    }
  }
  return { records, inDefaultOrder };
}

function sortByLikes(records: Records): Records {
  const likesOf = (record: unknown) => Number(readProperty(record, 'likes'));
  return new Map([...records].sort(([, a], [, b]) => likesOf(a) - likesOf(b)));
}

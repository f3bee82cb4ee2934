// Reads any kind of source in batches for one transaction each.
import { parseUrl } from '../../config/values.ts';
import { createFetchPage } from '../../old-listing/fetch-page.ts';
import { readListing } from '../../old-listing/listing.ts';
import { type Batch, SourceError } from '../../old-listing/page.ts';
import { type FileOptions, readFiles } from './files.ts';

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

export interface SourceOptions extends FileOptions {
  readonly sources: readonly string[];
  /** The page at which a live listing is resumed. */
  readonly from?: string | undefined;
  readonly headers: Headers;
}

export interface SourceBatch extends Batch {
  /** `count` of the first page of the source. */
  readonly firstCount: number | undefined;
}

/**
 * Joins small batches. Records before a failure are yielded before it is thrown.
 * @throws SourceError without such a source, or when a listing fails after all retries
 */
export async function* readSource(options: SourceOptions): AsyncGenerator<SourceBatch> {
  const { sources, headers } = options;
  const listing = findListingUrl(sources);
  const batches =
    listing === undefined
      ? readFiles(sources, options)
      : readListing(listing, { ...options, fetchPage: createFetchPage({ listing, headers }) });
  let parts: Batch['parts'][number][] = [];
  let last: Batch | undefined;
  let firstCount: number | undefined;
  let since = performance.now();
  let failure: { readonly error: unknown } | undefined;
  try {
    for await (const batch of batches) {
      last = batch;
      firstCount ??= batch.count;
      parts.push(...batch.parts);
      if (parts.length < batchSize && performance.now() - since < batchTime) continue;
      yield { ...batch, parts, firstCount };
      [parts, last, since] = [[], undefined, performance.now()];
    }
  } catch (error) {
    failure = { error };
  }
  if (last) yield { ...last, parts, firstCount };
  if (failure) throw failure.error;
}

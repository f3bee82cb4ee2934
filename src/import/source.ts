// Which kind of source is meant, and batches of a size that is worth a transaction.

import { parseUrl } from '../http/url.ts';
import { type Batch, type ReadOptions, SourceError } from './batch.ts';
import { createFetchPage, parseHeaders } from './fetch-page.ts';
import { readFiles } from './files.ts';
import { readListing } from './listing.ts';

/** The URL of a live listing, or undefined when the sources are files. */
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

export interface SourceOptions extends ReadOptions {
  /** What is sent to a live listing with each request. */
  readonly headers: Headers;
}

/**
 * The headers of `--header` options.
 * @throws SourceError for one that is malformed, or when there is no listing to send them to
 */
export function readHeaders(lines: readonly string[], sources: readonly string[]): Headers {
  if (lines.length > 0 && findListingUrl(sources) === undefined) {
    throw new SourceError('--header needs a live listing as SOURCE.');
  }
  return parseHeaders(lines);
}

/**
 * Reads a source in batches.
 * @param sources the URL of a live listing, or files and folders, or `-` for standard input
 * @throws SourceError when there is no such source, or a listing fails for good
 */
export function readSource(
  sources: readonly string[],
  options: SourceOptions,
): AsyncGenerator<Batch> {
  const { headers } = options;
  const listing = findListingUrl(sources);
  if (listing === undefined) return readFiles(sources, options);
  return readListing(listing, { ...options, fetchPage: createFetchPage({ listing, headers }) });
}

/**
 * Joins small batches and, after `milliseconds`, whatever there is, so that each is worth a
 * transaction. What was read before a failure is delivered before the failure is.
 */
export async function* joinBatches(
  batches: AsyncIterable<Batch>,
  size: number,
  milliseconds: number,
): AsyncGenerator<Batch> {
  let joined: Batch | undefined;
  let since = Date.now();
  let failure: { readonly error: unknown } | undefined;
  try {
    for await (const batch of batches) {
      joined = joined ? join(joined, batch) : batch;
      if (joined.records.length < size && Date.now() - since < milliseconds) continue;
      yield joined;
      joined = undefined;
      since = Date.now();
    }
  } catch (error) {
    failure = { error };
  }
  if (joined) yield joined;
  if (failure) throw failure.error;
}

function join(first: Batch, second: Batch): Batch {
  return {
    ...second,
    firstCount: first.firstCount ?? first.count,
    records: [...first.records, ...second.records],
    unreadable: [...first.unreadable, ...second.unreadable],
    inDefaultOrder: first.inDefaultOrder && second.inDefaultOrder,
  };
}

// Reads any kind of source, a live listing or files and folders, in batches for one transaction each.
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { parseUrl } from '../../config/values.ts';
import { cut, messageOf } from '../../errors.ts';
import { createFetchPage } from '../../old-listing/fetch-page.ts';
import { readListing } from '../../old-listing/listing.ts';
import {
  type Batch,
  type Envelope,
  type ReadOptions,
  SourceError,
} from '../../old-listing/page.ts';
import { readEntries } from './entries.ts';

/** Records per transaction, and milliseconds after which a smaller batch is saved. */
const batchSize = 1_000;
const batchTime = 5_000;

export function findListingUrl(sources: readonly string[]): string | undefined {
  const url = sources.find((source) => /^https?:\/\//i.test(source));
  if (url === undefined) return undefined;
  if (sources.length > 1) throw new SourceError('A live listing must be the only source.');
  const parsed = parseUrl(url);
  if (!parsed || parsed.username || parsed.password) {
    throw new SourceError('The URL of a listing must be valid, and without user and password.');
  }
  return url;
}

export interface SourceOptions extends ReadOptions {
  readonly sources: readonly string[];
  /** The page at which a live listing is resumed. */
  readonly from?: string | undefined;
  readonly headers: Headers;
  readonly stdin: Readable;
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

/** In the order of their names. @throws SourceError when a path does not exist or a folder holds nothing to read */
async function* readFiles(
  paths: readonly string[],
  { stdin, signal, notify, onShortened }: SourceOptions,
): AsyncGenerator<Batch> {
  let last: Envelope | undefined;
  const onPage = (page: Envelope) => {
    last = page;
  };
  for (const file of await listFiles(paths, notify)) {
    for await (const entry of readEntries(file, stdin, signal, onPage)) {
      yield { parts: [entry], count: last?.count };
      signal.throwIfAborted();
    }
    yield { parts: [], count: last?.count };
    signal.throwIfAborted();
  }
  if (typeof last?.next !== 'string' || last.count !== undefined) return;
  notify(`The last page links to another one, which did not come (${cut(last.next)}).`);
  onShortened?.('the last page links to another one');
}

async function listFiles(
  paths: readonly string[],
  notify: (sentence: string) => void,
): Promise<string[]> {
  const lists = await Promise.all(
    paths.map(async (path) => {
      if (path === '-') return [path];
      const found = await stat(path).catch((error) => {
        throw new SourceError(`${path} cannot be read (${messageOf(error)}).`);
      });
      if (!found.isDirectory()) return [path];
      const all = await listFolder(path);
      // Programs keep files of their own beside others: `._1.json` of macOS, `..data` of Kubernetes.
      const files = all.filter((file) =>
        /(?:^|\/)[^./][^/]*\.(?:json|ndjson|jsonl)(?:\.gz)?$/i.test(file),
      );
      if (files.length === 0) {
        throw new SourceError(
          `${path} has no file that ends in .json, .ndjson or .jsonl (or .gz of these).`,
        );
      }
      const other = all.find((file) => !files.includes(file));
      if (other !== undefined) {
        const number = all.length - files.length;
        notify(
          `${number} of the files in ${path} are left out, because they are not .json, .ndjson or .jsonl or begin with a dot, such as ${other}.`,
        );
      }
      return files;
    }),
  );
  return lists.flat();
}

async function listFolder(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  const { compare } = new Intl.Collator('en', { numeric: true });
  entries.sort((a, b) => compare(a.name, b.name) || (a.name < b.name ? -1 : 1));
  const lists = entries.map((entry) => {
    const path = join(folder, entry.name);
    if (!entry.isDirectory()) return [path];
    return entry.name.startsWith('.') ? [] : listFolder(path);
  });
  return (await Promise.all(lists)).flat();
}

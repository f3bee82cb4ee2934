// Reads a live listing along its next links, with retries, and detects links that never end.
import { setTimeout as sleep } from 'node:timers/promises';
import { cut } from '../errors.ts';
import type { FetchPage } from './fetch-page.ts';
import { IdSet } from './id-set.ts';
import {
  asEnvelope,
  type Batch,
  type Envelope,
  parseJson,
  queryOf,
  type ReadOptions,
  readProperty,
  SourceError,
  toPart,
} from './page.ts';
import { type Failure, isTemporary, retry } from './retry.ts';

interface ListingOptions extends ReadOptions {
  /** A page that was linked, where an interrupted run is resumed. */
  readonly from?: string | undefined;
  readonly fetchPage: FetchPage;
}

/** Consecutive pages without records, which occur while a listing shrinks. */
const maxEmptyPages = 10;
/** Records beyond twice the count of a listing, which may grow while it is read. */
const maxUncounted = 10_000;
/** Attempts for a page that is linked, but not found. */
const maxMissing = 3;
/** Records per batch: a page may have a million of them. */
const maxBatch = 1_000;

/** @throws SourceError when a page is refused, fails after all retries, or the links never end */
export async function* readListing(start: string, options: ListingOptions): AsyncGenerator<Batch> {
  const watch = createEndWatch();
  const read: string[] = [];
  const ids = new IdSet();
  let before: Envelope | undefined;
  let url: string | undefined = options.from ?? start;
  while (url !== undefined) {
    if (read.length > 0 && options.pause) {
      await sleep(options.pause, undefined, { signal: options.signal });
    }
    const isLinked = read.length > 0 || options.from !== undefined;
    const page: Page | undefined = await readPage(url, isLinked, options, read.at(-1));
    const next: string | undefined = page && resolveNext(page);
    for (const batch of page ? toBatches(page.envelope, url, next) : []) {
      yield batch;
      options.signal.throwIfAborted();
    }
    for (const id of idsOf(page?.envelope.results)) ids.add(id);
    if (!page || mayHaveShifted(before, page.envelope)) {
      yield* readShifted(read, ids, next, options);
    }
    if (page && next !== undefined) watch(next, page.envelope);
    read.push(url);
    before = page?.envelope;
    url = next;
  }
}

/**
 * Whether records of a page may have moved onto the page before, since that was read. Where the newest come first, what is
 * created moves them back, so the count falls. In any other order it may not.
 */
function mayHaveShifted(before: Envelope | undefined, { count, results }: Envelope): boolean {
  if (before?.count === undefined || count === undefined) return false;
  if (count < before.count) return true;
  const created = [...before.results, ...results].map((record) =>
    String(readProperty(record, 'created')),
  );
  return created.some((moment, index) => index > 0 && isAfter(moment, created[index - 1] ?? ''));
}

/** Whether a timestamp is later, or cannot be read. */
function isAfter(moment: string, other: string): boolean {
  const difference = Date.parse(moment) - Date.parse(other);
  // A Date has milliseconds.
  return difference === 0 ? moment > other : !(difference < 0);
}

/**
 * A deletion moves records of the next page onto one that was read before. Reads these pages again, the last one first,
 * up to one without new records. @param ids of all records so far
 */
async function* readShifted(
  pages: readonly string[],
  ids: IdSet,
  next: string | undefined,
  options: ListingOptions,
): AsyncGenerator<Batch> {
  for (const url of pages.toReversed()) {
    const page = await readPage(url, true, options);
    const results = page?.envelope.results ?? [];
    const shifted = results.filter((record) => idsOf([record]).some((id) => ids.add(id)));
    yield* toBatches({ count: page?.envelope.count, results: shifted }, url, next);
    if (page && shifted.length < Math.max(results.length, 1)) return;
  }
}

function idsOf(records: readonly unknown[] = []): number[] {
  const ids = records.map((record) => readProperty(record, 'id'));
  return ids.filter((id): id is number => Number.isInteger(id));
}

function* toBatches(
  { results, count }: Envelope,
  url: string,
  next: string | undefined,
): Generator<Batch> {
  for (let begin = 0; begin === 0 || begin < results.length; begin += maxBatch) {
    const end = begin + maxBatch;
    yield {
      parts: results
        .slice(begin, end)
        .map((value, index) => toPart(value, `${url}, record ${begin + index + 1}`)),
      // A run is resumed only after a whole page.
      next: end < results.length ? undefined : next,
      count,
    };
  }
}

/** Call it for each link with its page. @throws SourceError when the links never end */
export function createEndWatch(): (next: string, page: Envelope) => void {
  const links = new Set<string>();
  let empty = 0;
  let read = 0;
  return (next, { results, count }) => {
    if (links.has(next)) {
      throw new SourceError(`The next links go in a circle: ${next} comes again.`);
    }
    links.add(next);
    empty = results.length === 0 ? empty + 1 : 0;
    if (empty >= maxEmptyPages) {
      throw new SourceError(
        `The last ${maxEmptyPages} pages had no records, and there is a link to one more (${next}).`,
      );
    }
    read += results.length;
    if (count !== undefined && read > 2 * count + maxUncounted) {
      throw new SourceError(
        `The listing counts ${count} records, but ${read} have come, and there is a link to more (${next}).`,
      );
    }
  };
}

interface Page {
  readonly url: string;
  readonly envelope: Envelope;
}

function resolveNext({ url, envelope: { next } }: Page): string | undefined {
  const query = queryOf(next);
  return query === undefined ? undefined : Object.assign(new URL(url), { search: query }).href;
}

/**
 * Undefined when the listing has shrunk, so that a linked page is gone.
 * @param before the page that links to it: a 404 that it contradicts is not the end of the listing
 */
export async function readPage(
  url: string,
  isLinked: boolean,
  options: ListingOptions,
  before?: string,
): Promise<Page | undefined> {
  let missing = 0;
  let isMissing = false;
  const attempt = async () => {
    isMissing = false;
    const outcome = await tryPage(url, isLinked, options);
    if (before === undefined || !('result' in outcome) || outcome.result) return outcome;
    const linking = await tryPage(before, true, options);
    if (!('result' in linking)) return linking;
    isMissing = linking.result !== undefined && resolveNext(linking.result) !== undefined;
    if (!isMissing) return outcome;
    const problem = `answered 404, but ${before} links to it`;
    return ++missing < maxMissing ? { problem } : { problem, maxAttempts: 0 };
  };
  const outcome = await retry(url, attempt, options);
  if ('result' in outcome && outcome.result) return outcome.result;
  const sentence =
    'sentence' in outcome
      ? outcome.sentence
      : `${url} is gone: the listing became shorter while it was read.`;
  if ('sentence' in outcome && !isMissing) throw new SourceError(sentence);
  options.notify(sentence);
  if (isMissing || before === undefined)
    options.onShortened?.('a page was gone when it was asked for');
  return undefined;
}

async function tryPage(
  url: string,
  isLinked: boolean,
  { fetchPage, signal }: ListingOptions,
): Promise<{ result: Page | undefined } | Failure> {
  const { status, body, retryAfter, url: answered } = await fetchPage(url, signal);
  if (isTemporary(status)) return { problem: `answered ${status}`, retryAfter };
  if (isLinked && status === 404) return { result: undefined };
  if (status !== 200) throw new SourceError(`${url} answered ${status}: ${excerpt(body)}.`);
  let value: unknown;
  try {
    value = parseJson(body);
  } catch (error) {
    if (error instanceof SourceError) {
      throw new SourceError(`${url} answered a page that cannot be read (${error.message}).`);
    }
    return { problem: `answered something that is not JSON: ${excerpt(body)}` };
  }
  const envelope = asEnvelope(value, isLinked);
  const isWhole =
    isLinked || envelope?.next !== undefined || envelope?.count === envelope?.results.length;
  if (envelope && isWhole) return { result: { url: answered, envelope } };
  throw new SourceError(
    `${url} answered JSON that is not a page with results and next: ${excerpt(body)}.`,
  );
}

function excerpt(body: string): string {
  return cut(body.trim().replace(/\s+/g, ' '), 100) || 'an empty body';
}

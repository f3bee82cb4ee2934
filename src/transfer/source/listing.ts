// Reads a live listing along its next links, with retries, and detects links that never end.
import { setTimeout as sleep } from 'node:timers/promises';
import { cut } from '../../errors.ts';
import {
  asEnvelope,
  type Batch,
  type Envelope,
  parseJson,
  type ReadOptions,
  SourceError,
  toPart,
} from './batch.ts';
import type { FetchPage } from './fetch-page.ts';
import { type Failure, retry } from './retry.ts';

interface ListingOptions extends Omit<ReadOptions, 'stdin'> {
  readonly fetchPage: FetchPage;
}

/** Consecutive pages without records, which occur while a listing shrinks. */
const maxEmptyPages = 10;
/** Records beyond twice the count of a listing, which may grow while it is read. */
const maxUncounted = 10_000;
/** Records per batch: a page may have a million of them. */
const maxBatch = 1_000;

/** @throws SourceError when a page is refused, fails after all retries, or the links never end */
export async function* readListing(start: string, options: ListingOptions): AsyncGenerator<Batch> {
  let url: string | undefined = options.from?.at ?? start;
  const watch = createEndWatch();
  // A resumed run begins at a page that was linked.
  let isLinked = options.from !== undefined;
  for (let pages = 0; url !== undefined; pages++) {
    if (pages > 0 && options.pause) {
      await sleep(options.pause, undefined, { signal: options.signal });
    }
    const page: Page | undefined = await readPage(url, isLinked, options);
    if (page === undefined) return;
    isLinked = true;
    const next: string | undefined = resolveNext(page);
    for (const batch of toBatches(page.envelope, url, next)) {
      yield batch;
      options.signal.throwIfAborted();
    }
    if (next !== undefined) watch(next, page.envelope);
    url = next;
  }
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
      next: next === undefined || end < results.length ? undefined : { at: next, done: 0 },
      count,
    };
  }
}

/** Call it for each link with its page. @throws SourceError when the links never end */
export function createEndWatch(): (next: string, page: Envelope) => void {
  let links = 0;
  let empty = 0;
  let read = 0;
  // Brent's cycle detection: one link is remembered, each time for twice as many links.
  let remembered = '';
  let untilNext = 1;
  return (next, { results, count }) => {
    if (next === remembered) {
      throw new SourceError(`The next links go in a circle: ${next} comes again.`);
    }
    if (++links === untilNext) {
      remembered = next;
      untilNext *= 2;
    }
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

/** Only the query of a link is used: behind a proxy the service may not know its own address. */
function resolveNext({ url, envelope: { next } }: Page): string | undefined {
  if (next === null) return undefined;
  const resolved = new URL(url);
  resolved.search = next.split('#', 1)[0]?.split('?').slice(1).join('?') ?? '';
  return resolved.href;
}

/** Undefined when the listing has shrunk, so that a linked page is gone. */
export async function readPage(
  url: string,
  isLinked: boolean,
  options: ListingOptions,
): Promise<Page | undefined> {
  const outcome = await retry(url, () => tryPage(url, isLinked, options), options);
  if ('sentence' in outcome) throw new SourceError(outcome.sentence);
  if (outcome.result) return outcome.result;
  options.notify(`${url} is gone: the listing became shorter while it was read.`);
  options.onShortened?.();
  return undefined;
}

async function tryPage(
  url: string,
  isLinked: boolean,
  { fetchPage, signal }: ListingOptions,
): Promise<{ result: Page | undefined } | Failure> {
  const { status, body, retryAfter, url: answered } = await fetchPage(url, signal);
  if (status === 429 || status >= 500) return { problem: `answered ${status}`, retryAfter };
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
  const envelope = asEnvelope(value);
  if (envelope) return { result: { url: answered, envelope } };
  throw new SourceError(
    `${url} answered JSON that is not a page with results and next: ${excerpt(body)}.`,
  );
}

function excerpt(body: string): string {
  return cut(body.trim().replace(/\s+/g, ' '), 100) || 'an empty body';
}

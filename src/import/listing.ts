import { setTimeout as sleep } from 'node:timers/promises';
import { type Batch, type ReadOptions, SourceError } from './batch.ts';
import { asEnvelope, type Envelope, isInDefaultOrder } from './envelope.ts';

/** The answer to a request for a page. */
export interface PageAnswer {
  readonly status: number;
  readonly body: string;
  /** The header, when there is one: seconds or an HTTP date. */
  readonly retryAfter?: string | null;
  /** The URL that answered, after redirects. */
  readonly url?: string;
}

/** Gets one page; throws on a network error, a time-out or text that is not UTF-8. */
export type FetchPage = (url: string, signal: AbortSignal) => Promise<PageAnswer>;

export interface ListingOptions extends Omit<ReadOptions, 'stdin'> {
  readonly fetchPage: FetchPage;
}

const tries = 7;
/** Milliseconds before the second try; doubles with each further one. */
const firstDelay = 500;
/** Milliseconds that a server may ask to be left alone with Retry-After. */
const maxDelay = 300_000;

/**
 * Follows a live listing from `start` (or `options.from`) by its `next` links to the end.
 * @throws SourceError when a page is refused, fails too often, or the links go in a circle
 */
export async function* readListing(start: string, options: ListingOptions): AsyncGenerator<Batch> {
  const seen = new Set<string>();
  let url: string | undefined = options.from?.at ?? start;
  while (url !== undefined) {
    if (seen.has(url)) throw new SourceError(`The next links go in a circle: ${url} comes again.`);
    seen.add(url);
    const page: Page | undefined = await readPage(url, seen.size > 1, options);
    if (page === undefined) return;
    const next: string | undefined = resolveNext(page);
    const where = url;
    yield {
      records: page.envelope.results.map((value, index) => ({
        value,
        where: `${where}, record ${index + 1}`,
      })),
      unreadable: [],
      next: next === undefined ? undefined : { at: next, done: 0 },
      count: page.envelope.count,
      inDefaultOrder: isInDefaultOrder(page.envelope),
    };
    url = next;
  }
}

interface Page {
  readonly url: string;
  readonly envelope: Envelope;
}

/**
 * Behind a proxy the service may not know its own address, so only the query of a link counts;
 * scheme, host and path are those that have just answered.
 */
function resolveNext({ url, envelope: { next } }: Page): string | undefined {
  if (next === null) return undefined;
  const resolved = new URL(url);
  resolved.search = next.split('#', 1)[0]?.split('?').slice(1).join('?') ?? '';
  return resolved.href;
}

/** Undefined when the listing has become shorter than the link to this page promised. */
async function readPage(
  url: string,
  isLinked: boolean,
  options: ListingOptions,
): Promise<Page | undefined> {
  for (let attempt = 1; ; attempt++) {
    const outcome = await tryPage(url, options);
    if ('envelope' in outcome) return outcome;
    if (isLinked && outcome.status === 404) {
      options.notify(`${url} is gone: the listing became shorter while it was read.`);
      return undefined;
    }
    if (outcome.delay === undefined) throw new SourceError(`${url} ${outcome.problem}.`);
    if (attempt === tries) {
      throw new SourceError(`${url} failed ${tries} times; the last time it ${outcome.problem}.`);
    }
    const backOff = firstDelay * 2 ** (attempt - 1) * (0.75 + Math.random() / 2);
    const delay = Math.min(Math.max(backOff, outcome.delay), maxDelay);
    const seconds = (delay / 1000).toFixed(1);
    options.notify(`${url} ${outcome.problem}; trying again in ${seconds} s.`);
    await sleep(delay, undefined, { signal: options.signal });
  }
}

interface Failure {
  /** What the page did, to stand behind its URL. */
  readonly problem: string;
  /** Least milliseconds before another try; undefined when that would be in vain. */
  readonly delay?: number;
  readonly status?: number;
}

async function tryPage(
  url: string,
  { fetchPage, signal }: ListingOptions,
): Promise<Page | Failure> {
  let answer: PageAnswer;
  try {
    answer = await fetchPage(url, signal);
  } catch (error) {
    signal.throwIfAborted();
    return { problem: `did not answer (${explain(error)})`, delay: 0 };
  }
  const { status, body } = answer;
  if (status === 429 || status >= 500) {
    return { problem: `answered ${status}`, delay: readRetryAfter(answer.retryAfter), status };
  }
  if (status !== 200) return { problem: `answered ${status}: ${excerpt(body)}`, status };
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    return { problem: `answered something that is not JSON: ${excerpt(body)}`, delay: 0 };
  }
  const envelope = asEnvelope(value);
  if (envelope) return { url: answer.url ?? url, envelope };
  return { problem: `answered JSON that is not a page with results and next: ${excerpt(body)}` };
}

/**
 * Gets a page over HTTP.
 * @param timeout milliseconds that the whole answer may take
 */
export async function fetchOverHttp(
  url: string,
  signal: AbortSignal,
  timeout = 30_000,
): Promise<PageAnswer> {
  signal.throwIfAborted();
  // Not AbortSignal.any with AbortSignal.timeout: on Node 20 the pair never fired on a silent server.
  const stop = new AbortController();
  const timer = setTimeout(
    () => stop.abort(new Error(`no whole answer in ${timeout / 1000} s`)),
    timeout,
  );
  const passOn = () => stop.abort(signal.reason);
  signal.addEventListener('abort', passOn);
  try {
    const headers = { accept: 'application/json' };
    const response = await fetch(url, { headers, signal: stop.signal });
    const bytes = await response.arrayBuffer();
    return {
      status: response.status,
      body: new TextDecoder('utf-8', { fatal: true }).decode(bytes),
      retryAfter: response.headers.get('retry-after'),
      url: response.url,
    };
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', passOn);
  }
}

function readRetryAfter(header: string | null | undefined): number {
  if (!header) return 0;
  const delay = /^\d+$/.test(header) ? Number(header) * 1000 : Date.parse(header) - Date.now();
  return Number.isNaN(delay) ? 0 : delay;
}

/** `fetch` hides the reason in the cause, and several addresses of a host in the errors of that. */
function explain(error: unknown): string {
  if (error instanceof AggregateError) return explain(error.errors[0]);
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : explain(error.cause);
}

function excerpt(body: string): string {
  const line = body.trim().replace(/\s+/g, ' ');
  return line.length <= 100 ? line || 'an empty body' : `${line.slice(0, 100)}…`;
}

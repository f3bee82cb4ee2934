// Compares a live listing with this service: every ordering, and the edge cases of the contract.

import { createFetchPage, isSameHost } from '../../old-listing/fetch-page.ts';
import { IdSet } from '../../old-listing/id-set.ts';
import { readPage } from '../../old-listing/listing.ts';
import { type Envelope, type Progress, SourceError } from '../../old-listing/page.ts';
import { isOfRecordList, readListingPage, withoutRecordLists } from '../compare/listing-page.ts';
import { Checker } from './checker.ts';
import {
  type ComparedRequest,
  contractRequests,
  requestFor,
  unknownParameters,
} from './compared-requests.ts';
import {
  askWithRetry,
  type ComparedService,
  createHttpService,
  ForwardedAnswerError,
  NoAnswerError,
} from './compared-service.ts';
import { appMethods, checkCors, unknownOrigin } from './cors-checks.ts';
import { checkOrderings } from './ordering-checks.ts';
import type { Report } from './report.ts';
import { type ComparedRoute, checkHeaders, checkRoutes } from './route-requests.ts';
import { samplePages, walkOrdering } from './walk.ts';

interface VerifyOptions {
  readonly listing: string;
  /** Sent only to the host of the source: they may hold a secret. */
  readonly headers: Headers;
  /** Opens this service, with the given page size where it can be chosen; the comparison closes it. */
  readonly openOurs: (pageSize: number | undefined) => Promise<ComparedService>;
  readonly report: Report;
  readonly signal: AbortSignal;
  readonly timeout: number;
  /** Milliseconds before the last recheck of a difference. */
  readonly wait: number;
  readonly sample: number | undefined;
  /** Origins of web apps. */
  readonly origins: readonly string[];
  /** The REST paths of this service. */
  readonly routes: readonly ComparedRoute[];
}

interface VerifyOutcome {
  readonly records: number;
  readonly answers: number;
  readonly orders: number;
  readonly broken: string | undefined;
}

/** Memory: a bit for each id. A failure after all retries ends it. @throws SourceError when a listing cannot be read at all */
export async function verifyListing(
  options: VerifyOptions,
  reporter: Progress,
): Promise<VerifyOutcome> {
  const { listing, headers, report, signal, timeout, wait } = options;
  const notify = (sentence: string) => reporter.note(sentence);
  refuseQuery(listing);
  const fetchPage = createFetchPage({ listing, headers, timeout });
  const first = await readPage(listing, false, { fetchPage, signal, notify });
  if (!first) throw new SourceError(`${listing} has no first page.`);
  refuseQuery(first.url);
  const url = new URL(first.url);
  const isOwn = isSameHost(new URL(listing), url);
  const theirs = createHttpService({ url: url.href, timeout, ...(isOwn ? { headers } : {}) });
  const opened = [theirs];
  const openOurs = async (pageSize?: number) => {
    const service = await options.openOurs(pageSize);
    opened.push(service);
    return service;
  };
  try {
    const ours = await openWithPageSize({ ...options, openOurs }, notify, theirs, first.envelope);
    const [origin = unknownOrigin] = options.origins;
    const checker = new Checker({ theirs, ours, report, signal, notify, wait, origin });
    const done = { records: 0, orders: 0 };
    let broken: string | undefined;
    try {
      await compareAll(options, reporter, checker, first.envelope, done);
    } catch (error) {
      if (!(error instanceof SourceError) || error instanceof ForwardedAnswerError) throw error;
      checker.reportUnconfirmed();
      if (error instanceof NoAnswerError) report.add(error.difference);
      broken = error.message;
    }
    return { ...done, answers: checker.compared, broken };
  } finally {
    for (const service of opened) await service.close();
  }
}

/** Its parameters would override those that verify adds. */
function refuseQuery(listing: string): void {
  if (!new URL(listing).search) return;
  throw new SourceError(`${listing} must be a listing without a query: verify asks with its own.`);
}

/** @param done what was compared so far */
async function compareAll(
  { sample, origins, routes }: VerifyOptions,
  reporter: Progress,
  checker: Checker,
  { results, next, count = results.length }: Envelope,
  done: { records: number; orders: number },
): Promise<void> {
  const size = Math.max(1, next === null ? count : results.length);
  const pages = Math.max(1, Math.ceil(count / size));
  await checkContractRequests(checker, pages);
  await checkRoutes(checker, routes, results);
  await checkHeaders(checker);
  await checkCors(checker, requestFor(checker.options, ''), await allowedMethods(checker), origins);
  const orderings = await checkOrderings(checker);
  await checker.recheck();

  const [reported, common] = [new Set<string>(), new IdSet()];
  let read = 0;
  const compared = sample === undefined ? count : Math.min(count, sample * size);
  const onRecords = (number: number) => {
    read += number;
    reporter.progress(read, compared * orderings.length);
    done.records = Math.min(read, compared);
  };
  for (const ordering of orderings) {
    const walk = { checker, ordering, pageSize: size, reported, common, onRecords };
    if (sample === undefined) await walkOrdering(walk);
    else await samplePages(walk, sample, pages);
    if (checker.unreachable !== undefined) throw new SourceError(checker.unreachable);
    done.orders++;
  }
  done.records = compared;
}

/** Methods of the source at the listing, by its `Allow`; without that, those of the contract. */
async function allowedMethods(checker: Checker): Promise<ReadonlySet<string>> {
  const { theirs } = checker.options;
  const { headers } = await checker.askSource(theirs.path);
  const allowed = (headers['allow'] ?? 'GET, POST').toUpperCase().split(/[\s,]+/);
  return new Set(allowed.filter((name) => appMethods.has(name)));
}

async function checkContractRequests(checker: Checker, pages: number): Promise<void> {
  const plain = requestFor(checker.options, '');
  const found = checker.compare(plain, await checker.ask(plain));
  const reported = new Set(found.filter(isOfRecordList).map(({ sentence }) => sentence));
  const select: ComparedRequest['select'] = (differences) =>
    differences.filter((found) => !isOfRecordList(found) || !reported.has(found.sentence));
  for (const request of contractRequests(checker.options, pages)) {
    await checker.check({ ...request, select });
  }
  const refused: ComparedRequest = { ...plain, method: 'TRACE' };
  const { status, headers } = await checker.askSource(refused.targets.theirs, 'TRACE');
  // A proxy that answers TRACE itself says nothing about the service.
  if (status === 405 && /json/.test(headers['content-type'] ?? '')) await checker.check(refused);
  // Which records later pages have is compared in the walk over all pages.
  for (const query of ['?page=last', `?page=2&${unknownParameters}`]) {
    await checker.check({ ...requestFor(checker.options, query), select: withoutRecordLists });
  }
}

/** Reports another page size once, and opens the service again with that of the source: each page would differ. */
async function openWithPageSize(
  { openOurs, report, signal }: VerifyOptions,
  notify: (sentence: string) => void,
  theirs: ComparedService,
  { count, next, results: { length: pageSize } }: Envelope,
): Promise<ComparedService> {
  const read = async (service: ComparedService, query = '') => {
    const options = { signal, notify, allowErrors: true };
    const answer = await askWithRetry(service, 'GET', service.path + query, options);
    return { answer, page: readListingPage(answer, 'id') };
  };
  const ours = await openOurs(undefined);
  const { answer, page } = await read(ours);
  if (answer.status === 200 && !page) {
    throw new SourceError(`${ours.base}${ours.path} answers, but with no page of a listing.`);
  }
  if (!page || page.next === undefined || next === null) return ours;
  const { length } = page.records;
  if (length === pageSize) return ours;
  const last = Math.ceil((count ?? 0) / pageSize);
  const { page: lastPage } = await read(theirs, `?page=${last}`);
  const addsUp =
    count === undefined ||
    (lastPage?.next === undefined && lastPage?.records.length === count - (last - 1) * pageSize);
  const advice = addsUp
    ? `set PAGE_SIZE=${pageSize}`
    : `its pages do not add up to its count of ${count}, as if it left out records, such as private outfits of others; give the --header of a user who sees all`;
  const sentence = `A page has ${pageSize} records in the source, ${length} here: ${advice}.`;
  const asked = { there: theirs.base + theirs.path, here: ours.base + ours.path };
  report.add({ kind: 'records', where: 'page size', sentence }, asked);
  return addsUp ? openOurs(pageSize) : ours;
}

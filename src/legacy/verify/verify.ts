// Compares a live listing with this service: every ordering, and the edge cases of the contract.

import { createFetchPage, isSameHost } from '../../old-listing/fetch-page.ts';
import { readPage } from '../../old-listing/listing.ts';
import { type Envelope, type Progress, SourceError } from '../../old-listing/page.ts';
import { isOfRecordList, readListingPage, withoutRecordLists } from '../compare/listing-page.ts';
import { Checker } from './checker.ts';
import { type ComparedRequest, edgeRequests, orderings, requestFor } from './compared-requests.ts';
import {
  type Asked,
  type Both,
  type ComparedService,
  createHttpService,
  readBreak,
} from './compared-service.ts';
import { appMethods, checkCors, unknownOrigin } from './cors-checks.ts';
import type { Report } from './report.ts';
import { type ComparedRoute, checkRoutes } from './route-requests.ts';
import { Listings, samplePages, walkOrdering } from './walk.ts';

interface VerifyOptions {
  readonly listing: string;
  /** Sent only to the host of the source: they may hold a secret. */
  readonly headers: Headers;
  /** This service. */
  readonly ours: ComparedService;
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
  const { listing, headers, ours, report, signal, timeout, wait } = options;
  const notify = (sentence: string) => reporter.note(sentence);
  refuseQuery(listing);
  const fetchPage = createFetchPage({ listing, headers, timeout });
  const first = await readPage(listing, false, { fetchPage, signal, notify });
  if (!first) throw new SourceError(`${listing} has no first page.`);
  refuseQuery(first.url);
  const url = new URL(first.url);
  const isOwn = isSameHost(new URL(listing), url);
  const theirs = createHttpService({ url: url.href, timeout, ...(isOwn ? { headers } : {}) });
  const [origin = unknownOrigin] = options.origins;
  const checker = new Checker({ theirs, ours, report, signal, notify, wait, origin });
  const done = { records: 0, orders: 0 };
  let broken: string | undefined;
  try {
    await compareAll(options, reporter, checker, first.envelope, done);
  } catch (error) {
    broken = readBreak(error);
    checker.reportUnconfirmed();
  } finally {
    await theirs.close();
  }
  return { ...done, answers: checker.compared, broken };
}

/** Its parameters would override those that verify adds. */
function refuseQuery(listing: string): void {
  if (!new URL(listing).search) return;
  throw new SourceError(`${listing} must be a listing without a query: verify asks with its own.`);
}

/** @param done what was compared so far */
async function compareAll(
  { sample, origins, routes, report }: VerifyOptions,
  reporter: Progress,
  checker: Checker,
  { results, next, count = results.length }: Envelope,
  done: { records: number; orders: number },
): Promise<void> {
  const size = Math.max(1, next === null ? count : results.length);
  const pages = Math.max(1, Math.ceil(count / size));
  const plain = requestFor(checker.options, '');
  const reported = new Set<string>();
  const answers = await checker.check({
    ...plain,
    // Which records pages have is compared in the walk over all pages.
    select(differences) {
      for (const found of differences) if (isOfRecordList(found)) reported.add(found.sentence);
      return withoutRecordLists(differences);
    },
  });
  comparePageSizes(checker, plain, answers);
  const select: ComparedRequest['select'] = (differences) =>
    differences.filter((found) => !isOfRecordList(found) || !reported.has(found.sentence));
  for (const request of edgeRequests(checker.options, pages, (sentence) => report.note(sentence))) {
    await checker.check({ select, ...request });
  }
  await checkRoutes(checker, routes, results);
  await checkCors(checker, plain, allowedMethods(answers.theirs), origins);
  await checker.recheck();

  const found = new Listings();
  let read = 0;
  const compared = sample === undefined ? count : Math.min(count, sample * size);
  const onRecords = (number: number) => {
    read += number;
    reporter.progress(read, compared * orderings.length);
    done.records = Math.min(read, compared);
  };
  for (const ordering of orderings) {
    const walk = { checker, ordering, found, onRecords };
    if (sample === undefined) await walkOrdering(walk);
    else await samplePages(walk, sample, pages, size);
    await checker.recheck();
    done.orders++;
  }
  done.records = compared;
}

/** By the `Allow` of the listing; without that, those of the contract. */
function allowedMethods({ headers }: Asked): ReadonlySet<string> {
  const allowed = (headers['allow'] ?? 'GET, POST').toUpperCase().split(/[\s,]+/);
  return new Set(allowed.filter((name) => appMethods.has(name)));
}

/** Reports another page size. @throws SourceError when this service has no page */
function comparePageSizes(
  checker: Checker,
  plain: ComparedRequest,
  { theirs, ours }: Both<Asked>,
): void {
  const [there, here] = [readListingPage(theirs, 'id'), readListingPage(ours, 'id')];
  if (ours.status === 200 && !here) {
    const { base, path } = checker.options.ours;
    throw new SourceError(`${base}${path} answers, but with no page of a listing.`);
  }
  const [before, after] = [there?.records.length, here?.records.length];
  const hasMore = there?.next !== undefined && here?.next !== undefined;
  if (!hasMore || before === after) return;
  const sentence = `A page has ${before} records in the source, ${after} here: set PAGE_SIZE=${before}; or, where the source leaves out private outfits of others, give the --header of a user who sees all.`;
  checker.report(plain, [{ kind: 'records', where: 'page size', sentence }]);
}

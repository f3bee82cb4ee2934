// A live listing against this service: every order that it has, and what apps ask beside.

import type { Reporter } from '../../transfer/reporter.ts';
import { SourceError } from '../../transfer/source/batch.ts';
import { createFetchPage, isSameHost } from '../../transfer/source/fetch-page.ts';
import { IdSet } from '../../transfer/source/id-set.ts';
import { readPage } from '../../transfer/source/listing.ts';
import type { Difference } from '../compare/difference.ts';
import { isOfRecordList, readListingPage, withoutRecordLists } from '../compare/listing-page.ts';
import { Checker } from './checker.ts';
import { askBeside, findOrderings, furtherPages, inquire } from './questions.ts';
import type { Report } from './report.ts';
import { askAgain, createHttpSide, NoAnswerError, PassedOnError, type Side } from './side.ts';
import { samplePages, walkOrdering } from './walk.ts';

interface VerifyOptions {
  readonly listing: string;
  /** Sent to the host of the source only: they may hold a secret. */
  readonly headers: Headers;
  /** This service, with pages of that many records where that can be chosen. */
  readonly openOurs: (pageSize: number | undefined) => Promise<Side>;
  readonly report: Report;
  readonly signal: AbortSignal;
  readonly timeout: number;
  /** Milliseconds before a difference is looked at for the last time. */
  readonly wait: number;
  readonly sample: number | undefined;
}

interface VerifyOutcome {
  readonly records: number;
  readonly answers: number;
  readonly orders: number;
  readonly broken: string | undefined;
}

/** Held is a bit for each id. A side that fails for good ends it. @throws SourceError when one cannot be read at all */
export async function verifyListing(
  options: VerifyOptions,
  reporter: Reporter,
): Promise<VerifyOutcome> {
  const { listing, headers, report, signal, timeout, wait } = options;
  const notify = reporter.note;
  refuseQuery(listing);
  const fetchPage = createFetchPage({ listing, headers, timeout });
  const first = await readPage(listing, false, { fetchPage, signal, notify });
  if (!first) throw new SourceError(`${listing} has no first page.`);
  refuseQuery(first.url);
  const url = new URL(first.url);
  const isOwn = isSameHost(new URL(listing), url);
  const theirs = createHttpSide({ url: url.href, timeout, ...(isOwn ? { headers } : {}) });
  try {
    const { results, next, count = results.length } = first.envelope;
    const pageSize = next === null ? undefined : results.length;
    const ours = await openWithPages(options, notify, theirs, pageSize);
    const checker = new Checker({ theirs, ours, report, signal, notify, wait });
    const done = { records: 0, orders: 0 };
    let broken: string | undefined;
    try {
      await compareAll(options, reporter, checker, { count, pageSize, done });
    } catch (error) {
      if (!(error instanceof SourceError) || error instanceof PassedOnError) throw error;
      checker.giveUp();
      if (error instanceof NoAnswerError) {
        report.add({ kind: error.kind, sentence: error.message });
      }
      broken = error.message;
    }
    return { ...done, answers: checker.compared, broken };
  } finally {
    theirs.close();
  }
}

/** Its own parameters would take the place of those. */
function refuseQuery(listing: string): void {
  if (!new URL(listing).search) return;
  throw new SourceError(`${listing} must be a listing without a query: verify asks with its own.`);
}

interface Found {
  readonly count: number;
  /** Undefined when all records are on one page. */
  readonly pageSize: number | undefined;
  /** What has been compared in whole orders so far. */
  readonly done: { records: number; orders: number };
}

async function compareAll(
  { sample }: VerifyOptions,
  reporter: Reporter,
  checker: Checker,
  { count, pageSize, done }: Found,
): Promise<void> {
  const size = Math.max(1, pageSize ?? count);
  const pages = Math.max(1, Math.ceil(count / size));
  await askQuestions(checker, pages);
  const inquireOrdering = (name: string) =>
    inquire(checker.options, `?ordering=${encodeURIComponent(name)}`);
  const { own, others, ignored } = await findOrderings((name) =>
    checker.askBriefly('theirs', inquireOrdering(name).there),
  );
  for (const name of [...others, ...ignored]) {
    await checker.check(inquireOrdering(name), (differences) =>
      ignored.includes(name) ? nameIgnored(name, differences) : differences,
    );
  }
  await checker.settle();

  const [known, both] = [new Set<string>(), new IdSet()];
  let read = 0;
  const compared = sample === undefined ? count : Math.min(count, sample * size);
  const onRecords = (number: number) => {
    read += number;
    reporter.progress(read, compared * own.length);
    done.records = Math.min(read, compared);
  };
  for (const ordering of own) {
    const of = { checker, ordering, pageSize: size, known, both, onRecords };
    if (sample === undefined) await walkOrdering(of);
    else await samplePages(of, sample, pages);
    if (checker.dead !== undefined) throw new SourceError(checker.dead);
    done.orders++;
  }
  done.records = compared;
}

/** Which records stand where is one difference then, and no record is lost. */
function nameIgnored(name: string, differences: Difference[]): Difference[] {
  if (!differences.some(isOfRecordList)) return differences;
  const sentence = `The source passes over ordering=${name}, and here it sorts.`;
  return [
    ...withoutRecordLists(differences),
    { kind: 'ignored-ordering', where: `ordering=${name}`, sentence },
  ];
}

async function askQuestions(checker: Checker, pages: number): Promise<void> {
  const plain = inquire(checker.options, '');
  const found = checker.compare(plain, await checker.ask(plain));
  const said = new Set(found.filter(isOfRecordList).map(({ sentence }) => sentence));
  for (const inquiry of askBeside(checker.options, pages)) {
    await checker.check(inquiry, (differences) =>
      differences.filter((found) => !isOfRecordList(found) || !said.has(found.sentence)),
    );
  }
  for (const query of furtherPages) {
    await checker.check(inquire(checker.options, query), withoutRecordLists);
  }
}

/** Pages of another size would differ in everything: it is said once, and set right where it can be. */
async function openWithPages(
  { openOurs, report, signal }: VerifyOptions,
  notify: (sentence: string) => void,
  theirs: Side,
  pageSize: number | undefined,
): Promise<Side> {
  const ours = await openOurs(undefined);
  const answer = await askAgain(ours, 'GET', ours.path, { signal, notify, allowErrors: true });
  const page = readListingPage(answer, 'id');
  if (answer.status === 200 && !page) {
    throw new SourceError(`${ours.base}${ours.path} answers, but with no page of a listing.`);
  }
  if (!page || page.next === undefined || pageSize === undefined) return ours;
  const { length } = page.records;
  if (length === pageSize) return ours;
  const sentence = `A page has ${pageSize} records in the source, ${length} here: set PAGE_SIZE=${pageSize}.`;
  const asked = { there: theirs.base + theirs.path, here: ours.base + ours.path };
  report.add({ kind: 'record-number', where: 'page size', sentence }, asked);
  return openOurs(pageSize);
}

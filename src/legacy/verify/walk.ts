// Compares one ordering of a live listing page by page, or in a sample of its pages.
import type { Answer } from '../../http/client.ts';
import type { IdSet } from '../../old-listing/id-set.ts';
import { createEndWatch } from '../../old-listing/listing.ts';
import {
  checkOrder,
  type ListingPage,
  type PageRecord,
  readListingPage,
  withoutRecordLists,
} from '../compare/listing-page.ts';
import { Alignment, type Moved, toNumber } from './alignment.ts';
import type { Checker } from './checker.ts';
import { type ComparedRequest, requestFor } from './compared-requests.ts';
import { type Both, type Side, sides } from './compared-service.ts';
import type { Ordering } from './ordering-checks.ts';

interface WalkOptions {
  readonly checker: Checker;
  readonly ordering: Ordering;
  readonly pageSize: number;
  /** Ids of one-sided records that are in the report already: each is reported once, not per ordering. */
  readonly reported: Set<string>;
  /** Ids that both listings have, as the default ordering, which is walked first, has found. */
  readonly common: IdSet;
  readonly onRecords: (number: number) => void;
}

const labelOf = ({ ordering: { name } }: WalkOptions) => `Order (${name || 'default'}):`;

function numberedQuery({ ordering: { name } }: WalkOptions, page: number | 'last'): string {
  const parts = [name && `ordering=${name}`, page === 1 ? '' : `page=${page}`].filter(Boolean);
  return parts.length > 0 ? `?${parts.join('&')}` : '';
}

function requestForPages(
  options: WalkOptions,
  legacyPage: number,
  ownPage = legacyPage,
): ComparedRequest {
  const [theirs, ours] = [numberedQuery(options, legacyPage), numberedQuery(options, ownPage)];
  return { ...requestFor(options.checker.options, theirs, ours), isRequired: true };
}

async function readPage({ checker, ordering }: WalkOptions, side: Side, query: string) {
  return readListingPage(await checker.askOne(side, query), ordering.field);
}

/**
 * Both listings have the same records in the same order if each is sorted by its ordering, and neither lacks a record of
 * the other. So the order is checked page by page, and records are matched by their ids.
 */
export async function walkOrdering(options: WalkOptions): Promise<void> {
  const { checker, ordering, onRecords } = options;
  const alignment = new Alignment(ordering.name === '' ? options.common : undefined);
  const watches = { theirs: createEndWatch(), ours: createEndWatch() };
  const before: Partial<Record<Side, PageRecord>> = {};
  const start = numberedQuery(options, 1);
  let queries: Both<string | undefined> = { theirs: start, ours: start };
  let hasOpenTies = false;
  for (let page = 1; queries.theirs !== undefined || queries.ours !== undefined; page++) {
    const read = await readBoth(options, queries);
    // The difference is reported. Without this page, all of its records would count as one-sided.
    if (sides.some((side) => queries[side] !== undefined && !read[side])) return;
    const moved: Moved[] = [];
    for (const side of sides) {
      const { records = [], next, count } = read[side] ?? {};
      moved.push(...alignment.add(side, records, page));
      hasOpenTies ||= side === 'theirs' && checkOrder(records, ordering.name).isTieOpen;
      await checkBoundary(options, side, page, [before[side], records[0]]);
      const last = records.at(-1);
      if (last) before[side] = last;
      if (next !== undefined) watches[side](next, { next, results: [...records], count });
    }
    onRecords(read.theirs?.records.length ?? 0);
    await compareMoved(options, moved);
    queries = { theirs: read.theirs?.next, ours: read.ours?.next };
  }
  hasOpenTies = (await reportOneSided(options, alignment)) || hasOpenTies;
  await checker.recheck();
  if (hasOpenTies) noteTies(options);
}

function noteTies({ checker, ordering }: WalkOptions): void {
  checker.options.report.note(
    `In the order ${ordering.name || 'created'}, records with the same value come in another order among themselves; the source leaves that open.`,
  );
}

async function readBoth(
  options: WalkOptions,
  { theirs, ours }: Both<string | undefined>,
): Promise<Partial<Both<ListingPage | undefined>>> {
  const { checker, ordering } = options;
  if (theirs === undefined) return { ours: await readPage(options, 'ours', ours ?? '') };
  if (ours === undefined) return { theirs: await readPage(options, 'theirs', theirs) };
  const read = (answer: Answer | undefined) => answer && readListingPage(answer, ordering.field);
  const answers = await checker.check({
    ...{ ...requestFor(checker.options, theirs, ours), isRequired: true },
    // Which records a page has is compared over the whole listing; here, whether both pages are sorted.
    select(differences, both) {
      const found = withoutRecordLists(differences);
      const [their, our] = sides.map(
        (side) => checkOrder(read(both[side])?.records ?? [], ordering.name).misplaced,
      );
      if (!their === !our) return found;
      const [sorted, ids] = their ? ['here', their] : ['in the source', our ?? []];
      const sentence = `${labelOf(options)} outfit ${ids[0]} comes before outfit ${ids[1]}, but the listing ${sorted} is sorted.`;
      return [...found, { kind: 'records', where: 'order', sentence }];
    },
  });
  return { theirs: read(answers.theirs), ours: read(answers.ours) };
}

/** Whether the first record of a page comes behind the last one of the page before; if not, both are read again. */
async function checkBoundary(
  options: WalkOptions,
  side: Side,
  page: number,
  pair: readonly [PageRecord | undefined, PageRecord | undefined],
): Promise<void> {
  const findWrong = (records: typeof pair) => {
    const [last, first] = records;
    return last && first && checkOrder([last, first], options.ordering.name).misplaced;
  };
  if (!findWrong(pair)) return;
  const readAgain = (number: number) => readPage(options, side, numberedQuery(options, number));
  const [last, first] = [await readAgain(page - 1), await readAgain(page)];
  const ids = findWrong([last?.records.at(-1), first?.records[0]]);
  if (!ids) return;
  const where = side === 'theirs' ? 'in the source' : 'here';
  const sentence = `${labelOf(options)} outfit ${ids[0]}, the last of its page ${where}, comes before outfit ${ids[1]} of the next page.`;
  options.checker.report(requestForPages(options, page), [
    { kind: 'records', where: 'order', sentence },
  ]);
}

/** Compares records that are on different pages of the two listings; a recheck asks for each pair of pages once. */
async function compareMoved(options: WalkOptions, moved: readonly Moved[]): Promise<void> {
  const byPages = new Map<string, Moved[]>();
  for (const one of moved) {
    const pages = `${one.theirs.page} ${one.ours.page}`;
    byPages.set(pages, [...(byPages.get(pages) ?? []), one]);
  }
  for (const [pages, several] of byPages) {
    const [theirs, ours] = pages.split(' ').map(Number);
    const request: ComparedRequest = {
      ...requestForPages(options, theirs ?? 1, ours),
      select: (differences) =>
        withoutRecordLists(differences).filter(({ where }) => where?.startsWith('results')),
    };
    const wrap = (side: Side) => wrapRecords(several.map((one) => one[side]));
    await options.checker.settle(request, { theirs: wrap('theirs'), ours: wrap('ours') });
  }
}

function wrapRecords(records: readonly PageRecord[]): Answer {
  const results = records.map(({ value }) => value);
  const body = JSON.stringify({ count: 1, next: null, previous: null, results });
  return { status: 200, headers: {}, body: Buffer.from(body) };
}

export async function samplePages(
  options: WalkOptions,
  number: number,
  pages: number,
): Promise<void> {
  const { checker, onRecords, pageSize } = options;
  const chosen = Math.min(number, pages);
  for (let index = 0; index < chosen; index++) {
    const page = 1 + Math.round((index * (pages - 1)) / (chosen - 1 || 1));
    await checker.check({
      ...requestForPages(options, page),
      select(differences) {
        const others = differences.filter(({ kind }) => kind !== 'tie-order');
        if (others.length < differences.length) noteTies(options);
        return others;
      },
    });
    onRecords(pageSize);
  }
  await checker.recheck();
}

/** One-sided records that are looked up again before they are reported; the rest are reported at once. */
const maxLookups = 50;
const maxReported = 100_000;

/** @returns whether ties were skipped: with equal sort values, a source may repeat one record and omit another */
async function reportOneSided(options: WalkOptions, alignment: Alignment): Promise<boolean> {
  const { reported, common, checker, pageSize } = options;
  const { unmatched } = alignment;
  const shift = Math.round(alignment.shift / Math.max(1, pageSize));
  let lookups = 0;
  let hasTies = false;
  for (const side of sides) {
    for (const { id, page, isTied } of unmatched[side]) {
      const isCommon = common.has(toNumber(id) ?? -1);
      hasTies ||= isCommon && isTied;
      if (reported.has(id) || (isCommon && isTied)) continue;
      const legacyPage = side === 'theirs' ? page : Math.max(1, page - shift);
      const ownPage = side === 'ours' ? page : Math.max(1, page + shift);
      if (lookups < maxLookups) {
        const inSource = await isAround(options, 'theirs', id, legacyPage);
        if (inSource === (await isAround(options, 'ours', id, ownPage))) continue;
        lookups++;
      }
      if (!isCommon && reported.size < maxReported) reported.add(id);
      const where = side === 'theirs' ? 'missing' : 'additional';
      const what = side === 'theirs' ? 'is missing here' : 'is not in the source';
      const sentence = `${isCommon ? `${labelOf(options)} outfit` : 'Outfit'} ${id} ${what}.`;
      checker.report(requestForPages(options, legacyPage, ownPage), [
        { kind: 'records', where, sentence },
      ]);
    }
  }
  return hasTies;
}

/** Also looks at the first and last page: a record that changed meanwhile may have moved to either end. */
async function isAround(
  options: WalkOptions,
  side: Side,
  id: string,
  page: number,
): Promise<boolean> {
  const pages = [page, page + 1, page - 1, 1].filter((number) => number >= 1);
  for (const number of new Set([...pages, 'last' as const])) {
    const found = await readPage(options, side, numberedQuery(options, number));
    if (found?.records.some((record) => record.id === id)) return true;
  }
  return false;
}

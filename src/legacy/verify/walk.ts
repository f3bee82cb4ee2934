// Compares one ordering of a live listing page by page, or in a sample of its pages.
import type { Answer } from '../../http/client.ts';
import type { IdSet } from '../../old-listing/id-set.ts';
import { createEndWatch } from '../../old-listing/listing.ts';
import type { Difference } from '../compare/difference.ts';
import {
  checkOrder,
  type ListingPage,
  type PageRecord,
  readListingPage,
  withoutRecordLists,
} from '../compare/listing-page.ts';
import { Alignment, type Moved, type Side, toNumber } from './alignment.ts';
import type { Checker } from './checker.ts';
import {
  type ComparedRequest,
  type Ordering,
  requestFor,
  type Select,
} from './compared-requests.ts';

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

const sides = ['theirs', 'ours'] as const;

function requestForPages(
  { checker, ordering }: WalkOptions,
  legacyPage: number,
  ownPage: number,
): ComparedRequest {
  const [theirs, ours] = [numberedQuery(ordering, legacyPage), numberedQuery(ordering, ownPage)];
  return { ...requestFor(checker.options, theirs, ours), isRequired: true };
}

function numberedQuery({ name }: Ordering, page: number | 'last'): string {
  const parts = [name && `ordering=${name}`, page === 1 ? '' : `page=${page}`].filter(Boolean);
  return parts.length > 0 ? `?${parts.join('&')}` : '';
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
  const start = numberedQuery(ordering, 1);
  let targets: Readonly<Record<Side, string | undefined>> = { theirs: start, ours: start };
  let hasOpenTies = false;
  for (let page = 1; targets.theirs !== undefined || targets.ours !== undefined; page++) {
    const read = await readBoth(options, targets);
    // The difference is reported. Without this page, all of its records would count as one-sided.
    if (sides.some((side) => targets[side] !== undefined && !read[side])) return;
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
    targets = { theirs: read.theirs?.next, ours: read.ours?.next };
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
  { checker, ordering }: WalkOptions,
  { theirs, ours }: Readonly<Record<Side, string | undefined>>,
): Promise<Readonly<Record<Side, ListingPage | undefined>>> {
  const read = (answer: Answer | undefined) => answer && readListingPage(answer, ordering.field);
  if (theirs !== undefined && ours !== undefined) {
    const request = { ...requestFor(checker.options, theirs, ours), isRequired: true };
    const answers = await checker.check(request, selectOfWalk(ordering));
    return { theirs: read(answers.theirs), ours: read(answers.ours) };
  }
  const alone = theirs === undefined ? 'ours' : 'theirs';
  const target = checker.options[alone].path + (theirs ?? ours);
  const page = read(await checker.askOne(alone, target));
  return { theirs: undefined, ours: undefined, [alone]: page };
}

/** Which records a page has is compared over the whole listing; here, whether both pages are sorted. */
const selectOfWalk =
  ({ name, field }: Ordering): Select =>
  (differences, { theirs, ours }) => {
    const [their, our] = [theirs, ours].map((answer) => {
      const { records = [] } = readListingPage(answer, field) ?? {};
      return checkOrder(records, name).misplaced;
    });
    const found = withoutRecordLists(differences);
    if (!their === !our) return found;
    const [sorted, ids] = their ? ['here', their] : ['in the source', our ?? []];
    const sentence = `Order (${name || 'default'}): outfit ${ids[0]} comes before outfit ${ids[1]}, but the listing ${sorted} is sorted.`;
    return [...found, { kind: 'records', where: 'order', sentence }];
  };

/** Whether the first record of a page comes behind the last one of the page before; if not, both are read again. */
async function checkBoundary(
  options: WalkOptions,
  side: Side,
  page: number,
  pair: readonly [PageRecord | undefined, PageRecord | undefined],
): Promise<void> {
  const { checker, ordering } = options;
  const isWrong = (records: readonly (PageRecord | undefined)[]) =>
    checkOrder(
      records.filter((record) => record !== undefined),
      ordering.name,
    ).misplaced;
  if (!isWrong(pair)) return;
  const again: ListingPage[] = [];
  for (const number of [page - 1, page]) {
    const target = checker.options[side].path + numberedQuery(ordering, number);
    const found = readListingPage(await checker.askOne(side, target), ordering.field);
    if (found) again.push(found);
  }
  const ids = isWrong([again[0]?.records.at(-1), again[1]?.records[0]]);
  if (!ids) return;
  const where = side === 'theirs' ? 'in the source' : 'here';
  const sentence = `Order (${ordering.name || 'default'}): outfit ${ids[0]}, the last of its page ${where}, comes before outfit ${ids[1]} of the next page.`;
  checker.report(requestForPages(options, page, page), [
    { kind: 'records', where: 'order', sentence },
  ]);
}

/** Compares records that are on different pages of the two listings, each pair of pages at once. */
async function compareMoved(options: WalkOptions, moved: readonly Moved[]): Promise<void> {
  const { checker } = options;
  const byPages = new Map<string, Moved[]>();
  for (const one of moved) {
    const pages = `${one.theirs.page} ${one.ours.page}`;
    byPages.set(pages, [...(byPages.get(pages) ?? []), one]);
  }
  for (const several of byPages.values()) {
    const request = requestForPages(
      options,
      several[0]?.theirs.page ?? 1,
      several[0]?.ours.page ?? 1,
    );
    const [theirs, ours] = sides.map((side) => wrap(several.map((one) => one[side].value)));
    if (theirs && ours) await checker.settle(request, { theirs, ours }, onlyFields);
  }
}

const wrap = (results: readonly unknown[]): Answer => ({
  status: 200,
  headers: {},
  body: Buffer.from(JSON.stringify({ count: 1, next: null, previous: null, results })),
});

function onlyFields(differences: readonly Difference[]): Difference[] {
  return withoutRecordLists(differences).filter(({ where }) => where?.startsWith('results'));
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
    await checker.check(requestForPages(options, page, page), (differences) => {
      const others = differences.filter(({ kind }) => kind !== 'tie-order');
      if (others.length < differences.length) noteTies(options);
      return others;
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
  const { ordering, reported, common, checker, pageSize } = options;
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
      const label = isCommon ? `Order (${ordering.name || 'default'}): outfit` : 'Outfit';
      const difference = { kind: 'records', where, sentence: `${label} ${id} ${what}.` } as const;
      checker.report(requestForPages(options, legacyPage, ownPage), [difference]);
    }
  }
  return hasTies;
}

/** Also looks at the first and last page: a record that changed meanwhile may have moved to either end. */
async function isAround(
  { checker, ordering }: WalkOptions,
  side: Side,
  id: string,
  page: number,
): Promise<boolean> {
  const pages = [page, page + 1, page - 1, 1].filter((number) => number >= 1);
  for (const number of new Set([...pages, 'last' as const])) {
    const target = checker.options[side].path + numberedQuery(ordering, number);
    const found = readListingPage(await checker.askOne(side, target), ordering.field);
    if (found?.records.some((record) => record.id === id)) return true;
  }
  return false;
}

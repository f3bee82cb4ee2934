// Compares one ordering of a live listing page by page, or in a sample of its pages.
import type { IdSet } from '../../old-listing/id-set.ts';
import { createEndWatch } from '../../old-listing/listing.ts';
import type { Difference } from '../compare/difference.ts';
import { type ListingPage, readListingPage, withoutRecordLists } from '../compare/listing-page.ts';
import { Alignment, type Placed, toNumber } from './alignment.ts';
import type { Checker } from './checker.ts';
import { type ComparedRequest, type Ordering, requestFor } from './compared-requests.ts';

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

export async function walkOrdering(options: WalkOptions): Promise<void> {
  const { checker, ordering, onRecords } = options;
  const acrossPages = new Map<string, readonly [Placed, Placed]>();
  const misplaced: [Difference, number, number][] = [];
  const alignment = new Alignment({
    matched: (id) => {
      const number = toNumber(id);
      if (number !== undefined) options.common.add(number);
    },
    matchedAcrossPages: (theirs, ours) =>
      acrossPages.set(`${theirs.page} ${ours.page} ${theirs.id}`, [theirs, ours]),
    misplaced: ({ id, page }, before, ours) => {
      const sentence = `Order (${ordering.name || 'default'}): outfit ${id} comes behind outfit ${before.id} in the source, but not here.`;
      misplaced.push([{ kind: 'record-order', where: 'results', sentence }, page, ours.page]);
    },
  });
  const watches = { theirs: createEndWatch(), ours: createEndWatch() };
  const targets: Targets = {
    theirs: numberedQuery(ordering, 1),
    ours: numberedQuery(ordering, 1),
  };

  for (let page = 1; targets.theirs !== undefined || targets.ours !== undefined; page++) {
    const { theirs, ours } = await readBoth(options, targets);
    // Both or none: the records of a page that only one service returned would all count as one-sided.
    if (theirs !== 'unread' && ours !== 'unread') {
      if (theirs) alignment.add('theirs', theirs.records, page);
      if (ours) alignment.add('ours', ours.records, page);
    }
    onRecords(isPage(theirs) ? theirs.records.length : 0);
    await compareAcrossPages(options, acrossPages);
    for (const [difference, legacyPage, ownPage] of misplaced.splice(0)) {
      checker.report(requestForPages(options, legacyPage, ownPage), [difference]);
    }
    const following = numberedQuery(ordering, page + 1);
    targets.theirs = nextOf(theirs, ours, following);
    targets.ours = nextOf(ours, theirs, following);
    for (const [side, read] of Object.entries({ theirs, ours }) as [
      'theirs' | 'ours',
      PageRead,
    ][]) {
      const next = targets[side];
      if (next === undefined || !isPage(read)) continue;
      watches[side](next, { next, results: [...read.records], count: read.count });
    }
  }
  const tied = await reportOneSided(options, alignment);
  await checker.recheck();
  if (alignment.tied + tied > 0) noteTies(options);
}

function noteTies({ checker, ordering }: WalkOptions): void {
  checker.options.report.note(
    `In the order ${ordering.name || 'created'}, records with the same value come in another order among themselves; the source leaves that open.`,
  );
}

type Targets = Record<'theirs' | 'ours', string | undefined>;

/** A page, `unread` for an answer that is no page, or undefined after the last page. */
type PageRead = ListingPage | 'unread' | undefined;

const isPage = (read: PageRead): read is ListingPage => typeof read === 'object';

/** The next link of a page. Without a page: the following number, while the other listing continues. */
function nextOf(read: PageRead, other: PageRead, following: string): string | undefined {
  if (isPage(read)) return read.next;
  return read === 'unread' && isPage(other) && other.next !== undefined ? following : undefined;
}

async function readBoth(
  { checker, ordering: { field } }: WalkOptions,
  targets: Targets,
): Promise<{ theirs: PageRead; ours: PageRead }> {
  if (targets.theirs !== undefined && targets.ours !== undefined) {
    const both = requestFor(checker.options, targets.theirs, targets.ours);
    const request = { ...both, isRequired: true };
    const { theirs, ours } = await checker.check(request, withoutRecordLists);
    return {
      theirs: (theirs && readListingPage(theirs, field)) ?? 'unread',
      ours: (ours && readListingPage(ours, field)) ?? 'unread',
    };
  }
  const alone = targets.theirs === undefined ? 'ours' : 'theirs';
  const answer = await checker.askOne(alone, checker.options[alone].path + targets[alone]);
  return { theirs: undefined, ours: undefined, [alone]: readListingPage(answer, field) };
}

/** Records that stand on another page in each listing are compared one by one. */
async function compareAcrossPages(
  options: WalkOptions,
  acrossPages: Map<string, readonly [Placed, Placed]>,
): Promise<void> {
  const { checker } = options;
  const suspected = new Set<string>();
  for (const [theirs, ours] of acrossPages.values()) {
    const request = requestForPages(options, theirs.page, ours.page);
    const differences = checker.compare(request, { theirs: wrap(theirs), ours: wrap(ours) });
    const pages = `${theirs.page} ${ours.page}`;
    if (!differences.some((difference) => checker.needsRecheck(difference))) {
      checker.report(request, differences);
    } else if (!suspected.has(pages)) {
      suspected.add(pages);
      await checker.suspect(request, differences, onlyFields);
    }
  }
  acrossPages.clear();
}

const wrap = ({ text }: Placed) => ({
  status: 200,
  headers: {},
  body: Buffer.from(`{"count":1,"next":null,"previous":null,"results":[${text}]}`),
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
    const request = requestForPages(options, page, page);
    await checker.check(request, (differences) => {
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

/** @returns the number of skipped ties: with equal sort values, a source may repeat one record and omit another */
async function reportOneSided(options: WalkOptions, alignment: Alignment): Promise<number> {
  const { ordering, reported, common, checker, pageSize } = options;
  const { missing, additional } = alignment.finish();
  const shift = Math.round(alignment.shift / Math.max(1, pageSize));
  const isCommon = (id: string) => common.has(toNumber(id) ?? 0);
  let lookups = 0;
  let tied = 0;

  async function reportOne(side: 'theirs' | 'ours', { id, page, isTied }: Placed): Promise<void> {
    if (reported.has(id)) return;
    if (isCommon(id) && isTied) {
      tied++;
      return;
    }
    const legacyPage = side === 'theirs' ? page : Math.max(1, page - shift);
    const ownPage = side === 'ours' ? page : Math.max(1, page + shift);
    if (lookups < maxLookups) {
      const inSource = await isAround(options, 'theirs', id, legacyPage);
      const isOwn = await isAround(options, 'ours', id, ownPage);
      if (inSource === isOwn) return;
      lookups++;
    }
    checker.report(requestForPages(options, legacyPage, ownPage), [differenceOf(side, id)]);
  }

  function differenceOf(side: 'theirs' | 'ours', id: string): Difference {
    if (isCommon(id)) {
      const sentence = `Order (${ordering.name || 'default'}): outfit ${id} does not come where it should ${side === 'theirs' ? 'here' : 'in the source'}.`;
      return { kind: 'record-order', where: 'results', sentence };
    }
    if (reported.size < maxReported) reported.add(id);
    const sentence =
      side === 'theirs' ? `Outfit ${id} is missing here.` : `Outfit ${id} is not in the source.`;
    return { kind: 'record-number', where: 'results', sentence };
  }

  for (const record of missing) await reportOne('theirs', record);
  for (const record of additional) await reportOne('ours', record);
  return tied;
}

/** Also looks at the first and last page: a record that changed meanwhile may have moved to either end. */
async function isAround(
  { checker, ordering }: WalkOptions,
  side: 'theirs' | 'ours',
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

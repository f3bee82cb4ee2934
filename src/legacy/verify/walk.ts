// Compares one ordering of a live listing page by page, or in a sample of its pages.
import { IdSet } from '../../old-listing/id-set.ts';
import { createEndWatch } from '../../old-listing/listing.ts';
import { SourceError } from '../../old-listing/page.ts';
import {
  checkOrder,
  type ListingPage,
  type PageRecord,
  readListingPage,
  withoutRecordLists,
} from '../compare/listing-page.ts';
import type { Checker } from './checker.ts';
import {
  type ComparedRequest,
  type Ordering,
  requestFor,
  selectOrder,
} from './compared-requests.ts';
import { type Both, type Side, sides } from './compared-service.ts';

interface WalkOptions {
  readonly checker: Checker;
  readonly ordering: Ordering;
  /** What the default ordering, which is walked first, has found. */
  readonly found: Listings;
  readonly onRecords: (number: number) => void;
}

/**
 * The ids of two listings, which are matched while both are read. A record that one of them lacks shifts all later records
 * onto other pages, and must be reported once, not on every later page.
 */
export class Listings {
  readonly #ids: Both<IdSet> = { theirs: new IdSet(), ours: new IdSet() };
  /** The page of each record that only one listing has, so far. */
  readonly unmatched: Both<Map<number, number>> = { theirs: new Map(), ours: new Map() };
  /** Whether a record has come twice. */
  hasRepeated = false;
  /** The ids of records that were reported as only in one of them. */
  readonly reported = new IdSet();

  /** @param maxUnmatched records that only one has, after which a comparison makes no sense */
  constructor(private readonly maxUnmatched = 1_000_000) {}

  /**
   * @returns pairs of different pages that share records
   * @throws SourceError when too many have no match: the listings are not the same one
   */
  add(side: Side, records: readonly PageRecord[], page: number): Both<number>[] {
    const [own, others] =
      side === 'theirs'
        ? [this.unmatched.theirs, this.unmatched.ours]
        : [this.unmatched.ours, this.unmatched.theirs];
    const matches = new Set<number>();
    for (const { id } of records) {
      if (!this.#ids[side].add(id)) {
        this.hasRepeated = true;
        continue;
      }
      const match = others.get(id);
      others.delete(id);
      if (match === undefined) own.set(id, page);
      else if (match !== page) matches.add(match);
    }
    if (own.size > this.maxUnmatched) {
      throw new SourceError(
        `More than ${this.maxUnmatched} outfits are in one listing only: import first.`,
      );
    }
    return [...matches].map((match) =>
      side === 'theirs' ? { theirs: page, ours: match } : { theirs: match, ours: page },
    );
  }

  hasInBoth(id: number): boolean {
    return sides.every((side) => this.#ids[side].has(id));
  }
}

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

/** Pages that share records and are requested together: in listings of one order there are no more. */
const maxSharedPerPage = 2;

/**
 * Both listings have the same records in the same order if each is sorted by its ordering, and neither lacks a record of
 * the other. So the order is checked page by page, and records are matched by their ids.
 */
export async function walkOrdering(options: WalkOptions): Promise<void> {
  const { ordering, found, onRecords } = options;
  const isFirst = ordering.name === '';
  const listings = isFirst ? found : new Listings();
  const watches = { theirs: createEndWatch(), ours: createEndWatch() };
  const before: Partial<Record<Side, PageRecord>> = {};
  const start = numberedQuery(options, 1);
  let queries: Both<string | undefined> = { theirs: start, ours: start };
  let hasOpenTies = false;
  let shared = 0;
  for (let page = 1; queries.theirs !== undefined || queries.ours !== undefined; page++) {
    const read = await readPages(options, queries, { ...before });
    // The difference is reported. Without this page, all of its records would count as one-sided.
    if (!read) return;
    const pairs: Both<number>[] = [];
    for (const side of sides) {
      const { records = [], next, count } = read[side] ?? {};
      pairs.push(...listings.add(side, records, page));
      const last = records.at(-1);
      if (last) before[side] = last;
      if (next !== undefined) watches[side](next, { next, results: [...records], count });
    }
    const { misplaced, isTieOpen } = checkOrder(read.theirs?.records ?? [], ordering.name);
    hasOpenTies ||= isTieOpen && !misplaced;
    onRecords(read.theirs?.records.length ?? 0);
    // The other orderings have the same records.
    for (const pair of isFirst ? pairs : []) {
      if (shared++ < maxSharedPerPage * page) await compareShared(options, pair);
    }
    queries = { theirs: read.theirs?.next, ours: read.ours?.next };
  }
  await reportOneSided(options, listings, hasOpenTies || listings.hasRepeated);
  if (hasOpenTies) noteTies(options);
}

function noteTies({ checker, ordering }: WalkOptions): void {
  checker.options.report.note(
    `In the order ${ordering.name || 'created'}, records with the same value come in another order among themselves; the source leaves that open.`,
  );
}

type Pages = Partial<Both<ListingPage | undefined>>;

async function readPages(
  options: WalkOptions,
  { theirs, ours }: Both<string | undefined>,
  before: Partial<Both<PageRecord>>,
): Promise<Pages | undefined> {
  const { checker, ordering } = options;
  if (theirs !== undefined && ours !== undefined) {
    const request = { ...requestFor(checker.options, theirs, ours), isRequired: true };
    return checkPages(options, { ...request, select: selectOrder(ordering, before) });
  }
  const side = theirs === undefined ? 'ours' : 'theirs';
  const query = theirs ?? ours ?? '';
  const read = readListingPage(await checker.askOne(side, query), ordering.field);
  if (!read) throw withoutList(checker.options[side].path + query);
  return { [side]: read };
}

/** Undefined when one side has a list: then the difference is reported. @throws SourceError when none has */
async function checkPages(
  { checker, ordering }: WalkOptions,
  request: ComparedRequest,
): Promise<Pages | undefined> {
  const answers = await checker.check(request);
  const [theirs, ours] = sides.map((side) => readListingPage(answers[side], ordering.field));
  if (!theirs && !ours) throw withoutList(request.targets.theirs);
  return theirs && ours ? { theirs, ours } : undefined;
}

const withoutList = (target: string) =>
  new SourceError(`${target} is a page that others link to, and was answered without a list.`);

/** Compares the records that two different pages of the listings have both. */
async function compareShared(options: WalkOptions, { theirs, ours }: Both<number>): Promise<void> {
  await options.checker.check({
    ...requestForPages(options, theirs, ours),
    select: (differences) =>
      withoutRecordLists(differences).filter(({ where }) => where?.startsWith('results')),
  });
}

export async function samplePages(
  options: WalkOptions,
  number: number,
  pages: number,
  pageSize: number,
): Promise<void> {
  const { onRecords } = options;
  const chosen = Math.min(number, pages);
  for (let index = 0; index < chosen; index++) {
    const page = 1 + Math.round((index * (pages - 1)) / (chosen - 1 || 1));
    await checkPages(options, {
      ...requestForPages(options, page),
      select(differences) {
        const others = differences.filter(({ kind }) => kind !== 'tie-order');
        if (others.length < differences.length) noteTies(options);
        return others;
      },
    });
    onRecords(pageSize);
  }
}

/** One-sided records that are looked up again before they are reported; the rest are reported at once. */
const maxLookups = 50;

/** @param isOpen whether a page may have repeated a record that both have, and left out another one */
async function reportOneSided(
  options: WalkOptions,
  { unmatched }: Listings,
  isOpen: boolean,
): Promise<void> {
  const { checker, found, ordering } = options;
  let lookups = 0;
  for (const side of sides) {
    for (const [id, page] of unmatched[side]) {
      const isCommon = found.hasInBoth(id);
      if (found.reported.has(id) || (isCommon && isOpen)) continue;
      if (lookups < maxLookups) {
        const inSource = await isAround(options, 'theirs', id, page);
        if (inSource === (await isAround(options, 'ours', id, page))) continue;
        lookups++;
      }
      if (!isCommon) found.reported.add(id);
      const [where, what] =
        side === 'theirs' ? ['missing', 'is missing here'] : ['additional', 'is not in the source'];
      const whose = isCommon ? `Order (${ordering.name}): outfit` : 'Outfit';
      const sentence = `${whose} ${id} ${what}.`;
      checker.report(requestForPages(options, page), [{ kind: 'records', where, sentence }]);
    }
  }
}

/** Also looks at the first and last page: a record that changed meanwhile may have moved to either end. */
async function isAround(
  options: WalkOptions,
  side: Side,
  id: number,
  page: number,
): Promise<boolean> {
  const { checker, ordering } = options;
  const pages = [page, page + 1, page - 1, 1].filter((number) => number >= 1);
  for (const number of new Set([...pages, 'last' as const])) {
    const answer = await checker.askOne(side, numberedQuery(options, number));
    const read = readListingPage(answer, ordering.field);
    if (read?.records.some((record) => record.id === id)) return true;
  }
  return false;
}

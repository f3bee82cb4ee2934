// One order of a live listing, compared page by page, or in some of its pages.
import type { IdSet } from '../../transfer/source/id-set.ts';
import { createEndWatch } from '../../transfer/source/listing.ts';
import type { Difference } from '../compare/difference.ts';
import { type ListingPage, readListingPage, withoutRecordLists } from '../compare/listing-page.ts';
import { Alignment, type Placed, toNumber } from './alignment.ts';
import type { Checker } from './checker.ts';
import { type Inquiry, inquire, type Ordering } from './questions.ts';

interface WalkOptions {
  readonly checker: Checker;
  readonly ordering: Ordering;
  readonly pageSize: number;
  /** Records of which it has been said already that only one side has them. */
  readonly known: Set<string>;
  /** Records that both sides have: the default order, which comes first, has shown them. */
  readonly both: IdSet;
  readonly onRecords: (number: number) => void;
}

function inquirePages({ checker, ordering }: WalkOptions, there: number, here: number): Inquiry {
  const [theirs, ours] = [numberedQuery(ordering, there), numberedQuery(ordering, here)];
  return { ...inquire(checker.options, theirs, ours), isPatient: true };
}

function numberedQuery({ name }: Ordering, page: number | 'last'): string {
  const parts = [name && `ordering=${name}`, page === 1 ? '' : `page=${page}`].filter(Boolean);
  return parts.length > 0 ? `?${parts.join('&')}` : '';
}

export async function walkOrdering(options: WalkOptions): Promise<void> {
  const { checker, ordering, onRecords } = options;
  const apart = new Map<string, readonly [Placed, Placed]>();
  const misplaced: [Difference, number, number][] = [];
  const alignment = new Alignment({
    both: (id) => {
      const number = toNumber(id);
      if (number !== undefined) options.both.add(number);
    },
    apart: (theirs, ours) => apart.set(`${theirs.page} ${ours.page} ${theirs.id}`, [theirs, ours]),
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
    // A page that only one side has given would make all its records additional ones.
    if (theirs !== 'unread' && ours !== 'unread') {
      if (theirs) alignment.add('theirs', theirs.records, page);
      if (ours) alignment.add('ours', ours.records, page);
    }
    onRecords(isPage(theirs) ? theirs.records.length : 0);
    await compareApart(options, apart);
    for (const [difference, there, here] of misplaced.splice(0)) {
      checker.report(inquirePages(options, there, here), [difference]);
    }
    const following = numberedQuery(ordering, page + 1);
    targets.theirs = nextOf(theirs, ours, following);
    targets.ours = nextOf(ours, theirs, following);
    for (const [side, read] of Object.entries({ theirs, ours }) as ['theirs' | 'ours', Read][]) {
      const next = targets[side];
      if (next === undefined || !isPage(read)) continue;
      watches[side](next, { next, results: [...read.records], count: read.count });
    }
  }
  const tied = await reportOneSided(options, alignment);
  await checker.settle();
  if (alignment.tied + tied > 0) noteTies(options);
  if (alignment.lost > 0) {
    const sentence = `Order (${ordering.name || 'default'}): ${alignment.lost} records are further from their places than can be followed.`;
    checker.options.report.add({ kind: 'record-order', where: 'results', sentence });
  }
}

function noteTies({ checker, ordering }: WalkOptions): void {
  checker.options.report.note(
    `In the order ${ordering.name || 'created'}, records with the same value come in another order among themselves; the source leaves that open.`,
  );
}

type Targets = Record<'theirs' | 'ours', string | undefined>;

/** A page, `unread` when the answer was none, or undefined behind the end. */
type Read = ListingPage | 'unread' | undefined;

const isPage = (read: Read): read is ListingPage => typeof read === 'object';

/** The link of a page, or where the other side goes on when this one has given none. */
function nextOf(read: Read, other: Read, following: string): string | undefined {
  if (isPage(read)) return read.next;
  return read === 'unread' && isPage(other) && other.next !== undefined ? following : undefined;
}

async function readBoth(
  { checker, ordering: { field } }: WalkOptions,
  targets: Targets,
): Promise<{ theirs: Read; ours: Read }> {
  if (targets.theirs !== undefined && targets.ours !== undefined) {
    const both = inquire(checker.options, targets.theirs, targets.ours);
    const inquiry = { ...both, isPatient: true };
    const { theirs, ours } = await checker.check(inquiry, withoutRecordLists);
    return {
      theirs: (theirs && readListingPage(theirs, field)) ?? 'unread',
      ours: (ours && readListingPage(ours, field)) ?? 'unread',
    };
  }
  const alone = targets.theirs === undefined ? 'ours' : 'theirs';
  const answer = await checker.askOne(alone, checker.options[alone].path + targets[alone]);
  return { theirs: undefined, ours: undefined, [alone]: readListingPage(answer, field) };
}

async function compareApart(
  options: WalkOptions,
  apart: Map<string, readonly [Placed, Placed]>,
): Promise<void> {
  const { checker } = options;
  const doubted = new Set<string>();
  for (const [theirs, ours] of apart.values()) {
    const inquiry = inquirePages(options, theirs.page, ours.page);
    const differences = checker.compare(inquiry, { theirs: wrap(theirs), ours: wrap(ours) });
    const pages = `${theirs.page} ${ours.page}`;
    if (!differences.some((difference) => checker.isDoubtful(difference))) {
      checker.report(inquiry, differences);
    } else if (!doubted.has(pages)) {
      doubted.add(pages);
      await checker.doubt(inquiry, differences, onlyFields);
    }
  }
  apart.clear();
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
    const inquiry = inquirePages(options, page, page);
    await checker.check(inquiry, (differences) => {
      const others = differences.filter(({ kind }) => kind !== 'tie-order');
      if (others.length < differences.length) noteTies(options);
      return others;
    });
    onRecords(pageSize);
  }
  await checker.settle();
}

/** Records of which it is made sure that only one side has them; the others are reported as found. */
const maxConfirmed = 50;
const maxKnown = 100_000;

/** @returns how many were left out as tied: a source may repeat some of those on two pages, and leave out others */
async function reportOneSided(options: WalkOptions, alignment: Alignment): Promise<number> {
  const { ordering, known, both, checker, pageSize } = options;
  const { missing, additional, lostMissing, lostAdditional } = alignment.finish();
  const shift = Math.round(alignment.shift / Math.max(1, pageSize));
  const isInBoth = (id: string) => both.has(toNumber(id) ?? 0);
  let confirmed = 0;
  let tied = 0;

  async function judge(side: 'theirs' | 'ours', { id, page, isTied }: Placed): Promise<void> {
    if (known.has(id)) return;
    if (isInBoth(id) && isTied) {
      tied++;
      return;
    }
    const there = side === 'theirs' ? page : Math.max(1, page - shift);
    const here = side === 'ours' ? page : Math.max(1, page + shift);
    if (confirmed < maxConfirmed) {
      const isThere = await isAround(options, 'theirs', id, there);
      const isHere = await isAround(options, 'ours', id, here);
      if (isThere === isHere) return;
      confirmed++;
    }
    checker.report(inquirePages(options, there, here), [name(side, id)]);
  }

  function name(side: 'theirs' | 'ours', id: string): Difference {
    if (isInBoth(id)) {
      const sentence = `Order (${ordering.name || 'default'}): outfit ${id} does not come where it should ${side === 'theirs' ? 'here' : 'in the source'}.`;
      return { kind: 'record-order', where: 'results', sentence };
    }
    if (known.size < maxKnown) known.add(id);
    const sentence =
      side === 'theirs' ? `Outfit ${id} is missing here.` : `Outfit ${id} is not in the source.`;
    return { kind: 'record-number', where: 'results', sentence };
  }

  for (const record of missing) await judge('theirs', record);
  for (const record of additional) await judge('ours', record);
  // More than can be held, and so more than can be looked at again.
  const { report } = checker.options;
  for (const id of lostMissing) if (!known.has(id)) report.add(name('theirs', id));
  for (const id of lostAdditional) if (!known.has(id)) report.add(name('ours', id));
  return tied;
}

/** One that was changed meanwhile may have gone to either end. */
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

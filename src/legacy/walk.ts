// One order of a live listing, compared page by page, or in some of its pages.
import { createEndWatch } from '../import/listing.ts';
import { Alignment } from './alignment.ts';
import type { Difference } from './difference.ts';
import { isOfRecordList, type ListingPage, readListingPage } from './listing-page.ts';
import { inquire, numberedQuery, queryOf, reportOneSided, type WalkOptions } from './one-sided.ts';
import type { Inquiry } from './questions.ts';
import { type Placed, toNumber } from './record-stream.ts';

/** Follows both sides by their own next links, in step, to the end of both. */
export async function walkOrdering(options: WalkOptions): Promise<void> {
  const { checker, report, ordering, onRecords } = options;
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
  const targets: Targets = { theirs: queryOf(ordering), ours: queryOf(ordering) };

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
      checker.report(inquire(options, ordering, there, here), [difference]);
    }
    const following = numberedQuery(ordering, page + 1);
    targets.theirs = nextOf(theirs, ours, following);
    targets.ours = nextOf(ours, theirs, following);
    for (const side of ['theirs', 'ours'] as const) {
      const read = side === 'theirs' ? theirs : ours;
      const next = targets[side];
      if (next !== undefined && isPage(read)) {
        watches[side](next, { next, results: [...read.records], count: read.count });
      }
    }
  }
  const tied = await reportOneSided(options, alignment);
  await checker.settle();
  if (alignment.tied + tied > 0) noteTies(options);
  if (alignment.lost > 0) {
    const sentence = `Order (${ordering.name || 'default'}): ${alignment.lost} records are further from their places than can be followed.`;
    report.add({ kind: 'record-order', where: 'results', sentence });
  }
}

function noteTies({ report, ordering }: WalkOptions): void {
  report.note(
    `In the order ${ordering.name || 'created'}, records with the same value come in another order among themselves; the source leaves that open.`,
  );
}

interface Targets {
  theirs: string | undefined;
  ours: string | undefined;
}

/** A page, `unread` when the answer was none, or undefined behind the end. */
type Read = ListingPage | 'unread' | undefined;

const isPage = (read: Read): read is ListingPage => typeof read === 'object';

/** The link of a page, or where the other side goes on when this one has given none. */
function nextOf(read: Read, other: Read, following: string): string | undefined {
  if (isPage(read)) return read.next;
  return read === 'unread' && isPage(other) && other.next !== undefined ? following : undefined;
}

async function readBoth(
  { checker, theirs, ours, ordering }: WalkOptions,
  targets: Targets,
): Promise<{ theirs: Read; ours: Read }> {
  if (targets.theirs !== undefined && targets.ours !== undefined) {
    const inquiry: Inquiry = {
      method: 'GET',
      there: theirs.path + targets.theirs,
      here: ours.path + targets.ours,
      isPatient: true,
    };
    const answers = await checker.ask(inquiry);
    checker.compared++;
    await checker.judge(inquiry, answers, withoutRecordLists);
    return {
      theirs: readListingPage(answers.theirs, ordering.field) ?? 'unread',
      ours: readListingPage(answers.ours, ordering.field) ?? 'unread',
    };
  }
  const alone = targets.theirs === undefined ? 'ours' : 'theirs';
  const side = alone === 'theirs' ? theirs : ours;
  const answer = await checker.askOne(alone, side.path + targets[alone]);
  const read = readListingPage(answer, ordering.field);
  return { theirs: undefined, ours: undefined, [alone]: read };
}

/** Which records a page has, and in which order, is judged for the whole listing. */
export function withoutRecordLists(differences: readonly Difference[]): Difference[] {
  return differences.filter((difference) => !isOfRecordList(difference));
}

/** Records that are not on the same page of both. */
async function compareApart(
  options: WalkOptions,
  apart: Map<string, readonly [Placed, Placed]>,
): Promise<void> {
  const { checker, ordering } = options;
  const doubted = new Set<string>();
  for (const [theirs, ours] of apart.values()) {
    const inquiry = inquire(options, ordering, theirs.page, ours.page);
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

/** Compares some pages by their numbers: the first, the last, and others at equal distances. */
export async function samplePages(
  options: WalkOptions,
  number: number,
  pages: number,
): Promise<void> {
  const { checker, ordering, onRecords, pageSize } = options;
  const chosen = new Set(
    Array.from({ length: Math.min(number, pages) }, (_, index) =>
      number === 1 ? 1 : 1 + Math.round((index * (pages - 1)) / (Math.min(number, pages) - 1 || 1)),
    ),
  );
  for (const page of chosen) {
    const inquiry = inquire(options, ordering, page, page);
    await checker.check(inquiry, (differences) => {
      const others = differences.filter(({ kind }) => kind !== 'tie-order');
      if (others.length < differences.length) noteTies(options);
      return others;
    });
    onRecords(pageSize);
  }
  await checker.settle();
}

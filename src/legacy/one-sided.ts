// Which records only one side has, once both listings of one order have been read to their ends.
import type { IdSet } from '../import/id-set.ts';
import { type Alignment, type Placed, toNumber } from './alignment.ts';
import type { Checker } from './checker.ts';
import type { Difference } from './difference.ts';
import { readListingPage } from './listing-page.ts';
import { type Inquiry, inquire, type Ordering } from './questions.ts';

export interface WalkOptions {
  readonly checker: Checker;
  readonly ordering: Ordering;
  readonly pageSize: number;
  /** Records of which it has been said already that only one side has them. */
  readonly known: Set<string>;
  /** Records that both sides have: the default order, which comes first, has shown them. */
  readonly both: IdSet;
  readonly onRecords: (number: number) => void;
}

export function inquirePages(
  { checker, ordering }: WalkOptions,
  there: number,
  here: number,
): Inquiry {
  const [theirs, ours] = [numberedQuery(ordering, there), numberedQuery(ordering, here)];
  return { ...inquire(checker.options, theirs, ours), isPatient: true };
}

export function numberedQuery({ name }: Ordering, page: number | 'last'): string {
  const parts = [name && `ordering=${name}`, page === 1 ? '' : `page=${page}`].filter(Boolean);
  return parts.length > 0 ? `?${parts.join('&')}` : '';
}

type SideName = 'theirs' | 'ours';

/** Records of which it is made sure that only one side has them; the others are reported as found. */
const maxConfirmed = 50;
const maxKnown = 100_000;

/** @returns how many were left out as tied: a source may repeat some of those on two pages, and leave out others */
export async function reportOneSided(options: WalkOptions, alignment: Alignment): Promise<number> {
  const { ordering, known, both, checker, pageSize } = options;
  const { missing, additional, lostMissing, lostAdditional } = alignment.finish();
  const shift = Math.round(alignment.shift / Math.max(1, pageSize));
  const isInBoth = (id: string) => both.has(toNumber(id) ?? 0);
  let confirmed = 0;
  let tied = 0;

  async function judge(side: SideName, { id, page, isTied }: Placed): Promise<void> {
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

  function name(side: SideName, id: string): Difference {
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
  side: SideName,
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

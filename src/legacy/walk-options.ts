// What the comparison of one order of a listing is given, and how its pages are asked for.
import type { IdSet } from '../import/id-set.ts';
import type { Checker } from './checker.ts';
import type { Inquiry } from './inquiry.ts';
import type { Ordering } from './orderings.ts';
import type { Report } from './report.ts';
import type { Side } from './side.ts';

export interface WalkOptions {
  readonly checker: Checker;
  readonly report: Report;
  readonly theirs: Side;
  readonly ours: Side;
  readonly ordering: Ordering;
  /** Records of a page. */
  readonly pageSize: number;
  /** Records of which it has been said already that only one side has them. */
  readonly known: Set<string>;
  /** Records that both sides have: the default order, which comes first, has shown them. */
  readonly both: IdSet;
  /** Told how many records of the source each page brings. */
  readonly onRecords: (number: number) => void;
}

export function inquire(
  { theirs, ours }: WalkOptions,
  ordering: Ordering,
  there: number,
  here: number,
): Inquiry {
  return {
    method: 'GET',
    there: theirs.path + numberedQuery(ordering, there),
    here: ours.path + numberedQuery(ordering, here),
    isPatient: true,
  };
}

export function queryOf({ name }: Ordering): string {
  return name === '' ? '' : `?ordering=${name}`;
}

export function numberedQuery(ordering: Ordering, page: number): string {
  const query = queryOf(ordering);
  return page === 1 ? query : `${query ? `${query}&` : '?'}page=${page}`;
}

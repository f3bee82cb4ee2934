// What a live listing is asked beside its pages: what apps ask, rightly and wrongly, and in which orders it
// can be had, since nothing in its answers names them all.

import type { Answer } from '../http/client.ts';
import { orderingFields } from '../outfits/ordering.ts';
import type { Difference } from './difference.ts';
import { fieldOf, type ListingPage, readListingPage } from './listing-page.ts';
import type { Method, Side } from './side.ts';

/** The same question to both. */
export interface Inquiry {
  readonly method: Method;
  /** Path and query on the side of the source, and on ours. */
  readonly there: string;
  readonly here: string;
  /** How often it was asked by apps. */
  readonly times?: number;
  /** A page of many: a side that fails is given longer, and then it is the end. */
  readonly isPatient?: boolean;
}

export interface Answers {
  readonly theirs: Answer;
  readonly ours: Answer;
}

/** Leaves out what is no difference, or is reported in another way. */
export type Select = (differences: Difference[], answers: Answers) => Difference[];

/** No listing can have an ordering of this name. */
const nonsense = 'no-such-ordering';
const kept = 'zzz=1&a=%20b&zzz=2&%C3%A9=~*';

/** Never a write: nothing that compares may change anything. */
const questions: readonly (readonly [method: Method, query: string])[] = [
  ['GET', '?page=1'],
  ['GET', '?page=0'],
  ['GET', '?page=-1'],
  ['GET', '?page=abc'],
  ['GET', '?page=1.0'],
  ['GET', '?page=2&page=1'],
  ['GET', '?ordering='],
  ['GET', `?ordering=${nonsense}`],
  ['GET', `?${kept}`],
  ['HEAD', ''],
  ['HEAD', '?page=abc'],
  ['OPTIONS', ''],
];

/** Pages behind the first: which records they have is judged with all pages. */
const furtherPages = ['?page=last', `?page=2&${kept}`];

const ask = (theirs: Side, ours: Side) => (method: Method, query: string) => ({
  method,
  there: theirs.path + query,
  here: ours.path + query,
});

/** @param pages how many the source has */
export function askBeside(theirs: Side, ours: Side, pages: number): Inquiry[] {
  const withoutSlash = ({ path }: Side) => path.replace(/\/+$/, '');
  const inquire = ask(theirs, ours);
  return [
    ...questions.map(([method, query]) => inquire(method, query)),
    inquire('GET', `?page=${pages + 1}`),
    {
      method: 'GET',
      there: `${withoutSlash(theirs)}?${kept}`,
      here: `${withoutSlash(ours)}?${kept}`,
    },
  ];
}

/** The plain listing, which is the first page too. */
export const askPlain = (theirs: Side, ours: Side): Inquiry => ask(theirs, ours)('GET', '');

export function askFurtherPages(theirs: Side, ours: Side): Inquiry[] {
  return furtherPages.map((query) => ask(theirs, ours)('GET', query));
}

export interface Ordering {
  /** The parameter, such as `-like_count`; empty for the default order. */
  readonly name: string;
  /** The field of a record that it sorts by. */
  readonly field: string;
}

export interface FoundOrderings {
  /** Those of the contract that the source has, and the default one. */
  readonly own: readonly Ordering[];
  /** Others that the source sorts by. */
  readonly others: readonly string[];
  /** Those of the contract that the source passes over or refuses. */
  readonly ignored: readonly string[];
}

const defaultOrdering: Ordering = { name: '', field: 'created' };

type AskFirstPage = (ordering: string) => Promise<Answer>;

/**
 * A source that refuses an ordering that it does not know has those that it does not refuse. One that
 * passes over it has those whose first page, in one direction or the other, is not the one that
 * nonsense gives. In a listing of one record all orders are the same, so all of the contract count.
 */
export async function findOrderings(askFirstPage: AskFirstPage): Promise<FoundOrderings> {
  const refused = await askFirstPage(nonsense);
  const plain = readListingPage(refused, 'id');
  const candidates = new Set<string>(Object.keys(orderingFields));
  const first = readListingPage(await askFirstPage(''), 'id');
  for (const name of fieldsOf(first)) candidates.add(name);
  const own: Ordering[] = [defaultOrdering];
  const others: string[] = [];
  const ignored: string[] = [];
  for (const candidate of candidates) {
    const pages = [
      readListingPage(await askFirstPage(candidate), 'id'),
      readListingPage(await askFirstPage(`-${candidate}`), 'id'),
    ];
    const isSorted = plain ? pages.some((page) => isOther(page, plain)) : pages.every(Boolean);
    const field = fieldOf(candidate);
    const hasOne = plain !== undefined && plain.records.length < 2;
    if (field !== undefined && (isSorted || hasOne)) {
      own.push({ name: candidate, field }, { name: `-${candidate}`, field });
    } else if (field !== undefined) ignored.push(candidate, `-${candidate}`);
    else if (isSorted) others.push(candidate, `-${candidate}`);
  }
  return { own, others, ignored };
}

function isOther(page: ListingPage | undefined, plain: ListingPage): boolean {
  const ids = ({ records }: ListingPage) => records.map(({ id }) => id).join();
  return page !== undefined && ids(page) !== ids(plain);
}

/** Most listings that sort by more than the contract says sort by fields of their records. */
function fieldsOf(page: ListingPage | undefined): string[] {
  const record = page?.results[0];
  if (record?.type !== 'object') return [];
  return [...record.members.keys()].filter((key) => /^\w{1,40}$/.test(key)).slice(0, 40);
}

// What a live listing is asked beside its pages, and the orders that it has: nothing in its answers names them all.
import type { Answer } from '../../http/client.ts';
import { orderingFields } from '../../outfits/ordering.ts';
import type { Difference } from '../compare/difference.ts';
import { fieldOf, type ListingPage, readListingPage } from '../compare/listing-page.ts';
import type { Method, Side } from './side.ts';

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

export interface Sides {
  readonly theirs: Side;
  readonly ours: Side;
}

export interface Answers {
  readonly theirs: Answer;
  readonly ours: Answer;
}

/** Leaves out what is no difference, or is reported in another way. */
export type Select = (differences: Difference[]) => Difference[];

export const inquire = ({ theirs, ours }: Sides, there: string, here = there): Inquiry => ({
  method: 'GET',
  there: theirs.path + there,
  here: ours.path + here,
});

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
export const furtherPages = ['?page=last', `?page=2&${kept}`];

export function askBeside(sides: Sides, pages: number): Inquiry[] {
  const withoutSlash = ({ path }: Side) => `${path.replace(/\/+$/, '')}?${kept}`;
  return [
    ...questions.map(([method, query]) => ({ ...inquire(sides, query), method })),
    inquire(sides, `?page=${pages + 1}`),
    { method: 'GET', there: withoutSlash(sides.theirs), here: withoutSlash(sides.ours) },
  ];
}

export interface Ordering {
  /** The parameter, such as `-like_count`; empty for the default order. */
  readonly name: string;
  /** The field of a record that it sorts by. */
  readonly field: string;
}

interface FoundOrderings {
  /** Those of the contract that the source has, and the default one. */
  readonly own: readonly Ordering[];
  /** Others that the source sorts by. */
  readonly others: readonly string[];
  /** Those of the contract that the source passes over or refuses. */
  readonly ignored: readonly string[];
}

/** A source that passes over unknown orderings has those whose first page, either way, is another than that of nonsense. */
export async function findOrderings(
  askFirstPage: (ordering: string) => Promise<Answer>,
): Promise<FoundOrderings> {
  const readFirstPage = async (name: string) => readListingPage(await askFirstPage(name), 'id');
  const plain = await readFirstPage(nonsense);
  const candidates = new Set<string>(Object.keys(orderingFields));
  for (const name of fieldsOf(await readFirstPage(''))) candidates.add(name);
  const own: Ordering[] = [{ name: '', field: 'created' }];
  const others: string[] = [];
  const ignored: string[] = [];
  for (const candidate of candidates) {
    const names = [candidate, `-${candidate}`];
    const pages: (ListingPage | undefined)[] = [];
    for (const name of names) pages.push(await readFirstPage(name));
    const isSorted = plain ? pages.some((page) => isOther(page, plain)) : pages.every(Boolean);
    const field = fieldOf(candidate);
    const hasOne = plain !== undefined && plain.records.length < 2;
    if (field === undefined) {
      if (isSorted) others.push(...names);
    } else if (isSorted || hasOne) own.push(...names.map((name) => ({ name, field })));
    else ignored.push(...names);
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

// Finds out in which orders a live listing can be had: nothing in its answers names them all.
import type { Answer } from './compare.ts';
import { membersOf, parseJsonTree } from './json-tree.ts';
import { type ListingPage, readListingPage } from './listing-page.ts';

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

/** No listing can have an ordering of this name. */
export const nonsense = 'no-such-ordering';

const fields: Readonly<Record<string, string>> = {
  created: 'created',
  modified: 'modified',
  like_count: 'likes',
  id: 'id',
};
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
  const candidates = new Set(Object.keys(fields));
  const first = await askFirstPage('');
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
    const field = Object.hasOwn(fields, candidate) ? fields[candidate] : undefined;
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
function fieldsOf({ body }: Answer): string[] {
  const root = parseJsonTree(body.toString())?.root;
  const results = root?.type === 'object' ? membersOf(root).get('results')?.value : undefined;
  const record = results?.type === 'array' ? results.items[0] : undefined;
  if (record?.type !== 'object') return [];
  return record.members
    .map(({ key }) => key)
    .filter((key) => /^\w{1,40}$/.test(key))
    .slice(0, 40);
}

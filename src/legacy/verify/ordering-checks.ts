// The orderings of a live listing, which are found by trying.
import { orderingFields } from '../../outfits/ordering.ts';
import type { Difference } from '../compare/difference.ts';
import {
  isOfRecordList,
  type ListingPage,
  readListingPage,
  withoutRecordLists,
} from '../compare/listing-page.ts';
import type { Checker } from './checker.ts';
import { requestFor, unknownOrdering } from './compared-requests.ts';

export interface Ordering {
  /** The parameter, such as `-like_count`; empty for the default ordering. */
  readonly name: string;
  /** The field of a record that it sorts by. */
  readonly field: string;
}

/**
 * Compares the first page in orderings that the source ignores or refuses, and by several fields. A source that ignores
 * unknown orderings has one if its first page, in either direction, differs from that of an unknown one.
 * @returns the orderings of the contract that it has
 */
export async function checkOrderings(checker: Checker): Promise<readonly Ordering[]> {
  const toQuery = (name: string) => `?ordering=${encodeURIComponent(name)}`;
  const readFirstPage = async (name: string) => {
    const target = checker.options.theirs.path + toQuery(name);
    return readListingPage(await checker.askSource(target), 'id');
  };
  const plain = await readFirstPage(unknownOrdering);
  const isIgnored = (page: ListingPage | undefined) =>
    plain !== undefined && page !== undefined && idsOf(page) === idsOf(plain);
  const own: Ordering[] = [{ name: '', field: 'created' }];
  const others: string[] = [];
  for (const [candidate, field] of Object.entries(orderingFields)) {
    const names = [candidate, `-${candidate}`];
    const pages: (ListingPage | undefined)[] = [];
    for (const name of names) pages.push(await readFirstPage(name));
    const isSorted = plain
      ? plain.records.length < 2 || pages.some((page) => page && !isIgnored(page))
      : pages.every(Boolean);
    if (isSorted) own.push(...names.map((name) => ({ name, field })));
    else others.push(...names);
  }
  others.push(...severalOrderings(own.map(({ name }) => name)));
  for (const name of others) {
    await checker.check({
      ...requestFor(checker.options, toQuery(name)),
      select: (differences, { theirs }) =>
        isIgnored(readListingPage(theirs, 'id'))
          ? nameIgnored(name, differences)
          : // The walk over all pages names them.
            differences.filter(({ where }) => where !== 'missing' && where !== 'additional'),
    });
  }
  return own;
}

const idsOf = ({ records }: ListingPage) => records.map(({ id }) => id).join();

/** Orderings by several of these: two that are one here too, and one that is not. */
function severalOrderings(names: readonly string[]): string[] {
  const descending = names.filter((name) => /^-(?:created|like_count)$/.test(name));
  const both = descending.length === 2 ? ['-like_count,-created'] : [];
  return [...descending.map((name) => `${name},-id`), ...both];
}

/** Joins the differences of the record list into one: the source ignores the ordering. */
function nameIgnored(name: string, differences: Difference[]): Difference[] {
  if (!differences.some(isOfRecordList)) return differences;
  const sentence = `The source passes over ordering=${name}, and here it sorts.`;
  return [
    ...withoutRecordLists(differences),
    { kind: 'records', where: `ordering=${name}`, sentence },
  ];
}

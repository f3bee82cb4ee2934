// The requests that both services get, and the orderings of a live listing, which are found by trying.
import type { Answer } from '../../http/client.ts';
import { orderingFields } from '../../outfits/ordering.ts';
import type { Difference } from '../compare/difference.ts';
import { fieldOf, type ListingPage, readListingPage } from '../compare/listing-page.ts';
import type { ComparedService, Method, SentHeaders } from './compared-service.ts';

export interface ComparedRequest {
  readonly method: Method;
  /** Path and query at the old service, and at this one. */
  readonly legacyTarget: string;
  readonly ownTarget: string;
  /** Beside those of all requests. */
  readonly headers?: SentHeaders;
  /** Of HEAD: whether `Content-Length` is compared with the answer to GET, which is asked too. */
  readonly comparesLength?: boolean;
  /** Whether it is asked with the entity tag of the answer that each service gave before. */
  readonly isConditional?: boolean;
  /** How often apps sent it. */
  readonly times?: number;
  /** A page of a walk: it is retried for longer, and its failure ends the comparison. */
  readonly isRequired?: boolean;
}

export interface ComparedServices {
  readonly theirs: ComparedService;
  readonly ours: ComparedService;
}

export interface Answers {
  readonly theirs: Answer;
  readonly ours: Answer;
}

/** Removes differences that do not count here, or are reported in another way. */
export type Select = (differences: Difference[], answers: Answers) => Difference[];

export const requestFor = (
  { theirs, ours }: ComparedServices,
  legacyQuery: string,
  ownQuery = legacyQuery,
): ComparedRequest => ({
  method: 'GET',
  legacyTarget: theirs.path + legacyQuery,
  ownTarget: ours.path + ownQuery,
});

/** An ordering that no listing has. */
const unknownOrdering = 'no-such-ordering';
const unknownParameters = 'zzz=1&a=%20b&zzz=2&%C3%A9=~*';

/** Edge cases of the contract. Read-only methods: a comparison changes nothing. */
const contractQueries: readonly (readonly [method: Method, query: string])[] = [
  ['GET', '?page=1'],
  ['GET', '?page_size=2'],
  ['GET', '?page=0'],
  ['GET', '?page=-1'],
  ['GET', '?page=abc'],
  ['GET', '?page=1.0'],
  ['GET', '?page=2&page=1'],
  ['GET', '?ordering='],
  ['GET', `?ordering=${unknownOrdering}`],
  ['GET', `?${unknownParameters}`],
  ['HEAD', ''],
  ['HEAD', '?page=abc'],
  ['OPTIONS', ''],
];

/** Later pages: which records they have is compared in the walk over all pages. */
export const laterPageQueries = ['?page=last', `?page=2&${unknownParameters}`];

export function contractRequests(services: ComparedServices, pages: number): ComparedRequest[] {
  const withoutSlash = ({ path }: ComparedService) =>
    `${path.replace(/\/+$/, '')}?${unknownParameters}`;
  return [
    ...contractQueries.map(([method, query]) => {
      const comparesLength = method === 'HEAD';
      return { ...requestFor(services, query), method, comparesLength };
    }),
    requestFor(services, `?page=${pages + 1}`),
    { ...requestFor(services, ''), headers: { accept: 'application/x-no-such-type' } },
    {
      method: 'GET',
      legacyTarget: withoutSlash(services.theirs),
      ownTarget: withoutSlash(services.ours),
    },
  ];
}

export interface Ordering {
  /** The parameter, such as `-like_count`; empty for the default ordering. */
  readonly name: string;
  /** The field of a record that it sorts by. */
  readonly field: string;
}

interface FoundOrderings {
  /** Orderings of the contract that the source has, with the default one. */
  readonly own: readonly Ordering[];
  /** Further orderings of the source. */
  readonly others: readonly string[];
  /** Orderings of the contract that the source ignores or refuses. */
  readonly ignored: readonly string[];
}

/** A source that ignores unknown orderings has an ordering if its first page, in either direction, differs from that of an unknown one. */
export async function findOrderings(
  askFirstPage: (ordering: string) => Promise<Answer>,
): Promise<FoundOrderings> {
  const readFirstPage = async (name: string) => readListingPage(await askFirstPage(name), 'id');
  const plain = await readFirstPage(unknownOrdering);
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
  for (const name of severalOrderings(own.map(({ name }) => name))) {
    const page = await readFirstPage(name);
    (plain && page && !isOther(page, plain) ? ignored : others).push(name);
  }
  return { own, others, ignored };
}

/** Orderings by several of these: two that are one here too, and one that is not. */
function severalOrderings(names: readonly string[]): string[] {
  const descending = names.filter((name) => /^-(?:created|like_count)$/.test(name));
  const both = descending.length === 2 ? ['-like_count,-created'] : [];
  return [...descending.map((name) => `${name},-id`), ...both];
}

function isOther(page: ListingPage | undefined, plain: ListingPage): boolean {
  const ids = ({ records }: ListingPage) => records.map(({ id }) => id).join();
  return page !== undefined && ids(page) !== ids(plain);
}

/** Candidates for further orderings: most listings sort by fields of their records. */
function fieldsOf(page: ListingPage | undefined): string[] {
  return Object.keys(Object(page?.records[0]?.value))
    .filter((key) => /^\w{1,40}$/.test(key))
    .slice(0, 40);
}

// The requests that both services get, and those that apps may send beside the pages of a listing.
import { orderingFields } from '../../outfits/ordering.ts';
import type { Difference } from '../compare/difference.ts';
import {
  checkOrder,
  type PageRecord,
  readListingPage,
  withoutRecordLists,
} from '../compare/listing-page.ts';
import {
  type Asked,
  type Both,
  type ComparedService,
  type Method,
  type SentHeaders,
  sides,
} from './compared-service.ts';

/** Chooses the differences of two answers that count, or reports them in another way. */
type Select = (differences: Difference[], answers: Both<Asked>) => Difference[];

export interface ComparedRequest {
  readonly method: Method;
  /** Path and query at each service. */
  readonly targets: Both<string>;
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
  readonly select?: Select;
}

export const requestFor = (
  { theirs, ours }: Both<ComparedService>,
  query: string,
  ownQuery = query,
): ComparedRequest => ({
  method: 'GET',
  targets: { theirs: theirs.path + query, ours: ours.path + ownQuery },
});

export interface Ordering {
  /** The parameter, such as `-like_count`; empty for the default ordering. */
  readonly name: string;
  /** The field of a record that it sorts by. */
  readonly field: string;
}

export const orderings: readonly Ordering[] = [
  { name: '', field: 'created' },
  ...Object.entries(orderingFields).flatMap(([name, field]) => [
    { name, field },
    { name: `-${name}`, field },
  ]),
];

/**
 * Of the records of a page, reports only that one side is sorted and the other is not: which ones a page has is compared
 * over the whole listing. @param before the last records of the pages before
 */
export const selectOrder =
  ({ name, field }: Ordering, before: Partial<Both<PageRecord>> = {}): Select =>
  (differences, answers) => {
    const [theirs, ours] = sides.map((side) => {
      const records = readListingPage(answers[side], field)?.records ?? [];
      const last = before[side];
      // Where it comes again, what was created meanwhile has moved the records.
      const isNext = last && records.every(({ id }) => id !== last.id);
      return checkOrder(isNext ? [last, ...records] : records, name).misplaced;
    });
    const others = withoutRecordLists(differences);
    if (!theirs === !ours) return others;
    const [sorted, ids] = theirs ? ['here', theirs] : ['in the source', ours ?? []];
    const sentence = `Order (${name || 'default'}): outfit ${ids[0]} comes before outfit ${ids[1]}, but the listing ${sorted} is sorted.`;
    const where = name ? `ordering=${name.split(',', 1)}` : 'order';
    return [...others, { kind: 'records', where, sentence }];
  };

const unknownParameters = 'zzz=1&a=%20b&zzz=2&%C3%A9=~*';
const languages = 'de, fr;q=0.9, es;q=0.8, pt;q=0.7, it;q=0.6, ja;q=0.5, zh;q=0.4, ru;q=0.3';

/** Edge cases of the contract, with what a walk over the listing overlooks. Nothing is written. */
export function edgeRequests(
  services: Both<ComparedService>,
  pages: number,
  note: (sentence: string) => void,
): ComparedRequest[] {
  const get = (query: string, others: Partial<ComparedRequest> = {}): ComparedRequest => ({
    ...requestFor(services, query),
    ...others,
  });
  const withoutSlash = ({ path }: ComparedService) =>
    `${path.replace(/\/+$/, '')}?${unknownParameters}`;
  const invalidPages = ['0', '-1', 'abc', '1.0', `${pages + 1}`];
  return [
    ...[
      '?page=1',
      '?page_size=2',
      '?page=2&page=1',
      '?ordering=',
      '?ordering=no-such-ordering',
    ].map((query) => get(query)),
    ...invalidPages.map((page) => get(`?page=${page}`)),
    get(`?${unknownParameters}`),
    ...['', '?page=abc'].map((query) => get(query, { method: 'HEAD', comparesLength: true })),
    get('', { method: 'OPTIONS' }),
    get('', { headers: { accept: 'application/x-no-such-type' } }),
    {
      method: 'GET',
      targets: { theirs: withoutSlash(services.theirs), ours: withoutSlash(services.ours) },
    },
    ...['?page=last', `?page=2&${unknownParameters}`].map((query) =>
      get(query, { select: withoutRecordLists }),
    ),
    ...['-created,-id', '-like_count,-id', '-like_count,-created'].map((name) => {
      const field = name.startsWith('-created') ? 'created' : 'likes';
      return get(`?ordering=${name}`, { select: selectOrder({ name, field }) });
    }),
    get('', {
      method: 'TRACE',
      // A proxy that answers TRACE itself says nothing about the service.
      select: (differences, { theirs: { status, headers } }) =>
        status === 405 && /json/.test(headers['content-type'] ?? '') ? differences : [],
    }),
    get('', {
      isConditional: true,
      select: (differences, { theirs }) =>
        theirs.status === 200 && theirs.headers['etag'] === undefined
          ? []
          : withoutRecordLists(differences),
    }),
    get('?page=0', {
      headers: { 'accept-language': languages },
      select: (differences) =>
        differences.map((found) =>
          found.kind === 'body' ? { ...found, where: 'error in another language' } : found,
        ),
    }),
    ...['Bearer', 'Token'].map((scheme) =>
      get('', {
        headers: { authorization: `${scheme} outfit-gateway-verify` },
        select(differences, { theirs, ours }) {
          // Without this scheme, both answer as without a credential.
          if (theirs.status < 400) return [];
          if (ours.status >= 400) return differences.filter(({ kind }) => kind === 'status');
          note(
            `The source refuses a wrong credential (${scheme}) with ${theirs.status}, and here it is not read: set AUTH_WEBHOOK_URL or a key of tokens.`,
          );
          return [];
        },
      }),
    ),
  ];
}

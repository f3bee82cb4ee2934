// The requests that both services get.
import type { Answer } from '../../http/client.ts';
import type { Difference } from '../compare/difference.ts';
import type { Both, ComparedService, Method, SentHeaders } from './compared-service.ts';

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
  /** Removes differences that do not count here, or are reported in another way. */
  readonly select?: (differences: Difference[], answers: Both<Answer>) => Difference[];
}

export const requestFor = (
  { theirs, ours }: Both<ComparedService>,
  query: string,
  ownQuery = query,
): ComparedRequest => ({
  method: 'GET',
  targets: { theirs: theirs.path + query, ours: ours.path + ownQuery },
});

/** An ordering that no listing has. */
export const unknownOrdering = 'no-such-ordering';
export const unknownParameters = 'zzz=1&a=%20b&zzz=2&%C3%A9=~*';

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

export function contractRequests(
  services: Both<ComparedService>,
  pages: number,
): ComparedRequest[] {
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
      targets: { theirs: withoutSlash(services.theirs), ours: withoutSlash(services.ours) },
    },
  ];
}

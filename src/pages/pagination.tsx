// First, previous, next and last, by the links of an answer itself.

import type { Page } from '../rest/routes.ts';
import { formatQuery, type QueryParameters, readParameter } from '../rest/url.ts';
import { webAddressOf } from './text.tsx';

/** A page of a list as it is on the wire. */
export interface Envelope extends Omit<Page, 'next' | 'previous'> {
  readonly next: string | null;
  readonly previous: string | null;
}

export function isEnvelope(value: unknown): value is Envelope {
  if (typeof value !== 'object' || value === null) return false;
  const { count, next, previous, results } = value as Record<string, unknown>;
  const isLink = (link: unknown) =>
    link === null || (typeof link === 'string' && webAddressOf(link) !== undefined);
  return typeof count === 'number' && isLink(next) && isLink(previous) && Array.isArray(results);
}

/** Where a page is in its list, as far as its links tell. */
function placeOf({ count, next, previous, results }: Envelope) {
  const page = next !== null ? numberIn(next) - 1 : previous === null ? 1 : numberIn(previous) + 1;
  const pages = next === null ? page : Math.ceil(count / Math.max(results.length, 1));
  return { page, pages };
}

function numberIn(link: string): number {
  return Number(new URL(link).searchParams.getAll('page').at(-1) ?? 1);
}

interface PaginationProperties {
  /** Tells two of them on one page apart. */
  readonly label: string;
  readonly envelope: Envelope;
  readonly parameters: QueryParameters;
}

export function Pagination({ label, envelope, parameters }: PaginationProperties) {
  const { next, previous } = envelope;
  const { page, pages } = placeOf(envelope);
  const to = (number: string) => `?${formatQuery(parameters, 'page', number)}`;
  const steps = [
    { title: 'First', href: previous === null ? null : to('1'), rel: undefined },
    { title: 'Previous', href: previous, rel: 'prev' },
    { title: 'Next', href: next, rel: 'next' },
    { title: 'Last', href: next === null ? null : to('last'), rel: undefined },
  ];
  return (
    <nav class="pagination" aria-label={label}>
      <p>
        Page {page.toLocaleString('en')} of {pages.toLocaleString('en')}
      </p>
      <ul>
        {steps.map(({ title, href, rel }) => (
          <li>
            {href === null ? (
              <span class="step">{title}</span>
            ) : (
              <a class="step" href={href} rel={rel}>
                {title}
              </a>
            )}
          </li>
        ))}
      </ul>
    </nav>
  );
}

/** The address of the first page, where a request has asked for one that there is not. */
export function firstPageOf(parameters: QueryParameters): string | undefined {
  if (readParameter(parameters, 'page') === undefined) return undefined;
  return `?${formatQuery(parameters, 'page', '1')}`;
}

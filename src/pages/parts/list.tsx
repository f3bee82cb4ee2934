// A list on a page: gallery, pagination by the links of the answer, orderings by the enum of the document.
import {
  type GraphQLSchema,
  getNamedType,
  getOperationAST,
  isEnumType,
  type TypeNode,
  typeFromAST,
} from 'graphql';
import type { Page, Route } from '../../rest/routes.ts';
import { formatQuery, type QueryParameters, readParameter } from '../../rest/url.ts';
import { isOutfit, OutfitCard } from './outfit-card.tsx';
import type { Media } from './pictures.tsx';
import { webAddressOf } from './text.tsx';

/** The envelope of a page, as on the wire. */
export interface Envelope extends Omit<Page, 'next' | 'previous'> {
  readonly next: string | null;
  readonly previous: string | null;
}

export function isEnvelope(value: unknown): value is Envelope {
  const { count, next, previous, results } = (value ?? {}) as Record<string, unknown>;
  const isLink = (link: unknown) =>
    link === null || (typeof link === 'string' && webAddressOf(link) !== undefined);
  return typeof count === 'number' && isLink(next) && isLink(previous) && Array.isArray(results);
}

/** Other lists are shown as JSON. */
export function isGallery({ results }: Envelope): boolean {
  return results.every(isOutfit);
}

interface MenuProperties {
  readonly orderings: readonly Ordering[];
  readonly parameters: QueryParameters;
}

interface ListProperties extends MenuProperties {
  /** Its links have an `offset`: then its pages have no numbers. */
  readonly isByOffset: boolean;
  readonly envelope: Envelope;
  readonly media: Media;
}

export function List(properties: ListProperties) {
  const { envelope, orderings, parameters, media } = properties;
  const { count, results } = envelope;
  const outfits = isGallery(envelope) ? results.filter(isOutfit) : [];
  const noun = isGallery(envelope) ? 'outfit' : 'record';
  return (
    <>
      <div class="bar">
        <p class="count">
          {count.toLocaleString('en')} {count === 1 ? noun : `${noun}s`}
        </p>
        <OrderingMenu orderings={orderings} parameters={parameters} />
        <Pagination label="Pages" {...properties} />
      </div>
      {outfits.length > 0 && (
        <>
          <ul class="grid">
            {outfits.map((outfit) => (
              <OutfitCard outfit={outfit} media={media} />
            ))}
          </ul>
          <Pagination label="Pages, below the list" {...properties} />
        </>
      )}
      {results.length === 0 && <p class="empty">There is nothing here yet.</p>}
    </>
  );
}

const pageIn = (link: string) => Number(new URL(link).searchParams.getAll('page').at(-1) ?? 1);

type PaginationProperties = Omit<ListProperties, 'orderings' | 'media'> & { label: string };

/** @param label distinguishes two of them on one page, for screen readers */
function Pagination({ label, envelope, parameters, isByOffset }: PaginationProperties) {
  const { count, next, previous, results } = envelope;
  const page = next !== null ? pageIn(next) - 1 : previous === null ? 1 : pageIn(previous) + 1;
  const pages = next === null ? page : Math.ceil(count / Math.max(results.length, 1));
  const to = (number: string) =>
    `?${isByOffset ? formatQuery(parameters, 'offset', undefined) : formatQuery(parameters, 'page', number)}`;
  const steps = [
    { title: 'First', href: previous === null ? null : to('1') },
    { title: 'Previous', href: previous, rel: 'prev' },
    { title: 'Next', href: next, rel: 'next' },
    ...(isByOffset ? [] : [{ title: 'Last', href: next === null ? null : to('last') }]),
  ];
  return (
    <nav class="pagination" aria-label={label}>
      {!isByOffset && (
        <p>
          Page {page.toLocaleString('en')} of {pages.toLocaleString('en')}
        </p>
      )}
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

export interface Ordering {
  readonly value: string;
  readonly title: string;
  readonly isDefault: boolean;
}

/** Empty for a list with a single ordering. */
export function orderingsOf(schema: GraphQLSchema, { list }: Route): readonly Ordering[] {
  const variables = list && getOperationAST(list)?.variableDefinitions;
  const ordering = variables?.find(({ variable }) => variable.name.value === 'ordering');
  const type = ordering && typeFromAST(schema, ordering.type as TypeNode as never);
  const leaf = type && getNamedType(type);
  if (!isEnumType(leaf)) return [];
  return leaf.getValues().map(({ value, name, description, extensions }) => ({
    value: String(value),
    // The first sentence of the description in GraphQL.
    title: description?.replace(/[;.].*$/s, '') ?? name,
    isDefault: extensions['isDefault'] === true,
  }));
}

/** A form without a script. It goes to the first page, and keeps all other parameters. */
export function OrderingMenu({ orderings, parameters }: MenuProperties) {
  if (orderings.length === 0) return null;
  const given = readParameter(parameters, 'ordering');
  const selected =
    orderings.find(({ value }) => value === given) ?? orderings.find(({ isDefault }) => isDefault);
  const others = parameters.filter(([name]) => !['ordering', 'page', 'offset'].includes(name));
  return (
    <form class="menu" method="get">
      {others.map(([name, value]) => (
        <input type="hidden" name={name} value={value} />
      ))}
      <label for="ordering">Order</label>
      <select id="ordering" name="ordering">
        {selected ? undefined : <option value="">As it comes</option>}
        {orderings.map(({ value, title }) => (
          <option value={value} selected={value === selected?.value}>
            {title}
          </option>
        ))}
      </select>
      <button type="submit">Show</button>
    </form>
  );
}

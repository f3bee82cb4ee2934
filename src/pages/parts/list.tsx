// A list on a page: gallery, pagination by the links of the answer, orderings by the enum of the document.
import {
  type GraphQLSchema,
  getNamedType,
  getOperationAST,
  isEnumType,
  type TypeNode,
  typeFromAST,
} from 'graphql';
import type { ComponentChildren } from 'preact';
import type { OutfitRecordFragment } from '../../generated/rest.ts';
import type { Route } from '../../rest/routes.ts';
import { formatQuery, type QueryParameters, readParameter } from '../../rest/url.ts';
import { isOutfit, OutfitCard } from './outfit-card.tsx';
import type { Site } from './site.ts';
import { webAddressOf } from './text.tsx';

/** The envelope of a page, as on the wire. */
export interface Envelope {
  readonly count: number;
  readonly next: string | null;
  readonly previous: string | null;
  readonly results: readonly unknown[];
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
  readonly site: Site;
}

/** A list by its envelope. */
export function List({ envelope, orderings, parameters, isByOffset, site }: ListProperties) {
  const { count, next, previous, results } = envelope;
  const { page, pages } = placeOf(envelope);
  const to = (number: string) =>
    `?${isByOffset ? formatQuery(parameters, 'offset', undefined) : formatQuery(parameters, 'page', number)}`;
  const steps: Steps = {
    place: isByOffset ? undefined : { page, pages },
    first: previous === null ? null : to('1'),
    ...{ previous, next },
    last: isByOffset ? undefined : next === null ? null : to('last'),
  };
  const outfits = isGallery(envelope) ? results.filter(isOutfit) : [];
  const noun = isGallery(envelope) ? 'outfit' : 'record';
  return (
    <>
      <Gallery {...{ count, noun, outfits, steps, site }}>
        <OrderingMenu orderings={orderings} parameters={parameters} />
      </Gallery>
      {results.length === 0 && <p class="empty">There is nothing here yet.</p>}
    </>
  );
}

/** Number of the page, and of pages. */
export function placeOf({ count, next, previous, results }: Envelope): Place {
  const page = next !== null ? pageIn(next) - 1 : previous === null ? 1 : pageIn(previous) + 1;
  const pages = next === null ? page : Math.ceil(count / Math.max(results.length, 1));
  return { page, pages };
}

/** The title of a page of a list; that of the first one has no number. */
export function numbered(title: string, { page, pages }: Place): string {
  return page > 1 ? `${title}, page ${page} of ${pages}` : title;
}

const pageIn = (link: string) => Number(new URL(link).searchParams.getAll('page').at(-1) ?? 1);

interface GalleryProperties {
  readonly count: number;
  /** In the singular. */
  readonly noun: string;
  readonly outfits: readonly OutfitRecordFragment[];
  readonly steps: Steps;
  readonly site: Site;
  /** Beside the count. */
  readonly children?: ComponentChildren;
}

/** Outfits as cards, with their count and the way to other pages. */
export function Gallery({ count, noun, outfits, steps, site, children }: GalleryProperties) {
  return (
    <>
      <div class="bar">
        <p class="count">
          {count.toLocaleString('en')} {count === 1 ? noun : `${noun}s`}
        </p>
        {children}
        <Pagination label="Pages" steps={steps} />
      </div>
      {outfits.length > 0 && (
        <>
          <ul class="grid">
            {outfits.map((outfit, index) => (
              <OutfitCard {...{ outfit, site, index }} />
            ))}
          </ul>
          <Pagination label="Pages, below the list" steps={steps} />
        </>
      )}
    </>
  );
}

interface Place {
  readonly page: number;
  readonly pages: number;
}

/** Addresses of other pages; null: there is no such page. */
interface Steps {
  readonly first: string | null;
  readonly previous: string | null;
  readonly next: string | null;
  readonly last: string | null | undefined;
  readonly place: Place | undefined;
}

interface PaginationProperties {
  /** Distinguishes two of them on one page, for screen readers. */
  readonly label: string;
  readonly steps: Steps;
}

function Pagination({
  label,
  steps: { first, previous, next, last, place },
}: PaginationProperties) {
  const links = [
    { title: 'First', href: first },
    { title: 'Previous', href: previous, rel: 'prev' },
    { title: 'Next', href: next, rel: 'next' },
    ...(last === undefined ? [] : [{ title: 'Last', href: last }]),
  ];
  return (
    <nav class="pagination" aria-label={label}>
      {place && (
        <p>
          Page {place.page.toLocaleString('en')} of {place.pages.toLocaleString('en')}
        </p>
      )}
      <ul>
        {links.map(({ title, href, rel }) => (
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
export function orderingsOf(schema: GraphQLSchema, { list, record }: Route): readonly Ordering[] {
  const document = list ?? record;
  const variables = document && getOperationAST(document)?.variableDefinitions;
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
  return (
    <form class="menu" method="get">
      <KeptParameters parameters={parameters} names={['ordering', 'page', 'offset']} />
      <OrderingSelect orderings={orderings} parameters={parameters} />
      <button type="submit">Show</button>
    </form>
  );
}

interface KeptProperties {
  readonly parameters: QueryParameters;
  /** Names of those that the form sets or drops. */
  readonly names: readonly string[];
}

export function KeptParameters({ parameters, names }: KeptProperties) {
  const kept = parameters.filter(([name]) => !names.includes(name));
  return (
    <>
      {kept.map(([name, value]) => (
        <input type="hidden" name={name} value={value} />
      ))}
    </>
  );
}

export function OrderingSelect({ orderings, parameters }: MenuProperties) {
  const given = readParameter(parameters, 'ordering');
  const selected =
    orderings.find(({ value }) => value === given) ?? orderings.find(({ isDefault }) => isDefault);
  return (
    <>
      <label for="ordering">Order</label>
      <select id="ordering" name="ordering">
        {selected ? undefined : <option value="">As it comes</option>}
        {orderings.map(({ value, title }) => (
          <option value={value} selected={value === selected?.value}>
            {title}
          </option>
        ))}
      </select>
    </>
  );
}

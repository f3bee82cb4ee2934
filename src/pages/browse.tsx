// Pages outside of /api/: outfits with search and filters, one outfit, one user. Each shows the record of a stored
// document, which programs get as JSON.
import type { ComponentChildren } from 'preact';
import { cut } from '../errors.ts';
import {
  BrowseOutfitsDocument,
  BrowseUserDocument,
  type BrowseUserQuery,
  type NumberedPageFragment,
  type OutfitRecordFragment,
  ReadOutfitDocument,
} from '../generated/rest.ts';
import type { Route } from '../rest/routes.ts';
import { formatQuery, type QueryParameters, readParameter } from '../rest/url.ts';
import { type AnswerPageProperties, Problem, reasonOf } from './answer-page.tsx';
import { PageForm, SearchForm } from './parts/forms.tsx';
import { Layout } from './parts/layout.tsx';
import { Gallery, numbered, OrderingMenu } from './parts/list.tsx';
import { Avatar, Facts, Marks, nameOf, Owner, Picture } from './parts/outfit-card.tsx';
import type { Site } from './parts/site.ts';
import { shownText, Text, visibleText } from './parts/text.tsx';

export const browseRoutes: readonly Route[] = [
  {
    path: '/outfits/',
    name: 'Outfits',
    description: 'The outfits that users have published.',
    record: BrowseOutfitsDocument,
  },
  {
    path: '/outfits/:id',
    name: 'Outfit',
    description: 'One outfit.',
    record: ReadOutfitDocument,
  },
  {
    path: '/users/:id',
    name: 'User',
    description: 'A user, and the outfits of this user.',
    record: BrowseUserDocument,
  },
];

/** The page of a route above. */
export function BrowsePage(properties: AnswerPageProperties) {
  const { answer, route, site, orderings, parameters } = properties;
  const isList = route?.path === '/outfits/';
  if (answer.status < 400) {
    if (isList) return <OutfitsPage {...properties} />;
    return route?.record === ReadOutfitDocument ? (
      <OutfitPage site={site} outfit={answer.json as OutfitRecordFragment} />
    ) : (
      <UserPage {...properties} />
    );
  }
  const reason = reasonOf(answer.status);
  return (
    <Layout site={site} title={`${reason} – ${route?.name}`}>
      <h1>{reason}</h1>
      <Problem {...properties} />
      {isList && <SearchForm orderings={orderings} parameters={parameters} />}
    </Layout>
  );
}

function OutfitsPage({ answer, site, orderings, parameters }: AnswerPageProperties) {
  const list = answer.json as NumberedPageFragment;
  const words = visibleText(readParameter(parameters, 'search')?.trim() ?? '');
  const title = words ? `Outfits with “${words}”` : 'Outfits';
  return (
    <Layout site={site} title={numbered(title, placeIn(list))} path="/outfits/">
      <h1 dir="auto">{title}</h1>
      <SearchForm orderings={orderings} parameters={parameters} />
      <Outfits {...{ list, site, parameters }} />
      {list.count === 0 && (
        <p class="empty">
          No outfit is like that. <a href={`${site.root}/outfits/`}>Show all outfits</a>
        </p>
      )}
    </Layout>
  );
}

const placeIn = ({ page, pageCount: pages }: NumberedPageFragment) => ({ page, pages });

interface OutfitsProperties {
  readonly list: NumberedPageFragment;
  readonly site: Site;
  readonly parameters: QueryParameters;
  readonly children?: ComponentChildren;
}

function Outfits({ list, site, parameters, children }: OutfitsProperties) {
  const { count, results: outfits } = list;
  const place = placeIn(list);
  const { page, pages } = place;
  const to = (number: number) =>
    number < 1 || number > pages || number === page
      ? null
      : `?${formatQuery(parameters, 'page', String(number))}`;
  const steps = {
    ...{ first: to(1), previous: to(page - 1), next: to(page + 1), last: to(pages) },
    place,
  };
  return (
    <>
      <Gallery {...{ count, noun: 'outfit', outfits, steps, site }}>{children}</Gallery>
      {pages > 1 && <PageForm {...{ parameters, page, pages }} />}
    </>
  );
}

function OutfitPage({ site, outfit }: { site: Site; outfit: OutfitRecordFragment }) {
  const { id, description, user } = outfit;
  const title = visibleText(outfit.title) ?? `Outfit ${id}`;
  return (
    <Layout site={site} title={`${cut(title)} by @${shownText(user.username)}`}>
      <article class="outfit">
        <div class="card">
          <Picture outfit={outfit} media={site.media} index={0} isLink={true} />
          <Marks outfit={outfit} site={site} />
        </div>
        <div>
          <h1 dir="auto">{title}</h1>
          <Owner outfit={outfit} site={site} />
          {visibleText(description) && (
            <p class="text" dir="auto">
              {shownText(description)}
            </p>
          )}
          <Facts outfit={outfit} />
          <p>
            <a href={`${site.root}/outfits/`}>To all outfits</a>
          </p>
        </div>
      </article>
    </Layout>
  );
}

function UserPage({ answer, site, orderings, parameters }: AnswerPageProperties) {
  // Null with an error only.
  const user = answer.json as NonNullable<BrowseUserQuery['record']> & {
    outfits: NumberedPageFragment;
  };
  const name = nameOf(user) ?? `@${shownText(user.username)}`;
  const { outfits: list } = user;
  return (
    <Layout site={site} title={numbered(`Outfits of ${name}`, placeIn(list))}>
      <div class="owner profile">
        <Avatar user={user} media={site.media} />
        <div>
          <h1 dir="auto">{name}</h1>
          <p class="username">
            @<Text>{user.username}</Text>
          </p>
        </div>
      </div>
      <Outfits {...{ list, site, parameters }}>
        <OrderingMenu orderings={orderings} parameters={parameters} />
      </Outfits>
      {list.count === 0 && <p class="empty">There is no outfit here that you can see.</p>}
    </Layout>
  );
}

// Pages outside of /api/: the first one, outfits with search and filters, one outfit, an error. Each shows the record of a stored
// document, which programs get as JSON.
import type { GraphQLSchema } from 'graphql';
import { cut } from '../errors.ts';
import {
  BrowseOutfitDocument,
  type BrowseOutfitQuery,
  BrowseOutfitsDocument,
  type BrowseOutfitsQuery,
  type NumberedPageFragment,
} from '../generated/rest.ts';
import { createRoute, type Route } from '../rest/routes.ts';
import { formatQuery, readParameter } from '../rest/variables.ts';
import { isPastEnd, messagesOf, type PageProperties, Problem, reasonOf } from './parts/answer.tsx';
import { Layout } from './parts/layout.tsx';
import {
  Avatar,
  before,
  Facts,
  fullNameOf,
  Marks,
  nameOf,
  Outfits,
  Owner,
  outfitPath,
  Pagination,
  Picture,
  Strip,
} from './parts/outfit.tsx';
import { pictureAddressOf } from './parts/pictures.tsx';
import { problemsOf, SearchForm, searchOf } from './parts/search-form.tsx';
import { Hashtags, shownText, Text, visibleText, webAddressOf } from './parts/text.tsx';

const browsed = [
  {
    path: '/',
    name: 'Outfit gateway',
    description:
      'Outfits that people have published: look at them here, or let your app read them by GraphQL or REST.',
    document: BrowseOutfitsDocument,
  },
  {
    path: '/outfits/',
    name: 'Outfits',
    description: 'The outfits that users have published.',
    document: BrowseOutfitsDocument,
  },
  {
    path: '/outfits/:id',
    name: 'Outfit',
    description: 'One outfit.',
    document: BrowseOutfitDocument,
  },
];

export const createBrowseRoutes = (schema: GraphQLSchema): readonly Route[] =>
  browsed.map((read) => createRoute(schema, read));

export function HomePage({ answer, route, site }: PageProperties) {
  const { count, results } = answer.json as NumberedPageFragment;
  return (
    <Layout site={site} title="Outfit gateway" path="/">
      <h1>Outfit gateway</h1>
      <p class="lead">{route?.description}</p>
      <p class="bar">
        <a class="button" href={`${site.root}/outfits/`}>
          Look at {count.toLocaleString('en')} {count === 1 ? 'outfit' : 'outfits'}
        </a>
        {site.config.graphiql && (
          <a class="button" href={`${site.root}/graphql`}>
            Open GraphiQL
          </a>
        )}
      </p>
      {results.length > 0 && (
        <section aria-labelledby="newest">
          <h2 id="newest">Newest outfits</h2>
          <Strip outfits={results.slice(0, 8)} site={site} list={[]} />
        </section>
      )}
      <p class="bar">{site.writing}</p>
    </Layout>
  );
}

type OutfitsJson = NumberedPageFragment & Pick<BrowseOutfitsQuery, 'people'>;

export function OutfitsPage(properties: PageProperties) {
  const { answer, site, parameters } = properties;
  const list = answer.json as OutfitsJson;
  const { page, pageCount, results } = list;
  const people = list.people?.nodes ?? [];
  const words = visibleText(readParameter(parameters, 'search')?.trim() ?? '');
  const isOfUser = searchOf(parameters).filter(([name]) => name === 'user').length === 1;
  const user = isOfUser ? results[0]?.user : undefined;
  const of = user ? ` of ${fullNameOf(user) ?? `@${shownText(user.username)}`}` : '';
  const title = `Outfits${of}${words ? ` with “${words}”` : ''}`;
  const number = page > 1 ? `, page ${page} of ${pageCount}` : '';
  return (
    <Layout site={site} title={title + number} path="/outfits/">
      <div class="bar">
        {user && <Avatar user={user} media={site.media} />}
        <h1 dir="auto">{title}</h1>
      </div>
      <SearchForm {...properties} />
      {people.length > 0 && (
        <section aria-labelledby="people">
          <h2 id="people">People</h2>
          <div class="bar">
            {people.map((person) => (
              <Owner user={person} site={site} />
            ))}
          </div>
        </section>
      )}
      <Outfits {...{ list, site, parameters }} />
      {list.count === 0 && (
        <p class="empty">
          No outfit matches this search. <a href={`${site.root}/outfits/`}>Show all outfits</a>
        </p>
      )}
    </Layout>
  );
}

type OutfitJson = NonNullable<BrowseOutfitQuery['record']> & Pick<BrowseOutfitQuery, 'beside'>;

export function OutfitPage(properties: PageProperties) {
  const { answer, site, base, graphiql } = properties;
  const outfit = answer.json as OutfitJson;
  const { id, description, image_key, user } = outfit;
  const title = nameOf(outfit);
  const image = pictureAddressOf(image_key, site.media);
  // What this process draws of a video is a picture.
  const video = site.media.drawn ? undefined : webAddressOf(outfit.video ?? '');
  const preview = {
    ...{ type: 'article', description: visibleText(cut(description, 200)) },
    ...{ url: `${base}/outfits/${id}`, image: image && new URL(image, base).href },
  };
  const more = user.more?.results.filter((other) => other.id !== id) ?? [];
  const ofUser = [['user', String(user.id)]] as const;
  return (
    <Layout site={site} title={`${cut(title)} by @${shownText(user.username)}`} preview={preview}>
      <Beside {...properties} />
      <article class="outfit">
        <div class="card">
          {video ? (
            <div class="picture">
              {/* biome-ignore lint/a11y/useMediaCaption: the videos have no captions */}
              <video src={video} poster={image} controls preload="none" aria-label={title} />
            </div>
          ) : (
            <Picture outfit={outfit} site={site} index={0} href={image} />
          )}
          <Marks outfit={outfit} site={site} />
        </div>
        <div>
          <h1 dir="auto">{title}</h1>
          <Owner user={user} site={site} />
          {visibleText(description) && (
            <p class="text" dir="auto">
              <Hashtags root={site.root}>{description}</Hashtags>
            </p>
          )}
          <Facts outfit={outfit} />
          {graphiql && <a href={graphiql}>In GraphiQL</a>}
        </div>
      </article>
      {more.length > 0 && (
        <section aria-labelledby="more">
          <h2 id="more">
            More by <Text>{fullNameOf(user) ?? `@${user.username}`}</Text>
          </h2>
          <Strip outfits={more} site={site} list={ofUser} />
        </section>
      )}
    </Layout>
  );
}

/** The previous and the next outfit of the list, and the way back to its page with this one. */
function Beside({ answer, parameters, route, site }: PageProperties) {
  const { beside, id } = answer.json as OutfitJson;
  const outfits = beside?.results ?? [];
  const search = searchOf(parameters);
  const index = outfits.findIndex((outfit) => outfit.id === id);
  const offset = Number(route?.readVariables(parameters, { id: String(id) })['offset'] ?? 0);
  // Nothing is there: the way back is the first page.
  const place = outfits.length === 0 ? 0 : offset + (index === -1 ? before : index);
  const to = (step: number) => {
    const other = index === -1 ? undefined : outfits[index + step];
    return other ? outfitPath(site, other.id, search, place + step) : null;
  };
  const page = Math.floor(place / site.config.pageSize) + 1;
  const query = formatQuery(search, 'page', page > 1 ? String(page) : undefined);
  return (
    <div class="bar">
      <a href={`${site.root}/outfits/${query && `?${query}`}#outfit-${id}`}>
        {search.length > 0 ? 'Back to the list' : 'All outfits'}
      </a>
      <Pagination label="Outfits beside it" steps={{ Previous: to(-1), Next: to(1) }} />
    </div>
  );
}

/** An error outside of /api/: of what does not exist, the heading says all. */
export function ErrorPage(properties: PageProperties) {
  const { site, answer, route, parameters } = properties;
  const { json, status } = answer;
  const isSearch = status === 400 && route?.path === '/outfits/';
  const missing = isPastEnd(answer)
    ? `page ${cut(readParameter(parameters, 'page') ?? '', 20)}`
    : `such ${route?.name.toLowerCase() ?? 'page'}`;
  const wrong = isSearch ? 'The search cannot be run' : reasonOf(status);
  const title = status === 404 ? `There is no ${missing}` : wrong;
  const messages = status === 404 ? [] : isSearch ? problemsOf(json) : messagesOf(json);
  return (
    <Layout site={site} title={title}>
      <h1>
        <Text>{title}</Text>
      </h1>
      <Problem {...properties} messages={messages} />
      {isSearch && <SearchForm {...properties} />}
    </Layout>
  );
}

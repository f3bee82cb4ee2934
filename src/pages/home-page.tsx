// The first page: what this is, how much there is of it, and the doors that lead further.
import type { Config } from '../config.ts';
import { Layout, type Site } from './layout.tsx';
import { type Media, pictureAddressOf } from './media.ts';
import { quote } from './question.ts';
import { visibleText } from './text.tsx';
import type { Writing } from './writing.ts';

/** What is asked for the page, in GraphQL: the newest outfits. */
export const homeQuery = `query Home {
  outfits {
    count
    results {
      databaseId
      title
      imageKey
    }
  }
}`;

export interface HomeAnswer {
  readonly outfits: {
    readonly count: number;
    readonly results: readonly {
      readonly databaseId: number;
      readonly title: string;
      readonly imageKey: string;
    }[];
  };
}

interface HomePageProperties {
  readonly site: Site;
  readonly description: string;
  /** Undefined: the database is away. */
  readonly outfits: HomeAnswer['outfits'] | undefined;
  readonly writing: Writing;
  readonly base: string;
  readonly config: Pick<Config, 'graphiql' | 'trustedDocumentsOnly'>;
  readonly media: Media;
}

const shownPictures = 8;

export function HomePage({
  site,
  description,
  outfits,
  writing,
  base,
  config,
  media,
}: HomePageProperties) {
  const [listing] = site.links;
  return (
    <Layout site={site} title="Outfit gateway" path="/">
      <div class="hero">
        <h1>Outfit gateway</h1>
        <p class="lead">{description}</p>
        <p class="total">
          {outfits ? (
            <>
              <strong>{outfits.count.toLocaleString('en')}</strong>{' '}
              {outfits.count === 1 ? 'outfit' : 'outfits'}
            </>
          ) : (
            'The database is away, or not ready yet: how many outfits there are is not known now.'
          )}
        </p>
        <p class="doors">
          {listing && (
            <a class="button" href={`${site.root}${listing.path}`}>
              Look at the outfits
            </a>
          )}
          {config.graphiql && (
            <a class="button plain" href={`${site.root}/graphql`}>
              Open GraphiQL
            </a>
          )}
        </p>
      </div>
      {outfits && listing && (
        <Newest outfits={outfits} href={`${site.root}${listing.path}`} media={media} />
      )}
      <section aria-labelledby="doors">
        <h2 id="doors">What there is</h2>
        <ul class="links">
          {site.links.map(({ rel, title, description, path, isForPeople }) => (
            <li>
              {isForPeople || rel !== 'graphql' ? (
                <a href={`${site.root}${path}`}>{title}</a>
              ) : (
                // A browser that only opens it would be told that there is no question.
                <strong>{title}</strong>
              )}{' '}
              <code>{path}</code>
              <p>{description}</p>
            </li>
          ))}
        </ul>
      </section>
      <section class="panel" aria-labelledby="start">
        <h2 id="start">From a program</h2>
        {listing && <pre class="code">{`curl ${quote(`${base}${listing.path}`)}`}</pre>}
        {!config.trustedDocumentsOnly && (
          <pre class="code">
            {`curl ${quote(`${base}/graphql`)} --header 'Content-Type: application/json' \\\n  --data '{"query":"{ outfits { count results { title } } }"}'`}
          </pre>
        )}
        <p>{writing.detail}</p>
      </section>
    </Layout>
  );
}

/** The newest outfits, as one link to all of them. */
function Newest({
  outfits,
  href,
  media,
}: {
  readonly outfits: HomeAnswer['outfits'];
  readonly href: string;
  readonly media: Media;
}) {
  const shown = outfits.results.flatMap(({ imageKey, ...outfit }) => {
    const image = pictureAddressOf(imageKey, media);
    return image ? [{ ...outfit, image }] : [];
  });
  if (shown.length === 0) return null;
  return (
    <section aria-labelledby="newest">
      <h2 id="newest">Newest outfits</h2>
      <ul class="strip">
        {shown.slice(0, shownPictures).map(({ databaseId, title, image }) => (
          <li class="picture">
            <a href={`${href}#outfit-${databaseId}`}>
              <img
                src={image}
                alt={visibleText(title.slice(0, 200)) ?? `Outfit ${databaseId}`}
                loading="lazy"
                decoding="async"
                width="400"
                height="500"
              />
            </a>
          </li>
        ))}
      </ul>
    </section>
  );
}

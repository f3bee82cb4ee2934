// GET /: an overview with links, as HTML or JSON by content negotiation.

import type { FastifyInstance, FastifyRequest } from 'fastify';
import { RequestCaller } from '../admission/admission.ts';
import { HttpError } from '../errors.ts';
import { HomeDocument, type HomeQuery } from '../generated/rest.ts';
import type { Answer } from '../graphql/engine/answer-cache.ts';
import type { Engine } from '../graphql/engine/engine.ts';
import { readBaseUrl } from '../http/base-url.ts';
import { version } from '../package.ts';
import { answerErrors, dataOf, methodNotAllowed, send } from '../rest/errors.ts';
import { quote } from './graphql-request.ts';
import type { HtmlNegotiation, PageCache } from './html-negotiation.ts';
import { Layout, toHtml } from './parts/layout.tsx';
import { loadingOf, pictureAddressOf } from './parts/pictures.tsx';
import type { PagesConfig, Site } from './parts/site.ts';
import { visibleText } from './parts/text.tsx';

const description =
  'Outfits that people have published: one GraphQL schema, and a REST listing for apps that were written for the old one.';

type Outfits = NonNullable<HomeQuery['outfits']>;

interface HomeOptions {
  readonly engine: Engine;
  readonly config: PagesConfig;
  readonly negotiation: HtmlNegotiation;
  readonly cache: PageCache;
  readonly siteOf: (app: FastifyInstance) => Site;
}

export function serveHome(app: FastifyInstance, options: HomeOptions): void {
  const { engine, config, negotiation, cache, siteOf } = options;
  const operation = engine.store(HomeDocument);
  answerErrors(app);

  /** Anonymous: the answer is shared by all viewers. */
  const findOutfits = async (request: FastifyRequest) => {
    try {
      const { answer } = await engine.answer<Answer & { readonly outfits?: Outfits }>(
        {
          operation,
          variables: {},
          key: '/',
          toAnswer: (result, isShared) => {
            const { outfits } = dataOf<{ readonly outfits: Outfits }>(result);
            return { outfits, size: 1_000 * outfits.results.length, shareable: isShared };
          },
        },
        new RequestCaller(request),
      );
      return answer.outfits;
    } catch (error) {
      if (error instanceof HttpError) return undefined;
      throw error;
    }
  };

  app.route({
    method: app.supportedMethods,
    url: '/',
    onRequest: async (request, reply) => {
      reply.headers({ Allow: 'GET, HEAD', Vary: 'Accept' });
      const base = readBaseUrl(request, config.publicUrl);
      if (request.method !== 'GET' && request.method !== 'HEAD') {
        throw methodNotAllowed(request.method);
      }
      const outfits = await findOutfits(request);
      const site = siteOf(app);
      if (negotiation.prefersPage(request)) {
        const page = cache.getOrRender(JSON.stringify(['/', base, outfits]), () =>
          toHtml(<HomePage {...{ site, outfits, base }} />),
        );
        return reply.send(negotiation.end(request, reply, page) ?? undefined);
      }
      return send(reply.header('Cache-Control', 'no-cache'), 200, {
        name: 'outfit-gateway',
        version,
        description,
        outfits: outfits?.count ?? null,
        writing: site.writing,
        links: Object.fromEntries(site.links.map(({ rel, path }) => [rel, `${base}${path}`])),
      });
    },
    handler: () => {},
  });
}

interface HomePageProperties {
  readonly site: Site;
  /** Undefined: the database is unavailable. */
  readonly outfits: Outfits | undefined;
  readonly base: string;
}

function HomePage({ site, outfits, base }: HomePageProperties) {
  const listing = site.links.find(({ rel }) => rel === 'listing');
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
            'The database is unavailable: the number of outfits is unknown.'
          )}
        </p>
        <p class="actions">
          <a class="button" href={`${site.root}/outfits/`}>
            Look at the outfits
          </a>
          {site.config.graphiql && (
            <a class="button plain" href={`${site.root}/graphql`}>
              Open GraphiQL
            </a>
          )}
        </p>
      </div>
      {outfits && <Newest site={site} outfits={outfits} />}
      <section aria-labelledby="interfaces">
        <h2 id="interfaces">Interfaces</h2>
        <ul class="links">
          {site.links.map(({ rel, title, description, path, isForPeople }) => (
            <li>
              {isForPeople || rel !== 'graphql' ? (
                <a href={`${site.root}${path}`}>{title}</a>
              ) : (
                // Opened in a browser, it answers that the query is missing.
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
        {!site.config.trustedDocumentsOnly && (
          <pre class="code">
            {`curl ${quote(`${base}/graphql`)} --header 'Content-Type: application/json' \\\n  --data '{"query":"{ outfits { count results { title } } }"}'`}
          </pre>
        )}
        <p>{site.writing.detail}</p>
      </section>
    </Layout>
  );
}

/** Pictures of the newest outfits, each a link to its page. */
function Newest({ site, outfits }: { readonly site: Site; readonly outfits: Outfits }) {
  const shown = outfits.results.flatMap(({ imageKey, ...outfit }) => {
    const image = pictureAddressOf(imageKey, site.media);
    return image ? [{ ...outfit, image }] : [];
  });
  if (shown.length === 0) return null;
  return (
    <section aria-labelledby="newest">
      <h2 id="newest">Newest outfits</h2>
      <ul class="strip">
        {shown.slice(0, 8).map(({ databaseId, title, image }, index) => (
          <li class="picture">
            <a href={`${site.root}/outfits/${databaseId}`}>
              <img
                src={image}
                alt={visibleText(title.slice(0, 200)) ?? `Outfit ${databaseId}`}
                {...loadingOf(index)}
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

// `/`: what this service is. A page for people, JSON for programs.
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { parse } from 'graphql';
import type { Answer } from '../cache/answer-cache.ts';
import { httpErrorFor } from '../database/errors.ts';
import { version } from '../package.ts';
import { readBaseUrl } from '../rest/base-url.ts';
import { dataOf, methodNotAllowed } from '../rest/errors.ts';
import { answerErrors, send } from '../rest/send.ts';
import { type HomeAnswer, HomePage, homeQuery } from './home-page.tsx';
import type { KeptPages } from './kept-pages.ts';
import { type Site, toHtml } from './layout.tsx';
import { linksOf } from './links.ts';
import { mediaOf } from './media.ts';
import type { PagesOptions } from './pages.tsx';
import type { Visits } from './visits.ts';
import { writingOf } from './writing.ts';

const description =
  'Outfits that people have published: one GraphQL schema, and a REST listing for apps that were written for the old one.';

interface HomeOptions extends PagesOptions {
  readonly visits: Visits;
  readonly kept: KeptPages;
}

type KeptHome = Answer & Partial<HomeAnswer>;

export function serveHome(app: FastifyInstance, options: HomeOptions): void {
  const { engine, askerOf, config, routes, drawsPictures, visits, kept } = options;
  const root = config.publicUrl ?? '';
  const media = mediaOf(config, root, drawsPictures);
  const operation = engine.store(parse(homeQuery));
  const writing = writingOf(config);
  answerErrors(app);

  /** What anyone may see, whoever asks: nobody signs in for this. */
  const findOutfits = async (
    request: FastifyRequest,
  ): Promise<HomeAnswer['outfits'] | undefined> => {
    try {
      const answer = await engine.answer<KeptHome>(
        {
          operation,
          variables: {},
          key: '/',
          toAnswer: (result, isForAll) => {
            const { outfits } = dataOf<HomeAnswer>(result);
            return { outfits, size: 1_000 * outfits.results.length, shareable: isForAll };
          },
        },
        askerOf(request, undefined),
      );
      return answer.outfits;
    } catch (error) {
      if (httpErrorFor(error)) return undefined;
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
      const links = linksOf(app, routes, config);
      if (visits.has(request)) {
        const page = kept.find(JSON.stringify(['/', base, outfits]), () => {
          const site: Site = { root, links };
          return toHtml(
            <HomePage {...{ site, description, outfits, writing, base, config, media }} />,
          );
        });
        return reply.send(visits.end(request, reply, page) ?? undefined);
      }
      return send(reply.header('Cache-Control', 'no-cache'), 200, {
        name: 'outfit-gateway',
        version,
        description,
        outfits: outfits?.count ?? null,
        writing,
        links: Object.fromEntries(links.map(({ rel, path }) => [rel, `${base}${path}`])),
      });
    },
    handler: () => {},
  });
}

// BROWSABLE: pages for requests that prefer HTML. A page of REST is made of the very answer that a
// program would get, as in Django REST Framework, so that nothing on it can differ.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { GraphQLSchema } from 'graphql';
import type { Viewer } from '../admission/viewer.ts';
import type { Config } from '../config.ts';
import type { Asker, Engine } from '../graphql/engine.ts';
import { entityTag } from '../http/etag.ts';
import { requestIdHeader } from '../http/request-id.ts';
import { readBaseUrl } from '../rest/base-url.ts';
import { RestError } from '../rest/errors.ts';
import { parseQuery } from '../rest/query-string.ts';
import type { Route } from '../rest/routes.ts';
import type { PathParameters } from '../rest/variables.ts';
import { AnswerPage } from './answer-page.tsx';
import type { Answer } from './answer-sections.tsx';
import { serveHome } from './home.tsx';
import { KeptPages, type Page } from './kept-pages.ts';
import { toHtml } from './layout.tsx';
import { linksOf } from './links.ts';
import { mediaOf } from './media.ts';
import { orderingsOf } from './ordering-menu.tsx';
import { createQuestion } from './question.ts';
import { Visits } from './visits.ts';
import { writingOf } from './writing.ts';

export type PagesConfig = Pick<
  Config,
  | 'authAudience'
  | 'authIssuer'
  | 'authJwksUrl'
  | 'authJwtSecret'
  | 'graphiql'
  | 'legacyMode'
  | 'mediaUrl'
  | 'publicUrl'
  | 'trustedDocumentsOnly'
  | 'videoUrl'
  | 'writes'
>;

export interface PagesOptions {
  readonly schema: GraphQLSchema;
  readonly routes: readonly Route[];
  readonly engine: Engine;
  readonly askerOf: (request: FastifyRequest, viewer: Viewer | undefined) => Asker;
  readonly config: PagesConfig;
  /** Whether pictures are drawn by this process, below `/media/`. */
  readonly drawsPictures: boolean;
}

export interface Pages {
  /** Shows JSON answers of `app` as pages, to whoever prefers them; to be called before its routes. */
  show(app: FastifyInstance): void;
  /** Serves `/`. */
  serveHome(app: FastifyInstance): void;
}

export function createPages(options: PagesOptions): Pages {
  const kept = new KeptPages();
  const findPage = createFinder(options, kept);
  const visits = new Visits(options.config.mediaUrl);

  const pages: Pages = {
    show(app) {
      visits.follow(app);
      // With a callback, as it runs for the fastest answers too.
      app.addHook('onSend', (request, reply, payload, done) => {
        if (!visits.has(request)) return done(null, payload);
        const isJson = reply.getHeader('content-type') === 'application/json';
        if (!isJson || !(payload instanceof Buffer)) return done(null, payload);
        // At once: Fastify goes on with a request whose client leaves while this waits.
        let page: Page;
        try {
          page = findPage(app, request, headOf(request, reply, payload), payload);
        } catch (error) {
          return done(error as Error);
        }
        done(null, visits.end(request, reply, page));
      });
    },
    serveHome(app) {
      pages.show(app);
      serveHome(app, { ...options, visits, kept });
    },
  };
  return pages;
}

/** An answer but for its JSON. */
type AnswerHead = Omit<Answer, 'json'>;

function headOf(request: FastifyRequest, reply: FastifyReply, payload: Buffer): AnswerHead {
  const { statusCode: status } = reply;
  const headers = Object.entries({ ...reply.getHeaders(), 'content-length': payload.length });
  return {
    // HEAD has the headers of GET, and so its page.
    method: request.method === 'HEAD' ? 'GET' : request.method,
    target: request.raw.url ?? '',
    status,
    headers: headers
      // It tells one error from another. On other pages it would be all that changes.
      .filter(([name]) => status >= 400 || name !== requestIdHeader)
      .map(([name, value]) => [name, String(value)] as const),
  };
}

/** Finds the pages of REST, or makes them. */
function createFinder({ schema, routes, config, drawsPictures }: PagesOptions, kept: KeptPages) {
  const known = new Map(
    routes.map((route) => [
      route.path,
      { route, orderings: orderingsOf(schema, route), toQuestion: createQuestion(schema, route) },
    ]),
  );
  const writing = writingOf(config);
  const root = config.publicUrl ?? '';
  const media = mediaOf(config, root, drawsPictures);

  return (app: FastifyInstance, request: FastifyRequest, head: AnswerHead, payload: Buffer) => {
    const base = findBase(request, config.publicUrl);
    const key =
      head.status === 200
        ? entityTag(JSON.stringify([head, base ?? null, entityTag(payload)]))
        : undefined;
    return kept.find(key, () => {
      const found = known.get(request.routeOptions.url ?? '');
      const parameters = parseQuery(/\?([^#]*)/.exec(head.target)?.[1] ?? '');
      const toQuestion = config.trustedDocumentsOnly ? undefined : found?.toQuestion;
      return toHtml(
        <AnswerPage
          site={{ root, links: linksOf(app, routes, config) }}
          answer={{ ...head, json: JSON.parse(payload.toString('utf8')) }}
          route={found?.route}
          parameters={parameters}
          orderings={found?.orderings ?? []}
          question={toQuestion?.(parameters, request.params as PathParameters)}
          base={base}
          hasGraphiQL={config.graphiql}
          writing={writing}
          media={media}
        />,
      );
    });
  };
}

/** Undefined for a request whose host no command may repeat. */
function findBase(request: FastifyRequest, publicUrl: string | undefined): string | undefined {
  try {
    return readBaseUrl(request, publicUrl);
  } catch (error) {
    if (error instanceof RestError) return undefined;
    throw error;
  }
}

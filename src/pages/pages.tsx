// BROWSABLE: pages for requests that prefer HTML. A page of REST is made of the very answer that a
// program would get, as in Django REST Framework, so that nothing on it can differ.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { GraphQLSchema } from 'graphql';
import type { Viewer } from '../admission/viewer.ts';
import type { Config } from '../config.ts';
import type { Asker, Engine } from '../graphql/engine.ts';
import { prefersHtml } from '../http/accept.ts';
import { readBaseUrl } from '../rest/base-url.ts';
import { RestError } from '../rest/errors.ts';
import { parseQuery } from '../rest/query-string.ts';
import type { Route } from '../rest/routes.ts';
import type { PathParameters } from '../rest/variables.ts';
import { AnswerPage } from './answer-page.tsx';
import type { Answer } from './answer-sections.tsx';
import { serveHome } from './home.tsx';
import { pageHeaders, toHtml } from './layout.tsx';
import { linksOf } from './links.ts';
import { mediaOf } from './media.ts';
import { orderingsOf } from './ordering-menu.tsx';
import { createQuestion } from './question.ts';
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
  const render = createRenderer(options);
  /** Requests that are answered with a page. */
  const shown = new WeakSet<FastifyRequest>();

  const pages: Pages = {
    show(app) {
      app.addHook('onRequest', (request, _reply, done) => {
        if (prefersHtml(request.headers.accept)) {
          shown.add(request);
          // From here on it is the request of a program, for a whole answer: nothing below has heard of pages.
          request.headers = {
            accept: 'application/json',
            'accept-encoding': undefined,
            'if-none-match': undefined,
          };
        }
        done();
      });
      // With a callback, as it runs for the fastest answers too.
      app.addHook('onSend', (request, reply, payload, done) => {
        if (!shown.has(request)) return done(null, payload);
        const isJson = reply.getHeader('content-type') === 'application/json';
        if (!isJson || !(payload instanceof Buffer)) return done(null, payload);
        let html: string;
        try {
          html = render(app, request, toAnswer(request, reply, payload));
        } catch (error) {
          return done(error as Error);
        }
        setPageHeaders(reply, options.config.mediaUrl);
        done(null, html);
      });
    },
    serveHome(app) {
      pages.show(app);
      serveHome(app, { ...options, isShown: (request) => shown.has(request) });
    },
  };
  return pages;
}

/** Sets the headers of a page in place of those of the JSON that it shows. */
function setPageHeaders(reply: FastifyReply, mediaUrl: string): void {
  const vary = reply.getHeader('Vary')?.toString() ?? '';
  if (!/\baccept\b(?!-)/i.test(vary)) reply.header('Vary', vary ? `Accept, ${vary}` : 'Accept');
  reply.removeHeader('ETag').headers(pageHeaders(mediaUrl));
}

function toAnswer(request: FastifyRequest, reply: FastifyReply, payload: Buffer): Answer {
  const headers = Object.entries({ ...reply.getHeaders(), 'content-length': payload.length });
  return {
    // HEAD has the headers of GET, and so its page.
    method: request.method === 'HEAD' ? 'GET' : request.method,
    target: request.raw.url ?? '',
    status: reply.statusCode,
    headers: headers.map(([name, value]) => [name, String(value)] as const),
    json: JSON.parse(payload.toString('utf8')),
  };
}

/** Makes the pages of REST. */
function createRenderer({ schema, routes, config, drawsPictures }: PagesOptions) {
  const known = new Map(
    routes.map((route) => [
      route.path,
      { route, orderings: orderingsOf(schema, route), toQuestion: createQuestion(schema, route) },
    ]),
  );
  const writing = writingOf(config);
  const root = config.publicUrl ?? '';
  const media = mediaOf(config, root, drawsPictures);

  return (app: FastifyInstance, request: FastifyRequest, answer: Answer): string => {
    const found = known.get(request.routeOptions.url ?? '');
    const parameters = parseQuery(/\?([^#]*)/.exec(answer.target)?.[1] ?? '');
    const hasGraphQL = !config.trustedDocumentsOnly;
    return toHtml(
      <AnswerPage
        site={{ root, links: linksOf(app, routes, config) }}
        answer={answer}
        route={found?.route}
        parameters={parameters}
        orderings={found?.orderings ?? []}
        question={
          hasGraphQL ? found?.toQuestion?.(parameters, request.params as PathParameters) : undefined
        }
        base={findBase(request, config.publicUrl)}
        hasGraphiQL={config.graphiql}
        writing={writing}
        media={media}
      />,
    );
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

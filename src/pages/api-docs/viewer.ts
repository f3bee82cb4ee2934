// GET /api/docs: Swagger UI with the OpenAPI document, without files of other hosts.

import { readFileSync } from 'node:fs';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Config } from '../../config.ts';
import { readBaseUrl } from '../../http/base-url.ts';
import { preferredType } from '../../http/content-negotiation.ts';
import { announceDeprecation } from '../../http/deprecation.ts';
import { entityTag, type Representable, sendRepresentation } from '../../http/representation.ts';
import { packageFolder } from '../../package.ts';
import { answerErrors, notFound } from '../../rest/errors.ts';
import { logo } from '../parts/logo.ts';
import { page, showDocument, style } from './viewer-page.js';

/** The page may run its own files and send requests to this gateway. @see https://www.w3.org/TR/CSP3/ */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

type ViewerConfig = Pick<
  Config,
  'compression' | 'graphiql' | 'publicUrl' | 'restDeprecated' | 'restSunset'
>;

/** Serves the page to clients that accept HTML, and 404 to others, like all unknown paths below `/api/`. */
export function serveViewer(app: FastifyInstance, config: ViewerConfig): void {
  announceDeprecation(app, config);
  answerErrors(app);
  const compresses = config.compression !== 'off';
  // Read on first use: most processes never serve it.
  let viewer: ReturnType<typeof readViewer> | undefined;
  const getViewer = () => (viewer ??= readViewer(config.graphiql));
  const wantsPage = (request: FastifyRequest) => {
    readBaseUrl(request, config.publicUrl);
    if (!preferredType(request.headers.accept || '*/*', ['text/html'])) throw notFound();
  };

  app.get('/api/docs', { exposeHeadRoute: true }, async (request, reply) => {
    wantsPage(request);
    const { html } = getViewer();
    reply
      .header('Content-Security-Policy', policy)
      // Also on a 304.
      .header('Content-Type', html.contentType)
      .header('Vary', compresses ? 'Accept, Accept-Encoding' : 'Accept');
    return sendRepresentation(request, reply, html, compresses);
  });

  app.get('/api/docs/', { exposeHeadRoute: true }, async (request, reply) => {
    wantsPage(request);
    return reply.header('Vary', 'Accept').redirect('/api/docs', 301);
  });

  type File = { Params: { version: string; file: string } };
  const url = '/api/docs/:version/:file';
  app.get<File>(url, { exposeHeadRoute: true }, async (request, reply) => {
    readBaseUrl(request, config.publicUrl);
    const { version, file } = request.params;
    const found = getViewer().files.get(`${version}/${file}`);
    if (!found) throw notFound();
    if (compresses) reply.header('Vary', 'Accept-Encoding');
    return sendRepresentation(request, reply, found, compresses);
  });
}

/** The page, and its files by paths with a hash, which clients may cache forever. */
function readViewer(hasGraphiQL: boolean) {
  // The build copies them: the bundle runs without node_modules.
  const readBuilt = (name: string) => readFileSync(new URL(`dist/openapi/${name}`, packageFolder));
  const files = {
    'swagger-ui.css': readBuilt('swagger-ui.css'),
    'swagger-ui.js': readBuilt('swagger-ui-bundle.js'),
    'page.css': Buffer.from(style),
    'page.js': Buffer.from(`(${showDocument})();`),
  };
  const version = entityTag(Buffer.concat(Object.values(files))).slice(1, 9);
  const body = Buffer.from(page({ folder: `docs/${version}`, logo, hasGraphiQL }));
  const html = { body, contentType: 'text/html; charset=utf-8' };
  const entries = Object.entries(files).map(([name, body]): [string, Representable] => {
    const contentType = `text/${name.endsWith('.css') ? 'css' : 'javascript'}; charset=utf-8`;
    return [`${version}/${name}`, { body, contentType, isImmutable: true }];
  });
  return { html, files: new Map(entries) };
}

// /api/docs: the document in Swagger UI, for people; from this process alone.
import { readFile } from 'node:fs/promises';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { prefersHtml } from '../http/accept.ts';
import { type Compressible, findForm } from '../http/compression.ts';
import { entityTag } from '../http/etag.ts';
import { sendForm } from '../http/send-form.ts';
import { logo } from '../logo.ts';
import { readBaseUrl } from '../rest/base-url.ts';
import { notFound } from '../rest/errors.ts';
import type { OpenApiOptions } from './route.ts';
import { page } from './viewer-page.ts';
import { showDocument } from './viewer-script.js';
import { style } from './viewer-style.ts';

/** What the page may do: run its own files, and ask this gateway. */
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

/** The page and its files, by their names. */
interface Viewer {
  readonly html: Compressible;
  readonly tag: string;
  readonly files: ReadonlyMap<string, Compressible>;
  /** Part of the paths of the files, as they may be kept for ever. */
  readonly version: string;
}

/** Serves the page to browsers: for all others there is nothing, as everywhere below `/api/`. */
export function serveViewer(app: FastifyInstance, { config }: OpenApiOptions): void {
  const compresses = config.compression !== 'off';
  // Read on first use and then kept: most processes are never asked for it.
  let viewer: Promise<Viewer> | undefined;

  const getViewer = () => {
    // What fails now may be there the next time.
    viewer ??= readViewer(config.graphiql).catch((error) => {
      viewer = undefined;
      throw error;
    });
    return viewer;
  };
  const wantsPage = (request: FastifyRequest) => {
    readBaseUrl(request, config.publicUrl);
    if (!prefersHtml(request.headers.accept)) throw notFound();
  };

  app.get('/api/docs', { exposeHeadRoute: true }, async (request, reply) => {
    wantsPage(request);
    const { html, tag } = await getViewer();
    const contentType = 'text/html; charset=utf-8';
    reply
      .header('Content-Security-Policy', policy)
      // On a 304, too.
      .header('Content-Type', contentType)
      .header('Vary', compresses ? 'Accept, Accept-Encoding' : 'Accept');
    const form = await findForm(html, request, compresses);
    return sendForm(request, reply, form, { contentType, tag, shareable: true });
  });

  app.get('/api/docs/', { exposeHeadRoute: true }, async (request, reply) => {
    wantsPage(request);
    return reply.header('Vary', 'Accept').redirect('/api/docs', 301);
  });

  app.get<{ Params: { version: string; file: string } }>(
    '/api/docs/:version/:file',
    { exposeHeadRoute: true },
    async (request, reply) => {
      readBaseUrl(request, config.publicUrl);
      const { version, file } = request.params;
      const { files, version: current } = await getViewer();
      const found = files.get(file);
      if (!found || version !== current) throw notFound();
      const type = file.endsWith('.css') ? 'text/css' : 'text/javascript';
      reply.header('Cache-Control', 'public, max-age=31536000, immutable');
      if (compresses) reply.header('Vary', 'Accept-Encoding');
      const form = await findForm(found, request, compresses);
      const contentType = `${type}; charset=utf-8`;
      return sendForm(request, reply, form, { contentType, tag: undefined, shareable: true });
    },
  );
}

async function readViewer(hasGraphiQL: boolean): Promise<Viewer> {
  const files = new Map<string, Buffer>([
    [
      'swagger-ui.css',
      await readFile(new URL(import.meta.resolve('swagger-ui-dist/swagger-ui.css'))),
    ],
    [
      'swagger-ui.js',
      await readFile(new URL(import.meta.resolve('swagger-ui-dist/swagger-ui-bundle.js'))),
    ],
    ['page.css', Buffer.from(style)],
    ['page.js', Buffer.from(`(${showDocument})();`)],
  ]);
  const version = entityTag(Buffer.concat([...files.values()])).slice(1, 9);
  const html = Buffer.from(page({ folder: `docs/${version}`, logo, hasGraphiQL }));
  return {
    html: { body: html },
    tag: entityTag(html),
    files: new Map([...files].map(([name, body]) => [name, { body }])),
    version,
  };
}

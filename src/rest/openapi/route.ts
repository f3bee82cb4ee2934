// GET /api/openapi.json: the OpenAPI document of the REST paths.
import type { FastifyInstance } from 'fastify';
import { encodeJson } from '../../http/json.ts';
import { type Compressible, entityTag, sendRepresentation } from '../../http/representation.ts';
import { type RestOptions, serveRest } from '../adapter.ts';
import { announceDeprecation } from '../deprecation.ts';
import { answerErrors, methodNotAllowed } from '../errors.ts';
import { InnerApp } from '../inner-app.ts';
import type { Route } from '../routes.ts';
import { readBaseUrl } from '../url.ts';
import type { DocumentOptions, Samples } from './document.ts';

interface CachedDocument extends Compressible {
  /** The samples: the document is generated again when they change. */
  readonly key: string;
  readonly tag: string;
}

export function serveOpenApi(app: FastifyInstance, options: RestOptions & DocumentOptions): void {
  const { admit, config, routes } = options;
  const compresses = config.compression !== 'off';
  let inner: Promise<InnerApp> | undefined;
  let cached: CachedDocument | undefined;
  app.addHook('onClose', async () => (await inner)?.close());
  announceDeprecation(app, config);
  answerErrors(app);
  app.route({
    method: app.supportedMethods,
    url: '/api/openapi.json',
    onRequest: async (request, reply) => {
      reply.header('Allow', 'GET, HEAD');
      if (compresses) reply.header('Vary', 'Accept-Encoding');
      readBaseUrl(request, config.publicUrl);
      const { method, protocol, host } = request;
      if (method !== 'GET' && method !== 'HEAD') throw methodNotAllowed(method);
      // It costs as much as the first page of each list.
      await admit(request, reply);
      // Internal requests are not admitted again.
      inner ??= InnerApp.build((scope) => serveRest(scope, { ...options, admit: () => undefined }));
      const samples = await takeSamples(await inner, routes, { protocol, host });
      const key = JSON.stringify([...samples]);
      let answer = cached;
      if (answer?.key !== key) {
        const { createDocument } = await import('./document.ts');
        const body = encodeJson(createDocument(options, samples));
        answer = cached = { key, body, tag: entityTag(body) };
      }
      const contentType = 'application/json';
      const { tag } = answer;
      const sent = { contentType, tag, shareable: true, compresses };
      return sendRepresentation(request, reply, answer, sent);
    },
    handler: () => {},
  });
}

/** Records in an example: the default page size. */
const maxRecords = 20;

/** Reads examples from the listing for each request, so that they are never stale. */
async function takeSamples(
  inner: InnerApp,
  routes: readonly Route[],
  audience: { readonly protocol: string; readonly host: string },
): Promise<Samples> {
  const samples = new Map<string, { results?: object[] }>();
  for (const { path, list } of routes.filter(({ path }) => !path.includes(':'))) {
    const answer = await inner.ask({ headers: {}, ...audience, target: path });
    if (answer.statusCode !== 200) continue;
    const body: { results?: object[] } = answer.json();
    if (list) body.results?.splice(maxRecords);
    samples.set(path, body);
  }
  return samples;
}

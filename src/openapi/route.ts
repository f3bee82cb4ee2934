// GET /api/openapi.json: the OpenAPI document of the legacy paths; and its viewer.
import type { FastifyInstance } from 'fastify';
import type { Config } from '../config.ts';
import { encodeJson } from '../http/json.ts';
import { type Compressible, entityTag, findForm, sendForm } from '../http/representation.ts';
import { type RestOptions, serveRest } from '../rest/adapter.ts';
import { announceDeprecation } from '../rest/deprecation.ts';
import { answerErrors, methodNotAllowed } from '../rest/errors.ts';
import { createInnerApp, type InnerApp } from '../rest/inner-app.ts';
import { readBaseUrl } from '../rest/url.ts';
import type { DocumentOptions } from './document.ts';
import { type Audience, takeSamples } from './samples.ts';

export interface OpenApiOptions extends RestOptions {
  readonly config: RestOptions['config'] &
    DocumentOptions['config'] &
    Pick<Config, 'browsable' | 'graphiql'>;
}

/** A document as it was last given. */
interface KeptDocument extends Compressible {
  /** What it was made of. */
  readonly key: string;
  readonly tag: string;
}

/** Serves the document, and a viewer of it for people. */
export async function serveOpenApi(app: FastifyInstance, options: OpenApiOptions): Promise<void> {
  const { admit, config } = options;
  const provide = createProvider(app, options);
  const compresses = config.compression !== 'off';
  announceDeprecation(app, config);
  answerErrors(app);
  app.route({
    method: app.supportedMethods,
    url: '/api/openapi.json',
    onRequest: async (request, reply) => {
      reply.header('Allow', 'GET, HEAD');
      if (compresses) reply.header('Vary', 'Accept-Encoding');
      const base = readBaseUrl(request, config.publicUrl);
      const { method, protocol, host } = request;
      if (method !== 'GET' && method !== 'HEAD') throw methodNotAllowed(method);
      // It takes as much as the first page of each list.
      await admit(request);
      const document = await provide(base, { protocol, host });
      const form = await findForm(document, request, compresses);
      return sendForm(request, reply, form, {
        contentType: 'application/json',
        tag: document.tag,
        shareable: true,
      });
    },
    handler: () => {},
  });
  if (config.browsable) (await import('./viewer.ts')).serveViewer(app, options);
}

/** Makes the document when it is asked for, and anew when the answers in it have changed. */
function createProvider(
  app: FastifyInstance,
  options: OpenApiOptions,
): (base: string, audience: Audience) => Promise<KeptDocument> {
  let inner: Promise<InnerApp> | undefined;
  let latest: KeptDocument | undefined;
  app.addHook('onClose', async () => (await inner)?.close());

  return async (base, audience) => {
    // Nobody in particular asks, and it counts as no request.
    inner ??= createInnerApp((scope) => serveRest(scope, { ...options, admit: () => undefined }));
    const samples = await takeSamples(await inner, options.routes, audience);
    const key = JSON.stringify([base, ...samples]);
    if (latest?.key !== key) {
      const { createDocument } = await import('./document.ts');
      const body = encodeJson(createDocument(options, base, samples));
      latest = { key, body, tag: entityTag(body) };
    }
    return latest;
  };
}

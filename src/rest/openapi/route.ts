// GET /api/openapi.json: the OpenAPI document of the REST paths.

import type { FastifyInstance } from 'fastify';
import { readBaseUrl } from '../../http/addresses.ts';
import { announceDeprecation } from '../../http/deprecation.ts';
import { encodeJson } from '../../http/json.ts';
import { type Representable, sendRepresentation } from '../../http/representation.ts';
import type { RestOptions } from '../adapter.ts';
import { answerErrors, methodNotAllowed } from '../errors.ts';
import type { DocumentOptions } from './document.ts';

export function serveOpenApi(
  app: FastifyInstance,
  options: RestOptions & DocumentOptions,
  url = '/api/openapi.json',
): void {
  const { admit, config } = options;
  const compresses = config.compression !== 'off';
  let document: Representable | undefined;
  announceDeprecation(app, config);
  answerErrors(app);
  app.route({
    method: app.supportedMethods,
    url,
    onRequest: async (request, reply) => {
      reply.header('Allow', 'GET, HEAD');
      if (compresses) reply.header('Vary', 'Accept-Encoding');
      readBaseUrl(request, config.publicUrl);
      const { method } = request;
      if (method !== 'GET' && method !== 'HEAD') throw methodNotAllowed(method);
      await admit(request, reply);
      if (!document) {
        const { createDocument } = await import('./document.ts');
        document = { body: encodeJson(createDocument(options)) };
      }
      return sendRepresentation(request, reply, document, compresses);
    },
    handler: () => {},
  });
}

// GET /graphql/schema.graphql: the schema in SDL.
import type { FastifyInstance } from 'fastify';
import { type GraphQLSchema, lexicographicSortSchema, printSchema } from 'graphql';
import type { Admit } from '../admission/admission.ts';
import { requireHost } from '../http/addresses.ts';
import { type Representable, sendRepresentation } from '../http/representation.ts';
import { methodNotAllowed } from './errors.ts';
import { isRead } from './request.ts';

const allow = 'GET, HEAD, OPTIONS';

export function serveSdl(
  app: FastifyInstance,
  schema: GraphQLSchema,
  admit: Admit,
  compresses: boolean,
): void {
  // Printed on first use: most processes never need it.
  let printed: Representable | undefined;
  app.route({
    method: app.supportedMethods,
    url: '/graphql/schema.graphql',
    onRequest: async (request, reply) => {
      if (compresses) reply.header('Vary', 'Accept-Encoding');
      requireHost(request);
      request.viewer = await admit(request, reply);
      if (request.method === 'OPTIONS') return reply.code(204).header('Allow', allow).send();
      if (!isRead(request)) throw methodNotAllowed(request.method, allow);
    },
    handler: async (request, reply) => {
      printed ??= {
        body: Buffer.from(printSdl(schema)),
        contentType: 'text/plain; charset=utf-8',
      };
      return sendRepresentation(request, reply, printed, compresses);
    },
  });
}

/** The text of schema.graphql. Single-line descriptions stay on one line: graphql-js writes longer ones on three. */
export function printSdl(schema: GraphQLSchema): string {
  const text = printSchema(lexicographicSortSchema(schema));
  return text.replace(/^( *)"""\n\1(.*[^\\"\n])\n\1"""$/gm, '$1"""$2"""');
}

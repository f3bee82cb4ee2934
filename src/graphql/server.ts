import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { GraphQLSchema } from 'graphql';
import { createYoga } from 'graphql-yoga';
import type { Context } from './context.ts';
import { createGraphiQL } from './graphiql.ts';

export interface GraphQLOptions {
  readonly schema: GraphQLSchema;
  readonly createContext: (request: FastifyRequest) => Context;
}

const path = '/graphql';

/** Serves GraphQL over HTTP, and GraphiQL to browsers, at `/graphql`. */
export async function serveGraphQL(app: FastifyInstance, options: GraphQLOptions): Promise<void> {
  const sendGraphiQL = createGraphiQL();
  const yoga = createYoga<{ fastifyRequest: FastifyRequest }, Context>({
    schema: options.schema,
    context: ({ fastifyRequest }) => options.createContext(fastifyRequest),
    graphqlEndpoint: path,
    graphiql: false,
    landingPage: false,
    cors: false,
    multipart: false,
    maskedErrors: { errorMessage: 'Internal server error.' },
    logging: {
      debug: () => {},
      info: () => {},
      warn: (...args) => app.log.warn({ details: args }, 'graphql'),
      error: (...args) => app.log.error({ err: args[0] }, 'graphql'),
    },
  });

  // Yoga reads bodies of every type itself, and knows the answer to the ones it does not take.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));

  app.setErrorHandler<{ statusCode?: number; message: string }>((error, request, reply) => {
    const status = error.statusCode ?? 500;
    if (status >= 500) request.log.error({ err: error }, 'unexpected error');
    const message = status >= 500 ? 'Internal server error.' : error.message;
    return reply.code(status).send({ errors: [{ message }] });
  });

  app.route({
    method: app.supportedMethods,
    url: path,
    handler: async (request, reply) => {
      const isRead = request.method === 'GET' || request.method === 'HEAD';
      if (isRead && request.headers.accept?.includes('text/html'))
        return sendGraphiQL(request, reply);
      reply.header('Vary', 'Accept');
      if (request.method === 'OPTIONS') {
        return reply.code(204).header('Allow', 'GET, HEAD, POST, OPTIONS').send();
      }
      const response = await yoga.fetch(
        `http://localhost${request.url}`,
        {
          // HEAD is GET without the body, which Node leaves out by itself.
          method: isRead ? 'GET' : request.method,
          headers: request.headers as Record<string, string>,
          body: isRead ? null : ((request.body as Uint8Array<ArrayBuffer> | undefined) ?? null),
        },
        { fastifyRequest: request },
      );
      if (response.status === 415) {
        return reply
          .code(415)
          .send({ errors: [{ message: 'This content type is not supported.' }] });
      }
      reply.code(response.status);
      for (const [name, value] of response.headers) reply.header(name, value);
      return reply.send(Buffer.from(await response.arrayBuffer()));
    },
  });
}

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { GraphQLSchema } from 'graphql';
import { createYoga } from 'graphql-yoga';
import { LRUCache } from 'lru-cache';
import type { Answer, AnswerCache } from '../cache/answer-cache.ts';
import { entityTag, sendIfUnchanged } from '../conditional.ts';
import type { Context } from './context.ts';
import { createGraphiQL } from './graphiql.ts';
import { type Outcome, useHotDocuments } from './hot-documents.ts';

export interface GraphQLOptions {
  readonly schema: GraphQLSchema;
  readonly cache: AnswerCache;
  readonly createContext: () => Context;
}

const path = '/graphql';
const allow = 'GET, HEAD, POST, OPTIONS';

/** Serves GraphQL over HTTP, and GraphiQL to browsers, at `/graphql`. */
export async function serveGraphQL(app: FastifyInstance, options: GraphQLOptions): Promise<void> {
  const sendGraphiQL = createGraphiQL();
  const answer = answerRequests(app, options);

  // Yoga reads bodies of every type itself, and knows the answer to the ones it does not take.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));

  app.setErrorHandler<{ statusCode?: number; message: string }>((error, request, reply) => {
    const status = error.statusCode ?? 500;
    if (status >= 500) request.log.error({ err: error }, 'unexpected error');
    return sendMessage(reply, status, status >= 500 ? 'Internal server error.' : error.message);
  });

  app.route({
    method: app.supportedMethods,
    url: path,
    handler: async (request, reply) => {
      if (isRead(request) && request.headers.accept?.includes('text/html')) {
        return sendGraphiQL(request, reply);
      }
      reply.header('Vary', 'Accept');
      if (request.method === 'OPTIONS') return reply.code(204).header('Allow', allow).send();

      const { status, contentType, body, tag } = await answer(request);
      if (status === 405) reply.header('Allow', allow);
      if (status === 415) return sendMessage(reply, 415, 'This content type is not supported.');
      if (isRead(request) && status === 200 && sendIfUnchanged(request, reply, tag)) return reply;
      return reply.code(status).header('Content-Type', contentType).send(body);
    },
  });
}

/** An answer as bytes. */
interface HttpAnswer extends Answer {
  readonly status: number;
  readonly contentType: string;
  readonly body: Buffer;
  readonly tag: string;
}

function answerRequests(app: FastifyInstance, { schema, cache, createContext }: GraphQLOptions) {
  const yoga = createYoga<{ outcome: Outcome }, Context>({
    schema,
    context: createContext,
    graphqlEndpoint: path,
    graphiql: false,
    landingPage: false,
    cors: false,
    multipart: false,
    maskedErrors: { errorMessage: 'Internal server error.' },
    plugins: [useHotDocuments(schema)],
    logging: {
      debug: () => {},
      info: () => {},
      warn: (...args) => app.log.warn({ details: args }, 'graphql'),
      error: (...args) => app.log.error({ err: args[0] }, 'graphql'),
    },
  });

  const run = async (request: FastifyRequest): Promise<HttpAnswer> => {
    const outcome: Outcome = { repeatable: false };
    const response = await yoga.fetch(
      `http://localhost${request.url}`,
      {
        // HEAD is GET without the body, which Node leaves out by itself.
        method: isRead(request) ? 'GET' : request.method,
        headers: request.headers as Record<string, string>,
        body: (request.body as Uint8Array<ArrayBuffer> | undefined) ?? null,
      },
      { outcome },
    );
    const body = Buffer.from(await response.arrayBuffer());
    return {
      status: response.status,
      contentType: response.headers.get('content-type') ?? 'application/json',
      body,
      tag: entityTag(body),
      size: body.length,
      shareable: outcome.repeatable,
    };
  };

  // Requests that were once seen to be repeatable. Only those are answered together or from memory:
  // of an unknown one it is not known whether it is a mutation.
  const repeatable = new LRUCache<string, true>({ max: 1000 });

  return async (request: FastifyRequest): Promise<HttpAnswer> => {
    const operation = readOperation(request);
    if (operation === undefined) return run(request);
    if (repeatable.get(operation.document)) return cache.get(operation.key, () => run(request));
    const answer = await run(request);
    if (answer.shareable) repeatable.set(operation.document, true);
    return answer;
  };
}

/**
 * What identifies the document of a request, and the whole of what its answer depends on.
 * Undefined for what is not a plain GraphQL request.
 */
function readOperation(request: FastifyRequest): { document: string; key: string } | undefined {
  const { accept = '', 'content-type': contentType = '' } = request.headers;
  if (isRead(request)) {
    const parameters = new URLSearchParams(request.url.slice(request.url.indexOf('?')));
    const document = JSON.stringify([parameters.get('operationName'), parameters.get('query')]);
    return { document, key: `GET ${accept} ${request.url}` };
  }
  if (request.method !== 'POST' || !contentType.startsWith('application/json')) return undefined;
  try {
    const { query, operationName, ...rest } = JSON.parse(String(request.body));
    const document = JSON.stringify([operationName, query]);
    return { document, key: `POST ${accept} ${JSON.stringify(rest)} ${document}` };
  } catch {
    return undefined; // yoga says what is wrong with it
  }
}

function isRead({ method }: FastifyRequest): boolean {
  return method === 'GET' || method === 'HEAD';
}

function sendMessage(reply: FastifyReply, status: number, message: string): FastifyReply {
  return reply.code(status).send({ errors: [{ message }] });
}

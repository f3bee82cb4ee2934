import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { GraphQLSchema } from 'graphql';
import { createYoga } from 'graphql-yoga';
import type { Admit } from '../admission/admission.ts';
import type { Answer, AnswerCache } from '../cache/answer-cache.ts';
import { entityTag, sendIfUnchanged } from '../conditional.ts';
import type { Viewer } from '../identity/viewer.ts';
import { Refusal } from '../refusal.ts';
import type { StartWork, Waiter } from '../work.ts';
import type { Context } from './context.ts';
import { createGraphiQL } from './graphiql.ts';
import { HotQueries, type Outcome, useOutcome } from './hot-queries.ts';

export interface GraphQLOptions {
  readonly schema: GraphQLSchema;
  readonly cache: AnswerCache;
  readonly admit: Admit;
  readonly createContext: (viewer: Viewer | undefined) => Context;
  readonly startWork: StartWork;
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
    if (error instanceof Refusal) {
      if (error.cause) request.log.error({ err: error.cause }, error.message);
      const { code, headers, message, status } = error;
      return reply
        .code(status)
        .headers(headers)
        .send({ errors: [{ message, extensions: { code } }] });
    }
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

      const context = options.createContext(await options.admit(request));
      const { status, contentType, body, tag } = await answer(request, context, reply.raw);
      if (status === 405) reply.header('Allow', allow);
      if (status === 415) return sendMessage(reply, 415, 'This content type is not supported.');
      const isShareable = context.visibility.private !== 'own';
      if (isRead(request) && status === 200 && sendIfUnchanged(request, reply, tag, isShareable)) {
        return reply;
      }
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

function answerRequests(app: FastifyInstance, { schema, cache, startWork }: GraphQLOptions) {
  const yoga = createYoga<Context & { outcome: Outcome }>({
    schema,
    graphqlEndpoint: path,
    graphiql: false,
    landingPage: false,
    cors: false,
    multipart: false,
    maskedErrors: { errorMessage: 'Internal server error.' },
    plugins: [useOutcome()],
    logging: {
      debug: () => {},
      info: () => {},
      warn: (...args) => app.log.warn({ details: args }, 'graphql'),
      error: (...args) => app.log.error({ err: args[0] }, 'graphql'),
    },
  });

  const askYoga = async (
    request: FastifyRequest,
    context: Context,
    outcome: Outcome,
  ): Promise<HttpAnswer> => {
    const response = await yoga.fetch(
      `http://localhost${request.url}`,
      {
        // HEAD is GET without the body, which Node leaves out by itself.
        method: isRead(request) ? 'GET' : request.method,
        headers: request.headers as Record<string, string>,
        body: (request.body as Uint8Array<ArrayBuffer> | undefined) ?? null,
      },
      { ...context, outcome },
    );
    if (outcome.refusal) throw outcome.refusal;
    const contentType = response.headers.get('content-type') ?? 'application/json';
    const body = Buffer.from(await response.arrayBuffer());
    return answerOf(response.status, contentType, body, outcome.query !== undefined);
  };

  const hot = new HotQueries(schema);

  return async (request: FastifyRequest, context: Context, waiter: Waiter): Promise<HttpAnswer> => {
    const operation = readOperation(request);
    // Only what is known to be a query is answered from memory or together with others: of an
    // unknown document it is not known whether it is a mutation.
    if (operation && hot.has(operation.document)) {
      const read = async () => {
        const result = await hot.execute(operation.document, operation.variables, context);
        if (result) return answerOf(200, result.contentType, result.body, true);
        return askYoga(request, context, {});
      };
      // What a viewer alone sees is given to nobody else.
      return context.visibility.private === 'own'
        ? startWork(read).join(waiter)
        : cache.get(operation.key, read, waiter);
    }
    const outcome: Outcome = {};
    const work = startWork(() => askYoga(request, context, outcome));
    const answer = await work.join(waiter);
    if (operation && outcome.query) hot.note(operation.document, outcome.query, answer.contentType);
    return answer;
  };
}

function answerOf(
  status: number,
  contentType: string,
  body: Buffer,
  shareable: boolean,
): HttpAnswer {
  return { status, contentType, body, tag: entityTag(body), size: body.length, shareable };
}

interface Operation {
  /** Names the document, the operation in it and the accepted types. */
  readonly document: string;
  readonly variables: Record<string, unknown>;
  /** Names everything that the answer depends on. */
  readonly key: string;
}

/** Reads a plain GraphQL request. Undefined for any other, which yoga says what is wrong with. */
function readOperation(request: FastifyRequest): Operation | undefined {
  const { accept, 'content-type': contentType = '' } = request.headers;
  try {
    let parameters: Record<string, unknown>;
    if (isRead(request)) {
      const pairs = [...new URLSearchParams(request.url.slice(request.url.indexOf('?')))];
      const { variables = '{}', ...texts } = Object.fromEntries(pairs);
      if (new Set(pairs.map(([name]) => name)).size < pairs.length) return undefined;
      parameters = { ...texts, variables: JSON.parse(variables) };
    } else if (request.method === 'POST' && /^application\/json *(;|$)/.test(contentType)) {
      parameters = JSON.parse(String(request.body));
    } else {
      return undefined;
    }
    const { query, operationName, variables, extensions, ...others } = parameters;
    const given = variables ?? {};
    if (!isRecord(given) || !isRecord(extensions ?? {}) || Object.keys(others).length > 0) {
      return undefined;
    }
    const document = JSON.stringify([query, operationName, accept]);
    // The text as it came: 1e400 is parsed as Infinity, which would be written as null.
    const text = isRead(request) ? request.url : `POST ${request.body}`;
    return { document, variables: given, key: `${document} ${text}` };
  } catch {
    return undefined;
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isRead({ method }: FastifyRequest): boolean {
  return method === 'GET' || method === 'HEAD';
}

function sendMessage(reply: FastifyReply, status: number, message: string): FastifyReply {
  return reply.code(status).send({ errors: [{ message }] });
}

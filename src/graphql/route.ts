import type { FastifyBaseLogger, FastifyInstance, FastifyRequest } from 'fastify';
import type { GraphQLSchema } from 'graphql';
import { createYoga, type Plugin } from 'graphql-yoga';
import type { Admit } from '../admission/admission.ts';
import type { Viewer } from '../admission/viewer.ts';
import type { Answer, AnswerCache } from '../cache/answer-cache.ts';
import type { Config } from '../config.ts';
import { httpErrorFor } from '../database/errors.ts';
import type { StartTask, Waiter } from '../database/task.ts';
import { HttpError } from '../errors.ts';
import { entityTag, sendIfUnchanged } from '../http/etag.ts';
import type { Context } from './context.ts';
import { createErrorLog } from './error-log.ts';
import { badRequest, tooLarge, unsupportedType } from './errors.ts';
import { createGraphiQL } from './graphiql.ts';
import { HotQueries } from './hot-queries.ts';
import { createFaultFinder, useLimits } from './limits.ts';
import { type Outcome, useOutcome } from './outcome.ts';
import {
  type AnswerType,
  allow,
  chooseType,
  type GraphQLRequest,
  isRead,
  prefersPage,
  queryStringOf,
  readRequest,
} from './request.ts';

export interface GraphQLOptions {
  readonly schema: GraphQLSchema;
  readonly cache: AnswerCache;
  readonly admit: Admit;
  readonly createContext: (request: FastifyRequest, viewer: Viewer | undefined) => Context;
  readonly config: Pick<Config, 'graphiql' | 'graphqlIntrospection' | 'graphqlMaxCost'>;
  readonly startTask: StartTask;
}

const path = '/graphql';
const internalError = 'Internal server error.';

/** Serves GraphQL over HTTP, and GraphiQL to browsers, at `/graphql`. */
export async function serveGraphQL(app: FastifyInstance, options: GraphQLOptions): Promise<void> {
  const sendGraphiQL = createGraphiQL();
  const answer = answerRequests(app, options);

  // Bodies are read in request.ts, which knows the answer to the types that are not taken.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));

  app.setErrorHandler<Error & { statusCode?: number }>((error, request, reply) => {
    const refusal = error instanceof HttpError ? error : (asRefusal(error) ?? httpErrorFor(error));
    if (!refusal) {
      request.log.error({ err: error }, 'unexpected error');
      return reply.code(500).send({ errors: [{ message: internalError }] });
    }
    const { code, headers, message, status } = refusal;
    app.logHttpError(request.log, refusal);
    return reply
      .code(status)
      .headers(headers)
      .type(`${refusalType(refusal, request.headers.accept)}; charset=utf-8`)
      .send({ errors: [{ message, extensions: { code } }] });
  });

  app.route({
    method: app.supportedMethods,
    url: path,
    handler: async (request, reply) => {
      reply.header('Vary', 'Accept');
      const viewer = await options.admit(request);
      if (request.method === 'OPTIONS') return reply.code(204).header('Allow', allow).send();
      if (options.config.graphiql && isRead(request) && prefersPage(request.headers.accept)) {
        return sendGraphiQL(request, reply);
      }

      const context = options.createContext(request, viewer);
      const { status, contentType, body, tag } = await answer(
        request,
        readRequest(request),
        context,
        request,
      );
      if (status === 405) reply.header('Allow', 'POST');
      if (isRead(request) && status === 200) {
        if (sendIfUnchanged(request, reply, tag, context.isShareable)) return reply;
      }
      return reply.code(status).header('Content-Type', contentType).send(body);
    },
  });

  app.route({
    method: app.supportedMethods,
    url: `${path}/`,
    onRequest: async (request, reply) => {
      const query = queryStringOf(request);
      return reply.redirect(`${path}${query && `?${query}`}`, 308);
    },
    handler: () => {},
  });
}

/** What Fastify finds wrong with a body, in our own words. Undefined: it is nothing of the kind. */
function asRefusal({ statusCode = 500 }: { statusCode?: number }): HttpError | undefined {
  if (statusCode === 413) return tooLarge();
  if (statusCode === 415) return unsupportedType();
  if (statusCode < 500) return badRequest('The body is not as long as Content-Length says.');
  return undefined;
}

/**
 * Clients read the code of a refusal only in the type of GraphQL that they prefer: in JSON, a status
 * of 400 and more is a failure of the network to them. That is what the links of clients that send
 * again after 429 and 503 wait for, and those that send batches, as one error answers no batch.
 */
function refusalType({ code, status }: HttpError, accept: string | undefined): AnswerType {
  if (code === 'BAD_REQUEST' || status === 429 || status === 503) return 'application/json';
  return chooseType(accept) ?? 'application/json';
}

/** An answer as bytes. */
interface HttpAnswer extends Answer {
  readonly status: number;
  readonly contentType: string;
  readonly body: Buffer;
  readonly tag: string;
}

/** What yoga is given beside a request that has been read already. */
interface Asked {
  readonly asked: GraphQLRequest;
}

function answerRequests(
  app: FastifyInstance,
  { schema, cache, config, startTask }: GraphQLOptions,
) {
  const findFaults = createFaultFinder(schema, config);
  const errorLog = createErrorLog(app.log);
  const yoga = createYoga<Context & Asked & { outcome: Outcome; log: FastifyBaseLogger }>({
    schema,
    graphqlEndpoint: path,
    graphiql: false,
    landingPage: false,
    cors: false,
    // Queries that come again are compiled. A thousand documents of 1 MiB are too many to keep.
    parserAndValidationCache: false,
    // Or else NODE_ENV=development would show stack traces.
    maskedErrors: { errorMessage: internalError, isDev: false },
    plugins: [useRequest(), useLimits(findFaults, config), useOutcome(), errorLog.plugin],
    logging: {
      debug: () => {},
      info: () => {},
      warn: () => {},
      error: errorLog.log,
    },
  });

  const askYoga = async (
    request: FastifyRequest,
    asked: GraphQLRequest,
    context: Context,
    outcome: Outcome = {},
  ): Promise<HttpAnswer> => {
    const response = await yoga.fetch(
      `http://localhost${path}`,
      // HEAD is GET without the body, which Node leaves out by itself.
      { method: isRead(request) ? 'GET' : 'POST', headers: { accept: asked.answerType } },
      { ...context, asked, outcome, log: request.log },
    );
    if (outcome.refusal) throw outcome.refusal;
    const contentType = response.headers.get('content-type') ?? asked.answerType;
    const body = Buffer.from(await response.arrayBuffer());
    request.operationName = outcome.operationName;
    return answerOf(response.status, contentType, body, outcome.query !== undefined);
  };

  const hot = new HotQueries(schema, findFaults);

  return async (
    request: FastifyRequest,
    asked: GraphQLRequest,
    context: Context,
    waiter: Waiter,
  ): Promise<HttpAnswer> => {
    // Only what is known to be a query is answered from memory or together with others: of an
    // unknown document it is not known whether it is a mutation.
    const known = hot.get(asked.document);
    if (known) {
      request.operationName = known.operationName ?? undefined;
      const read = async () => {
        const result = await hot.execute(asked.document, asked.variables, context);
        if (result) return answerOf(200, result.contentType, result.body, true);
        return askYoga(request, asked, context);
      };
      // What a viewer alone sees is given to nobody else.
      return context.isShareable
        ? cache.get(asked.key, read, waiter)
        : startTask(read).wait(waiter);
    }
    const outcome: Outcome = {};
    const work = startTask(() => askYoga(request, asked, context, outcome));
    const answer = await work.wait(waiter);
    if (outcome.query) hot.note(asked.document, outcome.query, answer.contentType);
    return answer;
  };
}

/** Gives yoga what has been read of the request, instead of letting it read on its own terms. */
function useRequest(): Plugin<object, Asked> {
  return {
    onRequestParse({ serverContext, setRequestParser }) {
      const { query, operationName, variables } = serverContext.asked;
      setRequestParser(() => ({
        query,
        variables,
        ...(operationName === undefined ? {} : { operationName }),
      }));
    },
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

// The one Yoga: its list of plugins says how an operation is executed, whoever sends it.
import type { FastifyBaseLogger } from 'fastify';
import type { GraphQLSchema } from 'graphql';
import { createYoga } from 'graphql-yoga';
import { Operations } from './operations.ts';
import { type AnswerCacheOptions, useAnswerCache } from './plugins/answer-cache.ts';
import { useCompiledQueries } from './plugins/compiled-queries.ts';
import { type LimitConfig, useCost } from './plugins/cost.ts';
import { useDocumentLimits } from './plugins/document-limits.ts';
import { useLiveQueries } from './plugins/live-queries.ts';
import { maskError, useMaskedResults } from './plugins/masked-errors.ts';
import { type DocumentStore, useStoredDocuments } from './plugins/stored-documents.ts';
import { useTurns } from './plugins/turns.ts';
import type { OperationContext } from './run.ts';

export interface PipelineOptions extends AnswerCacheOptions {
  readonly schema: GraphQLSchema;
  readonly config: LimitConfig;
  readonly documents: DocumentStore;
  /** Whether WebSockets are on. */
  readonly hasSockets: boolean;
  readonly log: FastifyBaseLogger;
  /** Plugins of others: they see each operation that is executed; an answer that one of them changes is not cached. */
  readonly plugins?: readonly object[] | undefined;
}

export function createPipeline(options: PipelineOptions) {
  const { schema, config, documents, log, plugins = [] } = options;
  const operations = new Operations();
  const yoga = createYoga<OperationContext>({
    schema,
    maskedErrors: { maskError: (error) => maskError(error, log) },
    // A thousand documents of 1 MiB would be kept with their errors.
    parserAndValidationCache: { documentCache: operations, errorCache: noCache },
    plugins: [
      useStoredDocuments(documents),
      useDocumentLimits(schema, config),
      useCost(schema, config, operations),
      useCompiledQueries(operations),
      useMaskedResults(),
      // Behind it: the text of a result ends with the copy that has other errors.
      useTurns(operations),
      useAnswerCache(options),
      useLiveQueries(operations, options.hasSockets),
      ...plugins,
    ],
    // Fastify has these.
    ...{ cors: false, graphiql: false, landingPage: false, multipart: false },
    ...{ maxRequestBodySize: false, logging: false },
  });
  return { yoga, operations };
}

const noCache = { get: () => undefined, set: () => {} };

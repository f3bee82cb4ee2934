import { type GraphQLSchema, getOperationAST } from 'graphql';
import { type CompiledQuery, compileQuery, isCompiledQuery } from 'graphql-jit';
import type { Plugin } from 'graphql-yoga';
import { LRUCache } from 'lru-cache';
import { refusalFor } from '../database/refusals.ts';
import type { Refusal } from '../refusal.ts';
import type { Context } from './context.ts';
import type { FindFaults, Query } from './limits.ts';

/** What became of a request, for whoever sends the answer. */
export interface Outcome {
  /**
   * Set when the request was a query, valid and answered without an error: then the same request
   * gives the same answer.
   */
  query?: Query;
  /** Name of the operation that was executed. */
  operationName?: string | undefined;
  /** Set when the request as a whole is turned away, because the database is away, say. */
  refusal?: Refusal | undefined;
}

/** Notes the outcome of an execution in the context. */
export function useOutcome(): Plugin<{ outcome: Outcome }> {
  return {
    onExecute({ args: { document, operationName, contextValue } }) {
      const operation = getOperationAST(document, operationName);
      const isQuery = operation?.operation === 'query';
      contextValue.outcome.operationName = operation?.name?.value;
      return {
        onExecuteDone({ result, setResult }) {
          const failed = !('data' in result) || result.errors !== undefined;
          const refusal = 'errors' in result ? refusalIn(result.errors) : undefined;
          if (refusal) {
            contextValue.outcome.refusal = refusal;
            // Yoga would log what it masks, once per request.
            setResult({ data: null });
            return;
          }
          if (isQuery && !failed) {
            contextValue.outcome.query = { document, operationName: operation.name?.value };
          }
        },
      };
    },
  };
}

function refusalIn(errors: readonly unknown[] = []): Refusal | undefined {
  return errors.map(refusalFor).find((refusal) => refusal !== undefined);
}

/** Times that a query is interpreted before it is compiled, which takes as long as hundreds. */
const interpretedTimes = 3;

/** Most bytes that known queries may take, and how many bytes of theirs a character of text takes. */
const mostBytes = 67_108_864;
const bytesPerCharacter = 300;

interface HotQuery extends Query {
  readonly contentType: string;
  executions: number;
  compiled?: CompiledQuery | undefined;
}

/**
 * Queries that come again and again, executed with code compiled for them and without yoga's work
 * for requests that it knows nothing of. Keys must tell documents, operation names and accepted
 * types apart: two operations of one document are two queries.
 */
export class HotQueries {
  readonly #queries = new LRUCache<string, HotQuery>({
    maxSize: mostBytes,
    sizeCalculation: (_query, key) => bytesPerCharacter * key.length,
  });
  readonly #schema: GraphQLSchema;
  readonly #findFaults: FindFaults;

  constructor(schema: GraphQLSchema, findFaults: FindFaults) {
    this.#schema = schema;
    this.#findFaults = findFaults;
  }

  get(key: string): Query | undefined {
    return this.#queries.get(key);
  }

  /** @param contentType the type that yoga answered with */
  note(key: string, query: Query, contentType: string): void {
    this.#queries.set(key, { ...query, contentType, executions: 1 });
  }

  /**
   * @returns undefined when yoga must answer: the query is not hot yet, cannot be compiled, may not
   *   be executed with these variables, or gave an error, which yoga reports in its own form
   * @throws Refusal
   */
  async execute(
    key: string,
    variables: Record<string, unknown>,
    context: Context,
  ): Promise<{ contentType: string; body: Buffer } | undefined> {
    const query = this.#queries.get(key);
    if (!query) return undefined;
    query.executions++;
    if (query.executions <= interpretedTimes) return undefined;
    query.compiled ??= this.#compile(query);
    if (!query.compiled) return undefined;
    if (this.#findFaults(query, variables, context).length > 0) return undefined;
    const result = await query.compiled.query(undefined, context, variables);
    const refusal = refusalIn(result.errors);
    if (refusal) throw refusal;
    if (result.errors) return undefined;
    return { contentType: query.contentType, body: Buffer.from(JSON.stringify(result)) };
  }

  #compile({ document, operationName }: Query): CompiledQuery | undefined {
    const compiled = compileQuery(this.#schema, document, operationName ?? undefined);
    return isCompiledQuery(compiled) ? compiled : undefined;
  }
}

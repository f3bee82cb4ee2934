import type { GraphQLSchema } from 'graphql';
import { type CompiledQuery, compileQuery, isCompiledQuery } from 'graphql-jit';
import { LRUCache } from 'lru-cache';
import type { Context } from './context.ts';
import type { FindFaults, Query } from './limits.ts';
import { refusalIn } from './outcome.ts';

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
   * @throws HttpError
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

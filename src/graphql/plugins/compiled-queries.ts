// Executes by graphql-js, and repeated queries compiled, where graphql-jit answers as graphql-js does.
import { type ExecutionArgs, execute } from 'graphql';
import { httpErrorFor } from '../../database/errors.ts';
import type { Context } from '../context.ts';
import { type CompiledQuery, compileQuery } from '../engine/compiled-query.ts';
import type { Operation, Operations } from '../engine/operations.ts';
import type { OperationPlugin } from '../operation.ts';

/** Times that a query is interpreted before it is compiled, which takes as long as hundreds of executions. */
const interpretedTimes = 3;

export function useCompiledQueries(operations: Operations): OperationPlugin {
  /** The compiled query; null: it is interpreted. */
  const compile = (operation: Operation, { schema }: ExecutionArgs): CompiledQuery | null => {
    if (operation.compiled !== undefined) return operation.compiled;
    operation.executions += 1;
    if (operation.type !== 'query' || operation.executions <= interpretedTimes) return null;
    operation.compiled = compileQuery(schema, operation.document, operation.node);
    operations.updateSize(operation);
    return operation.compiled;
  };
  return {
    onExecute({ args: { document, operationName }, setExecuteFn }) {
      const operation = operations.of(document, operationName);
      if (!operation) return;
      setExecuteFn(async (args: ExecutionArgs) => {
        const compiled = compile(operation, args);
        if (!compiled) return execute(args);
        const result = await compiled.run(args.contextValue as Context, args.variableValues ?? {});
        // Errors are reported by graphql-js, whose messages clients know.
        return !result.errors || result.errors.some(httpErrorFor) ? result : execute(args);
      });
    },
  };
}

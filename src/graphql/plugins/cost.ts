// Refuses an operation whose variables do not fit their types, or with which it is too costly, before it is executed.
import type { GraphQLSchema } from 'graphql';
import { type LimitConfig, measure } from '../engine/limits.ts';
import type { Operations } from '../engine/operations.ts';
import type { OperationPlugin } from '../operation.ts';

export function useCost(
  schema: GraphQLSchema,
  config: LimitConfig,
  operations: Operations,
): OperationPlugin {
  return {
    onExecute({ args, context: { run }, setResultAndStopExecution }) {
      const operation = operations.of(args.document, args.operationName);
      // No limit applies to a document of this service itself.
      if (operation?.text === undefined) return;
      const { cost, errors } = measure(schema, config, operation, args.variableValues ?? {});
      run.cost = cost;
      if (errors.length > 0) setResultAndStopExecution({ errors });
    },
  };
}

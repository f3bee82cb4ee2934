// Names the operation, for the metrics, the log and traces.
import type { ExecutionArgs } from 'graphql';
import type { Operations } from '../operations.ts';
import type { OperationContext, OperationPlugin } from '../run.ts';

export function useMetrics(operations: Operations): OperationPlugin {
  const name = ({ args, context }: { args: ExecutionArgs; context: OperationContext }) => {
    context.run.operation = operations.of(args.document, args.operationName);
  };
  return { onExecute: name, onSubscribe: name };
}

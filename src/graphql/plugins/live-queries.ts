// A subscription is a live query: its answers are an async iterable, of which each reader takes the newest.
import type { ExecutionResult } from 'graphql';
import { subscriptionNeedsStream } from '../errors.ts';
import type { Operations } from '../operations.ts';
import type { OperationPlugin } from '../run.ts';

/** @param hasSockets whether WebSockets are on, which the error of a request for a single answer names */
export function useLiveQueries(operations: Operations, hasSockets: boolean): OperationPlugin {
  return {
    onSubscribe({ args, context: { run }, setSubscribeFn, setResultAndStopExecution }) {
      const { openLive } = run;
      const operation = operations.of(args.document, args.operationName);
      run.operation = operation;
      if (!operation || !openLive) {
        return setResultAndStopExecution({ errors: [subscriptionNeedsStream(hasSockets)] });
      }
      setSubscribeFn(async () => {
        // Its reader takes it from here: what Yoga wraps around it keeps the whole request, for each reader.
        run.answers = await openLive(operation, args.variableValues ?? {});
        return run.answers as AsyncIterable<ExecutionResult>;
      });
    },
  };
}

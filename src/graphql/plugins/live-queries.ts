// A subscription is a live query: whoever sends it brings the stream for its answers.
import type { Operations } from '../engine/operations.ts';
import { subscriptionNeedsStream } from '../errors.ts';
import type { OperationPlugin } from '../operation.ts';

/** @param hasSockets whether WebSockets are on, which the error of a request without a stream names */
export function useLiveQueries(operations: Operations, hasSockets: boolean): OperationPlugin {
  return {
    onSubscribe({ args, context: { run }, setSubscribeFn, setResultAndStopExecution }) {
      const operation = operations.of(args.document, args.operationName);
      const { subscribe } = run;
      if (!operation || !subscribe) {
        return setResultAndStopExecution({ errors: [subscriptionNeedsStream(hasSockets)] });
      }
      setSubscribeFn(async () => {
        await subscribe(operation, args.variableValues ?? {});
        return sentByStream();
      });
    },
  };
}

/** Each answer is encoded once for all of its readers, and sent by their streams. */
async function* sentByStream(): AsyncGenerator<never> {}

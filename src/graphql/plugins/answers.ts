// Takes the result of an operation: encoded once, whoever it is for. What was refused is answered as late as the rest.
import type { ExecutionResult } from 'graphql';
import { isAsyncIterable } from 'graphql-yoga';
import { currentTask, type StartTask } from '../../database/task.ts';
import type { OperationPlugin, Run } from '../operation.ts';

const json = new Headers({ 'content-type': 'application/json' });

/**
 * What Yoga reads of a request, whose method, type and length Fastify has judged. A complete `Request`, and a context that
 * Yoga isolates by a prototype of its own, took half as long again as executing the query.
 */
export class SentRequest {
  readonly method: string;
  readonly url: string;
  readonly headers = json;

  constructor(
    readonly run: Run,
    private readonly sent: { readonly method: string; readonly text: string },
  ) {
    this.method = sent.method;
    this.url = `http://localhost/graphql${sent.method === 'GET' ? `?${sent.text}` : ''}`;
  }

  async json(): Promise<unknown> {
    return JSON.parse(this.sent.text);
  }
}

export function useAnswers(startTask: StartTask): OperationPlugin {
  return {
    onRequest({ request, serverContext }) {
      if (request instanceof SentRequest) Object.assign(serverContext, { run: request.run });
    },
    async onExecutionResult({ result, context: { run } }) {
      if (!run.executed && result && !isAsyncIterable(result)) await delayRefusal(run, startTask);
    },
    onResultProcess({ result, serverContext: { run }, setResultProcessor }) {
      if (!isAsyncIterable(result)) run.take(result as ExecutionResult);
      // Fastify sends the answer, with its validators and codings.
      setResultProcessor((_result, { Response }) => new Response(null), '*/*');
    },
  };
}

/** Waits for a task that is marked as refused: so backpressure delays its end. */
export function delayRefusal({ caller }: Pick<Run, 'caller'>, startTask: StartTask): Promise<void> {
  const refuse = async () => {
    const task = currentTask();
    if (task) task.isRefused = true;
  };
  return startTask(refuse, caller.sender).wait(caller);
}

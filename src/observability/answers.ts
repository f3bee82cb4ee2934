// What is logged and counted of each answer: to a request, or to an operation of a WebSocket.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';

declare module 'fastify' {
  interface FastifyRequest {
    /** Name of the executed GraphQL operation; undefined: none was executed, or it is anonymous. */
    operationName: string | undefined;
    /** Milliseconds to the first byte of a stream, which stays open until its reader leaves. */
    streamedAfter: number | undefined;
    /** Pattern of a path that this gateway does not serve and has forwarded, such as `/api/users/:id/`. */
    forwardedPath?: string | undefined;
  }
}

export type Answered = Pick<
  FastifyRequest,
  'forwardedPath' | 'headers' | 'log' | 'method' | 'operationName' | 'url'
> & {
  readonly viewer?: { readonly userId: number } | undefined;
  readonly routeOptions: { readonly url?: string | undefined };
};

/** @param bytes of the body; undefined: it is streamed */
export type ObserveAnswer = (
  request: Answered,
  status: number,
  milliseconds: number,
  bytes?: number,
) => void;

/** Returns the function that observes what is no answer to a request. */
export function observeAnswers(
  app: FastifyInstance,
  observers: readonly (ObserveAnswer | undefined)[],
): ObserveAnswer {
  const observe: ObserveAnswer = (...answer) => {
    for (const one of observers) one?.(...answer);
  };
  app.decorateRequest('operationName', undefined);
  app.addHook('onResponse', (request, reply, done) => {
    const { streamedAfter = reply.elapsedTime } = request;
    observe(request, reply.statusCode, streamedAfter, bytesOf(request, reply));
    done();
  });
  return observe;
}

function bytesOf({ method }: FastifyRequest, reply: FastifyReply): number | undefined {
  const length = reply.getHeader('content-length');
  if (method === 'HEAD') return 0;
  return length === undefined ? undefined : Number(length);
}

import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { overloaded } from '../refusal.ts';

declare module 'fastify' {
  interface FastifyRequest {
    isWorkedOn: boolean;
  }
}

/** The requests that are worked on at a time. */
export interface Work {
  readonly underWay: number;
  /**
   * Begins the work on a request, unless it has begun. One with a body only learns whether there is
   * room: its work begins when the body is here.
   * @returns a promise only if there is too much work already: it rejects with Refusal 503
   */
  begin(request: FastifyRequest): Promise<never> | undefined;
}

/** Refusals per second that leave most of the time for work. */
const refusalRate = 2_500;
/** Milliseconds that a client waits at most to be refused. */
const longestWait = 1_000;

/**
 * Bounds the work under way: from the time when a request can be answered until its answer is
 * handed over, so that neither slow uploads nor slow readers take the place of others.
 * @param most requests worked on at a time
 */
export function boundWork(app: FastifyInstance, most: number): Work {
  let underWay = 0;
  let refused = 0;

  // Refused at once, clients that ask again at once would take all of the time: with 1,280 of them,
  // of which 128 were let in, an answer took 1,200 ms instead of 8. So the more there are, the
  // longer each waits.
  const refuse = async (): Promise<never> => {
    refused += 1;
    await sleep(Math.min((refused * 1000) / refusalRate, longestWait));
    refused -= 1;
    throw overloaded();
  };
  const start = (request: FastifyRequest) => {
    if (underWay >= most) return refuse();
    underWay += 1;
    request.isWorkedOn = true;
    return undefined;
  };

  app.decorateRequest('isWorkedOn', false);
  app.addHook('preHandler', (request, _reply, done) => {
    const refusal = hasBody(request) ? start(request) : undefined;
    if (refusal) refusal.catch(done);
    else done();
  });
  app.addHook('onSend', (request, _reply, _payload, done) => {
    if (request.isWorkedOn) {
      request.isWorkedOn = false;
      underWay -= 1;
    }
    done();
  });

  return {
    get underWay() {
      return underWay;
    },
    begin(request) {
      if (request.isWorkedOn) return undefined;
      if (!hasBody(request)) return start(request);
      return underWay >= most ? refuse() : undefined;
    },
  };
}

function hasBody({ method }: FastifyRequest): boolean {
  return method !== 'GET' && method !== 'HEAD' && method !== 'OPTIONS';
}

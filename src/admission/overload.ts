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
   * @throws Refusal 503 when there is too much already
   */
  begin(request: FastifyRequest): void;
}

/**
 * Bounds the work under way: from the time when a request can be answered until its answer is
 * handed over, so that neither slow uploads nor slow readers take the place of others.
 * @param most requests worked on at a time
 */
export function boundWork(app: FastifyInstance, most: number): Work {
  let underWay = 0;
  const start = (request: FastifyRequest) => {
    if (underWay >= most) throw overloaded();
    underWay += 1;
    request.isWorkedOn = true;
  };

  app.decorateRequest('isWorkedOn', false);
  app.addHook('preHandler', (request, _reply, done) => {
    if (!hasBody(request)) return done();
    try {
      start(request);
      done();
    } catch (error) {
      done(error as Error);
    }
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
      if (request.isWorkedOn) return;
      if (!hasBody(request)) start(request);
      else if (underWay >= most) throw overloaded();
    },
  };
}

function hasBody({ method }: FastifyRequest): boolean {
  return method !== 'GET' && method !== 'HEAD' && method !== 'OPTIONS';
}

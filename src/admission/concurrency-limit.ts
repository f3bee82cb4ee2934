import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { overloaded } from '../errors.ts';

declare module 'fastify' {
  interface FastifyRequest {
    hasSlot: boolean;
    /** Whether it was let in, and takes its slot when its body is here. */
    awaitsSlot: boolean;
  }
}

/** A slot is held by each request that is worked on. */
export interface ConcurrencyLimit {
  readonly taken: number;
  /** @returns a promise only if all slots are taken: it rejects with HttpError 503 */
  refuseExcess(): Promise<never> | undefined;
  /**
   * Takes a slot, now or when the body is here: the work begins then.
   * @returns a promise only if all slots are taken: it rejects with HttpError 503
   */
  take(request: FastifyRequest): Promise<never> | undefined;
}

/** Refusals per second that leave most of the time for work. */
const refusalRate = 1_500;
/** Milliseconds that a client waits at most to be refused. */
const maxWait = 500;

/**
 * Bounds the requests that are worked on: from when they can be answered until their answers are
 * handed over, so that neither slow uploads nor slow readers take the place of others.
 * @param max slots that there are
 */
export function createConcurrencyLimit(app: FastifyInstance, max: number): ConcurrencyLimit {
  let taken = 0;
  let refused = 0;

  // Refused at once, clients that ask again at once would take all of the time: with 1,280 of them,
  // of which 128 were let in, an answer took 1,200 ms instead of 8. So the more there are, the
  // longer each waits.
  const refuse = async (): Promise<never> => {
    refused += 1;
    await sleep(Math.min((refused * 1000) / refusalRate, maxWait));
    refused -= 1;
    throw overloaded();
  };
  const refuseExcess = () => (taken >= max ? refuse() : undefined);
  const give = (request: FastifyRequest) => {
    const refusal = refuseExcess();
    if (refusal) return refusal;
    taken += 1;
    request.hasSlot = true;
    return undefined;
  };

  app.decorateRequest('hasSlot', false);
  app.decorateRequest('awaitsSlot', false);
  app.addHook('preHandler', (request, _reply, done) => {
    const refusal = request.awaitsSlot ? give(request) : undefined;
    if (refusal) refusal.catch(done);
    else done();
  });
  app.addHook('onSend', (request, _reply, _payload, done) => {
    if (request.hasSlot) {
      request.hasSlot = false;
      taken -= 1;
    }
    done();
  });

  return {
    get taken() {
      return taken;
    },
    refuseExcess,
    take(request) {
      if (!isBodyComing(request)) return give(request);
      request.awaitsSlot = true;
      return undefined;
    },
  };
}

function isBodyComing({ body, method }: FastifyRequest): boolean {
  const mayHaveBody = method !== 'GET' && method !== 'HEAD' && method !== 'OPTIONS';
  return mayHaveBody && body === undefined;
}

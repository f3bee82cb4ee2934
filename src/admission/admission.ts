import type { FastifyRequest } from 'fastify';
import type { ReadViewer, Viewer } from '../identity/viewer.ts';
import type { Slots } from './overload.ts';

/**
 * Lets a request in and says who sends it; undefined without a token.
 * @throws Refusal 503 when the service is busy, 401 or 429, in this order
 */
export type Admit = (request: FastifyRequest) => Promise<Viewer | undefined>;

/** Makes the one door that REST and GraphQL requests come in by. */
export function createAdmission(slots: Pick<Slots, 'take'>, readViewer: ReadViewer): Admit {
  // Room comes first, since asking for it costs least.
  return (request) => slots.take(request) ?? readViewer(request.headers.authorization);
}

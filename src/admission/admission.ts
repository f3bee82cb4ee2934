import type { FastifyRequest } from 'fastify';
import type { ReadViewer, Viewer } from '../identity/viewer.ts';

/**
 * Lets a request in and says who sends it; undefined without a token.
 * @throws Refusal 401 or 429, in this order
 */
export type Admit = (request: FastifyRequest) => Promise<Viewer | undefined>;

/** Makes the one door that REST and GraphQL requests come in by. */
export function createAdmission(readViewer: ReadViewer): Admit {
  return ({ headers }) => readViewer(headers.authorization);
}

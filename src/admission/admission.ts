// The one door of REST and GraphQL: 401, 429.
import type { FastifyRequest } from 'fastify';
import { HttpError, invalidToken, notAuthenticated } from '../errors.ts';
import { isRepeated } from '../http/headers.ts';
import { senderOf } from './address.ts';
import type { CountRequest } from './rate-limit.ts';
import type { ReadViewer, Viewer } from './viewer.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Who sends it, once it has been let in; undefined: nobody in particular. */
    viewer: Viewer | undefined;
  }
}

/**
 * Lets a request in and says who sends it; undefined without a token, where none is needed.
 * @throws HttpError 401 or 429, in this order, but 429 for an invalid token whose address has used up
 *   its window; 503 when either cannot be known now
 */
export type Admit = (
  request: FastifyRequest,
  needsViewer?: boolean,
) => Promise<Viewer | undefined> | undefined;

/**
 * Makes the one door that REST and GraphQL requests come in by.
 * @param countRequest undefined: senders may send any number of requests
 */
export function createAdmission(
  readViewer: ReadViewer,
  countRequest: CountRequest | undefined,
): Admit {
  const count = (request: FastifyRequest, viewer: Viewer | undefined) =>
    countRequest?.(senderOf(viewer, request.ip));

  const identify = async (request: FastifyRequest) => {
    try {
      if (isRepeated(request, 'authorization')) throw invalidToken();
      return await readViewer(request.headers.authorization);
    } catch (error) {
      // An invalid token counts for its address. It is verified even when that window is used up, as a
      // valid one from the same address, a shared one perhaps, has the window of its viewer.
      if (error instanceof HttpError && error.status === 401) await count(request, undefined);
      throw error;
    }
  };

  const admit = async (request: FastifyRequest, needsViewer: boolean | undefined) => {
    const viewer = await identify(request);
    if (needsViewer && !viewer) throw notAuthenticated();
    await count(request, viewer);
    return viewer;
  };
  return (request, needsViewer) => {
    // Most requests have no token, and nothing to wait for.
    const isOpen = !countRequest && !needsViewer && request.headers.authorization === undefined;
    return isOpen ? undefined : admit(request, needsViewer);
  };
}

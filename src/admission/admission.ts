// The one door of REST and GraphQL: who asks, 401, 429; and whether anyone may write.
import type { FastifyBaseLogger, FastifyRequest } from 'fastify';
import { findOtherOwner, type WriteConfig } from '../config.ts';
import type { Caller } from '../database/task.ts';
import {
  HttpError,
  invalidToken,
  legacyOwnsWrites,
  notAuthenticated,
  writesOff,
} from '../errors.ts';
import { groupAddress } from '../http/client-address.ts';
import { isRepeated } from '../http/headers.ts';
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
      // It counts for its address. It is verified even when that window is used up: a valid one has its viewer's.
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

/**
 * All that the engine knows of a request that was let in. Signal and sender are made when read: answers from memory
 * need neither. A class: V8 keeps what an object literal with getters holds until a full garbage collection.
 */
export class Asker implements Caller {
  readonly viewer: Viewer | undefined;
  readonly idempotencyKey: string | undefined;
  readonly log: FastifyBaseLogger;
  /** Whether READ_MAX_STALENESS holds: a viewer reads all that has been written, through whichever gateway. */
  readonly mayBeOld: boolean;

  constructor(private readonly request: FastifyRequest) {
    this.viewer = request.viewer;
    this.idempotencyKey = request.headers['idempotency-key']?.toString();
    this.log = request.log;
    this.mayBeOld = request.viewer === undefined;
  }

  get signal(): AbortSignal {
    return this.request.signal;
  }

  get sender(): string {
    return senderOf(this.viewer, this.request.ip);
  }
}

function senderOf(viewer: Viewer | undefined, address: string): string {
  return viewer ? `user ${viewer.userId}` : `address ${groupAddress(address)}`;
}

/** @throws HttpError 503 while nobody may write, 403 while the old service owns the data */
export type GuardWrite = () => void;

export function createWriteGuard(config: WriteConfig): GuardWrite {
  const owner = findOtherOwner(config);
  return () => {
    if (owner === 'off') throw writesOff();
    if (owner === 'legacy') throw legacyOwnsWrites();
  };
}

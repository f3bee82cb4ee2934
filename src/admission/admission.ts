// Authentication and rate limit of every request, REST and GraphQL alike; and the switch for writes.
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
    /** The authenticated user, set once the request is admitted; undefined: anonymous. */
    viewer: Viewer | undefined;
  }
}

/**
 * Authenticates a request, then applies the rate limit. Undefined: an anonymous request that needs no token.
 * @throws HttpError 401 or 429, in this order, but 429 for an invalid token whose address is over its rate limit;
 *   503 when the keys or the database are unavailable
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
      // An invalid token counts for its address. Verified first: a valid token has the rate limit of its viewer.
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
    // Most requests have no token: they get no promise.
    const isOpen = !countRequest && !needsViewer && request.headers.authorization === undefined;
    return isOpen ? undefined : admit(request, needsViewer);
  };
}

/** What the engine needs of the sender of an operation. */
export interface OperationCaller extends Caller {
  readonly viewer: Viewer | undefined;
  readonly idempotencyKey: string | undefined;
  readonly log: FastifyBaseLogger;
  /** Whether a cached answer may be stale by READ_MAX_STALENESS. Not for a viewer, who reads their own writes. */
  readonly allowsStale?: boolean;
}

/**
 * The caller of an admitted request. Signal and sender are computed on first use: answers from memory need neither.
 * A class: V8 keeps what an object literal with getters holds until a full garbage collection.
 */
export class RequestCaller implements OperationCaller {
  readonly viewer: Viewer | undefined;
  readonly idempotencyKey: string | undefined;
  readonly log: FastifyBaseLogger;
  readonly allowsStale: boolean;

  constructor(private readonly request: FastifyRequest) {
    this.viewer = request.viewer;
    this.idempotencyKey = request.headers['idempotency-key']?.toString();
    this.log = request.log;
    this.allowsStale = request.viewer === undefined;
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

/** @throws HttpError 503 while writes are switched off, 403 while the old service owns the data */
export type GuardWrite = () => void;

export function createWriteGuard(config: WriteConfig): GuardWrite {
  const owner = findOtherOwner(config);
  return () => {
    if (owner === 'off') throw writesOff();
    if (owner === 'legacy') throw legacyOwnsWrites();
  };
}

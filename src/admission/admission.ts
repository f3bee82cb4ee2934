// Authentication and rate limit of every request, REST and GraphQL alike; and the switch for writes.

import { getHeapStatistics } from 'node:v8';
import type { FastifyBaseLogger, FastifyInstance, FastifyRequest } from 'fastify';
import { findOtherOwner, type WriteConfig } from '../config/config.ts';
import type { Caller } from '../database/task.ts';
import {
  crossOriginWrite,
  HttpError,
  legacyOwnsWrites,
  notAuthenticated,
  overloaded,
  writesOff,
} from '../errors.ts';
import { groupAddress } from '../http/headers.ts';
import { disconnectFor } from '../http/server/connections.ts';
import { sendContinue } from '../http/server/server.ts';
import type { Credentials, Identified } from './credentials.ts';
import type { CountRequest } from './rate-limit.ts';
import type { Viewer } from './viewer.ts';
import type { Charge } from './webhook.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The authenticated user, set once the request is admitted; undefined: anonymous. */
    viewer: Viewer | undefined;
    /** Memory that its body takes; undefined: it has none. Not in a WeakMap, which costs more than the rest of it. */
    bodyPlace: Place | undefined;
  }
}

/** What is admitted: a request, or an operation of a WebSocket with the headers of its handshake. */
export type Admissible = Identified & Pick<FastifyRequest, 'ip'>;

/**
 * Authenticates a request, then applies the rate limit, whose state the reply tells. Undefined: an anonymous request that needs no credential.
 * @throws HttpError 401 or 429, in this order. When the address is over its rate limit, 429 comes first: for an invalid
 *   token, and for a token that needs a request to AUTH_WEBHOOK_URL. 503 when keys, webhook or database are unavailable.
 */
export type Admit = (
  request: Admissible,
  reply: { headers: (values: Record<string, string>) => unknown },
  needsViewer?: boolean,
) => Promise<Viewer | undefined> | undefined;

export function createAdmission(
  credentials: Credentials,
  countRequest: CountRequest | undefined,
): Admit {
  /** A request counts once, for the first sender that is charged. */
  const createCharge = ({ ip }: Admissible, reply: Parameters<Admit>[1]): Charge => {
    let sender: string | undefined;
    return async (userId) => {
      if (sender === undefined) {
        sender = senderOf(userId, ip);
        if (countRequest) reply.headers(await countRequest(sender));
      }
      return sender;
    };
  };

  const authenticate = async (request: Admissible, charge: Charge) => {
    try {
      return await credentials.authenticate(request, charge);
    } catch (error) {
      // An invalid token counts for its address. Verified first: a valid token has the rate limit of its viewer.
      if (error instanceof HttpError && error.status === 401) await charge(undefined);
      throw error;
    }
  };

  const admit: Admit = async (request, reply, needsViewer) => {
    const charge = createCharge(request, reply);
    const viewer = await authenticate(request, charge);
    if (needsViewer && !viewer) throw notAuthenticated();
    await charge(viewer?.userId);
    return viewer;
  };
  return (request, reply, needsViewer) => {
    // Most requests have no credential: they get no promise.
    const isOpen = !countRequest && !needsViewer && !credentials.areIn(request);
    return isOpen ? undefined : admit(request, reply, needsViewer);
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

  constructor(
    private readonly request: Pick<FastifyRequest, 'headers' | 'ip' | 'log' | 'signal' | 'viewer'>,
  ) {
    this.viewer = request.viewer;
    this.idempotencyKey = request.headers['idempotency-key']?.toString();
    this.log = request.log;
    this.allowsStale = request.viewer === undefined;
  }

  get signal(): AbortSignal {
    return this.request.signal;
  }

  get sender(): string {
    return senderOf(this.viewer?.userId, this.request.ip);
  }
}

function senderOf(userId: number | undefined, address: string): string {
  return userId === undefined ? `address ${groupAddress(address)}` : `user ${userId}`;
}

/** Tables of the old service that are attached, and who writes them. */
export interface Attached {
  readonly writer: 'both' | 'old service' | undefined;
}

/**
 * @throws HttpError 503 while writes are switched off, 403 while the old service owns the data, and for a viewer whose
 *   cookie came from a page of another origin
 */
export type GuardWrite = (viewer?: Viewer) => void;

export function createWriteGuard(
  config: WriteConfig,
  attachment: Attached | undefined,
): GuardWrite {
  const owner = findOtherOwner(config);
  return (viewer) => {
    if (owner === 'off') throw writesOff();
    const writer = attachment?.writer;
    if (writer === 'old service' || (owner === 'legacy' && !writer)) throw legacyOwnsWrites();
    if (viewer?.mayWrite === false) throw crossOriginWrite();
  };
}

/** Bytes of memory for a byte of a body, once it is parsed: up to 16, for `[[],[]]`. */
const bytesPerByte = 16;

/** Bytes of a body that is not counted if it came with its head, which may have more: most operations have less. */
const tiny = 1_000;
/** Pieces of a body at most, and bytes of memory for each: a chunk may have one byte. */
const pieces = { most: 16_384, bytes: 400 };

/**
 * Sends `100 Continue` only to who is let in, and whose body is not too large. When bodies hold their share of the heap,
 * the newest request of the largest holder gets a 503.
 */
export function admitBodies(app: FastifyInstance): void {
  const places = new Places({ places: Number.POSITIVE_INFINITY, bytes: shareOfHeap() });
  app.decorateRequest('bodyPlace', undefined);
  app.addHook('preParsing', (request, reply, payload, done) => {
    const { raw, headers, routeOptions } = request;
    const length = Number(headers['content-length'] ?? 0);
    if (length <= (routeOptions.bodyLimit ?? 0)) sendContinue(reply.raw);
    done(null, payload);
    // Without a reader, it is not kept: that of a GET, or what was answered at once.
    if (payload.listenerCount('data') === 0) return;
    if (raw.complete && length > 0 && length <= tiny) return;
    const end = (refusal: Error) => {
      reply.header('Connection', 'close');
      // Fastify is reading it, or a task waits.
      if (payload.listenerCount('error') > 0) payload.emit('error', refusal);
      else disconnectFor(raw.socket, refusal);
    };
    const evict = () => end(Object.assign(overloaded(), { statusCode: 503 }));
    const place = places.take(senderOf(request.viewer?.userId, request.ip), 0, evict);
    if (!place) return;
    request.bodyPlace = place;
    reply.raw.on('close', place.release);
    let bytes = 0;
    let count = 0;
    payload.on('data', (piece: Buffer) => {
      bytes += piece.length;
      count += 1;
      place.hold(bytesPerByte * bytes + pieces.bytes * count);
      if (count === pieces.most) end(Object.assign(new Error(), { statusCode: 413 }));
    });
  });
  // A stream keeps less of its request, and counts that itself.
  app.addHook('onSend', (request, _reply, _payload, done) => {
    request.bodyPlace?.release();
    done();
  });
}

interface Limits {
  readonly places: number;
  readonly bytes: number;
}

/** What one connection or stream holds. */
export interface Place {
  readonly sender: string;
  /** Bytes that it holds from now on. When all are taken, the newest place of the largest holder ends: this one, maybe. */
  hold(bytes: number): void;
  /** Its client has named itself. */
  moveTo(sender: string): void;
  readonly release: () => void;
}

/** Bytes for each kind of what clients hold: 64 MB of a heap of 512. */
export const shareOfHeap = () => getHeapStatistics().heap_size_limit / 8;

interface Holder {
  readonly sender: string;
  newest: HeldPlace | undefined;
  places: number;
  bytes: number;
}

/**
 * In a list of its holder, whose links end with it: a Map or Set that changes with each request keeps what it had, requests
 * too, in memory until a full garbage collection.
 */
class HeldPlace implements Place {
  older: HeldPlace | undefined;
  newer: HeldPlace | undefined;
  /** Undefined: released. */
  holder: Holder | undefined;
  bytes = 0;

  constructor(
    private readonly places: Places,
    /** Ends it for another sender. */
    public end: () => void,
  ) {}

  get sender(): string {
    return this.holder?.sender ?? '';
  }

  hold(bytes: number): void {
    this.places.hold(this, bytes);
  }

  moveTo(sender: string): void {
    const { holder, bytes } = this;
    if (!holder || holder.sender === sender) return;
    this.places.remove(this);
    this.places.add(this, sender, bytes);
  }

  readonly release = (): void => {
    this.places.remove(this);
    this.end = () => {};
  };
}

/**
 * Any sender may use what is idle. When all places or bytes are taken, the newest place of the sender that holds the
 * most ends, so that another sender may come.
 */
export class Places {
  readonly #holders = new Map<string, Holder>();
  #places = 0;
  #bytes = 0;

  constructor(private readonly limits: Limits) {}

  get bytes(): number {
    return this.#bytes;
  }

  /**
   * @param end ends this place for another sender; it is released by then
   * @returns undefined: everything is taken, and nobody holds more than this sender would
   */
  take(sender: string, bytes: number, end: () => void): Place | undefined {
    const own = this.#holders.get(sender);
    while (this.#places >= this.limits.places) {
      if (!this.#endNewest(({ places }) => places, (own?.places ?? 0) + 1)) return;
    }
    while (this.#bytes + bytes > this.limits.bytes) {
      if (!this.#endNewest((holder) => holder.bytes, (own?.bytes ?? 0) + bytes)) return;
    }
    const place = new HeldPlace(this, end);
    this.add(place, sender, bytes);
    return place;
  }

  add(place: HeldPlace, sender: string, bytes: number): void {
    const holder = this.#holders.get(sender) ?? { sender, newest: undefined, places: 0, bytes: 0 };
    this.#holders.set(sender, holder);
    place.holder = holder;
    place.older = holder.newest;
    if (holder.newest) holder.newest.newer = place;
    holder.newest = place;
    holder.places += 1;
    this.#places += 1;
    this.#count(place, holder, bytes);
  }

  hold(place: HeldPlace, bytes: number): void {
    if (!place.holder || bytes === place.bytes) return;
    this.#count(place, place.holder, bytes);
    while (this.#bytes > this.limits.bytes && this.#endNewest((holder) => holder.bytes, 0));
  }

  remove(place: HeldPlace): void {
    const { holder, older, newer } = place;
    if (!holder) return;
    this.#count(place, holder, 0);
    if (older) older.newer = newer;
    if (newer) newer.older = older;
    else holder.newest = older;
    place.holder = undefined;
    place.older = undefined;
    place.newer = undefined;
    holder.places -= 1;
    this.#places -= 1;
    if (holder.places === 0) this.#holders.delete(holder.sender);
  }

  #count(place: HeldPlace, holder: Holder, bytes: number): void {
    holder.bytes += bytes - place.bytes;
    this.#bytes += bytes - place.bytes;
    place.bytes = bytes;
  }

  /** Ends the newest place of the sender that holds the most, if that is more than `least`. */
  #endNewest(sizeOf: (holder: Holder) => number, least: number): boolean {
    let largest: Holder | undefined;
    let most = least;
    for (const holder of this.#holders.values()) {
      if (sizeOf(holder) > most) {
        largest = holder;
        most = sizeOf(holder);
      }
    }
    const newest = largest?.newest;
    const end = newest?.end;
    newest?.release();
    end?.();
    return newest !== undefined;
  }
}

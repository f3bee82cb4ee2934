// Streams of events: heartbeats, backpressure, expiry of the token, limit of streams, shutdown. Knows no format.
import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { tooManyStreams, unavailable } from '../errors.ts';

declare module 'fastify' {
  interface FastifyRequest {
    streamedAfter: number | undefined;
    /** Takes the events instead of the response; resolves after the last one. */
    deliverEvents?: (events: EventStream | Buffer) => Promise<void>;
  }
}

/** Seconds of silence before a heartbeat is sent: half of the timeout of most proxies. */
const heartbeatAfter = 15;
const tickInterval = 1_000;

/** Labels of the metrics. */
const transports = ['sse', 'multipart', 'ws'] as const;
type Transport = (typeof transports)[number];

export interface StreamFormat {
  readonly contentType: string;
  readonly transport: Transport;
  /** Bytes before the first event. */
  readonly start: Buffer;
  readonly heartbeat: Buffer;
}

/** How long a stream may stay open. */
export interface Lease {
  /** Seconds since 1970; undefined: it never expires. */
  readonly expiresAt?: number | undefined;
  readonly renewal?: {
    /** Seconds from the first attempt to renew it on, in which renewing may fail. */
    readonly grace: number;
    /** Undefined: the lease is refused. @throws when that cannot be decided now */
    readonly renew: () => Promise<Lease | undefined>;
  };
}

/** One open stream. Under backpressure it keeps only the newest event: a slow reader skips the others. */
export class EventStream extends Readable {
  #newest: Buffer | undefined;
  #last: Buffer | undefined;
  #hasDemand = false;
  #isStarted = false;
  #isFinished = false;
  #silentTicks = 0;
  #lease: Lease;
  #isRenewing = false;
  /** Seconds since 1970, of the first attempt. */
  #renewingSince: number | undefined;

  /** @param onExpire last events of the stream, sent when its lease expires */
  constructor(
    readonly format: StreamFormat,
    lease: Lease,
    readonly onExpire: Buffer,
  ) {
    // 0: nothing is buffered, or an outdated event would be sent.
    super({ highWaterMark: 0 });
    this.#lease = lease;
  }

  /** Sends an event once the reader is ready, unless it equals the last one. */
  offer(event: Buffer): void {
    this.#newest = event;
    this.#flush();
  }

  /** What to send instead of `event`, which was read before: a newer one, if there is one. */
  newestOr(event: Buffer): Buffer {
    const newest = this.#isFinished ? undefined : this.#takeNewest();
    this.#last = newest ?? this.#last;
    return newest ?? event;
  }

  /** Ends the stream with these events. Without any, clients see a broken connection, and reconnect. */
  finish(events?: Buffer): void {
    if (this.#isFinished || this.destroyed) return;
    this.#isFinished = true;
    const newest = this.#takeNewest();
    if (newest && events) this.#push(newest);
    if (events) this.#push(events);
    this.push(null);
  }

  /** Ends the stream now; a reader that is not ready is disconnected. */
  abandon(): void {
    if (this.#hasDemand) this.finish();
    else this.destroy();
  }

  /** Call it once a second. @param now seconds since 1970 */
  tick(now: number): void {
    const { expiresAt = Number.POSITIVE_INFINITY, renewal } = this.#lease;
    if (expiresAt <= now) {
      if (!renewal) {
        this.finish(this.onExpire);
        return;
      }
      this.#renewingSince ??= now;
      if (now < this.#renewingSince + renewal.grace) this.#renew(renewal.renew);
      // Without events, clients reconnect, and get the error as the answer.
      else this.finish();
    }
    this.#keepAlive();
  }

  async #renew(renew: () => Promise<Lease | undefined>): Promise<void> {
    if (this.#isRenewing || this.#isFinished || this.destroyed) return;
    this.#isRenewing = true;
    try {
      const lease = await renew();
      this.#renewingSince = undefined;
      if (lease) this.#lease = lease;
      else this.finish(this.onExpire);
    } catch {
      // Retried by the next tick.
    } finally {
      this.#isRenewing = false;
    }
  }

  /** A slow reader gets no heartbeat: its connection times out. */
  #keepAlive(): void {
    this.#silentTicks += 1;
    if (this.#silentTicks < heartbeatAfter || !this.#hasDemand || this.#isFinished) return;
    this.#send(this.format.heartbeat);
  }

  override _read(): void {
    this.#hasDemand = true;
    this.#flush();
  }

  #flush(): void {
    if (!this.#hasDemand || this.#isFinished || this.destroyed) return;
    const newest = this.#takeNewest();
    if (!newest) return;
    this.#last = newest;
    this.#send(newest);
  }

  #send(bytes: Buffer): void {
    this.#hasDemand = false;
    this.#silentTicks = 0;
    this.#push(bytes);
  }

  #push(bytes: Buffer): void {
    const { start } = this.format;
    this.push(this.#isStarted || start.length === 0 ? bytes : Buffer.concat([start, bytes]));
    this.#isStarted = true;
  }

  /** The event that has not been sent; undefined when it equals the last one. */
  #takeNewest(): Buffer | undefined {
    const newest = this.#newest;
    this.#newest = undefined;
    const isRepeated = newest === this.#last || (newest && this.#last?.equals(newest));
    return isRepeated ? undefined : newest;
  }
}

export async function sendEvents(
  request: FastifyRequest,
  reply: FastifyReply,
  format: StreamFormat,
  events: EventStream | Buffer,
): Promise<FastifyReply> {
  if (request.deliverEvents) {
    request.streamedAfter = reply.elapsedTime;
    await request.deliverEvents(events);
    return reply.send('');
  }
  reply.headers(streamHeaders).header('Content-Type', format.contentType);
  if (!(events instanceof EventStream)) return reply.send(Buffer.concat([format.start, events]));
  request.streamedAfter = reply.elapsedTime;
  return reply.send(events);
}

const streamHeaders = {
  'Cache-Control': 'no-store, no-transform',
  // Turns off the buffer of nginx.
  'X-Accel-Buffering': 'no',
};

export class EventStreams {
  readonly #streams = new Set<EventStream>();
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;
  /** Opened since the start, by transport. */
  readonly opened = new Map(transports.map((transport) => [transport, 0]));

  constructor(private readonly max: number) {}

  /** Open now, by transport. */
  get open(): Map<Transport, number> {
    const open = new Map(transports.map((transport) => [transport, 0]));
    for (const { format } of this.#streams) increment(open, format.transport);
    return open;
  }

  /**
   * @param onExpire last events of the stream, sent when its lease expires
   * @throws HttpError 503 above the limit of streams, or during shutdown
   */
  add(format: StreamFormat, lease: Lease, onExpire: Buffer): EventStream {
    if (this.#isClosed) throw unavailable();
    if (this.#streams.size >= this.max) throw tooManyStreams(this.max);
    const stream = new EventStream(format, lease, onExpire);
    increment(this.opened, format.transport);
    this.#streams.add(stream);
    stream.once('close', () => {
      this.#streams.delete(stream);
      if (this.#streams.size > 0) return;
      clearInterval(this.#timer);
      this.#timer = undefined;
    });
    this.#timer ??= setInterval(() => this.#tick(), tickInterval);
    return stream;
  }

  /** Ends all streams, so that clients reconnect elsewhere, and refuses new ones. */
  close(): void {
    this.#isClosed = true;
    for (const stream of this.#streams) stream.abandon();
  }

  #tick(): void {
    const now = Date.now() / 1000;
    for (const stream of this.#streams) stream.tick(now);
  }
}

function increment(counts: Map<Transport, number>, key: Transport): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

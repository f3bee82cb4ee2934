// Streams of events: heartbeats, backpressure, expiry of the token, limit of streams, shutdown. Knows no format.
import { EventEmitter } from 'node:events';
import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { tooManyStreams, unavailable } from '../errors.ts';
import { Places, shareOfHeap } from './places.ts';

declare module 'fastify' {
  interface FastifyRequest {
    streamedAfter: number | undefined;
    /** Takes the events instead of the response; resolves after the last one. */
    deliverEvents?: (events: EventStream | Events) => Promise<void>;
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

/** Bytes of events, one after the other. */
export type Events = readonly Buffer[];

export interface StreamOptions {
  readonly sender: string;
  /** What it keeps of its request. */
  readonly bytes: number;
  readonly lease: Lease;
  /** Its last events when its lease expires, and when another sender needs its place. */
  readonly onExpire: Events;
  readonly onEvict: Events;
}

interface Event {
  readonly bytes: Buffer;
  readonly tag: string;
}

/** The events of one reader, at its pace: it keeps the newest one only, so a slow reader skips the others. */
export class EventStream extends EventEmitter<{ close: []; cut: [] }> {
  isClosed = false;
  #newest: Event | undefined;
  /** Of the last event that was taken. */
  #tag: string | undefined;
  /** Bytes that are being sent. */
  #sending = 0;
  #kept = 0;
  /** The last events; null: there are none. */
  #end: Events | null | undefined;
  /** The reader, while it waits. */
  #wake: ((hasBytes: boolean) => void) | undefined;
  #silentTicks = 0;
  #lease: Lease;
  #isRenewing = false;
  /** Seconds since 1970, of the first attempt. */
  #renewingSince: number | undefined;

  constructor(
    readonly format: StreamFormat,
    private readonly options: StreamOptions,
    private readonly place: { hold(bytes: number): void },
  ) {
    super();
    this.#lease = options.lease;
  }

  /**
   * Sends an event as soon as the reader is ready, unless it equals the last one.
   * @param tag equal for equal events
   * @param kept bytes that are kept for the next one
   */
  offer(bytes: Buffer, tag: string, kept: number): void {
    if (this.#end !== undefined) return;
    this.#kept = kept;
    this.#newest = tag === this.#tag ? undefined : { bytes, tag };
    this.#notify();
  }

  /** Ends the stream with these events. Without any, clients see a broken connection, and reconnect. */
  finish(events: Events | null = null): void {
    if (this.#end !== undefined) return;
    this.#end = events;
    if (!events) this.#newest = undefined;
    this.#notify();
  }

  /** Ends the stream now; a reader that is not ready is disconnected. */
  abandon(events?: Events): void {
    if (this.#wake) this.finish(events);
    else this.destroy();
  }

  /** Ends the stream now, in the middle of what is sent. */
  destroy(): void {
    if (this.isClosed) return;
    this.emit('cut');
    this.#close();
  }

  #close(): void {
    this.isClosed = true;
    this.#newest = undefined;
    this.#end = null;
    this.#wake?.(false);
    this.emit('close');
    this.removeAllListeners();
  }

  /** For its one reader: whether there is something to take, as soon as there is; false: the stream has ended. */
  async next(): Promise<boolean> {
    this.#sending = 0;
    this.#count();
    const isReady = this.#newest || this.#end !== undefined;
    const hasBytes = isReady ? this.#hasBytes : await this.#wait();
    if (!hasBytes) this.#close();
    return hasBytes;
  }

  /** The newest event, and the last ones behind it. */
  take(): Events {
    const newest = this.#newest;
    const last = this.#end ?? [];
    const taken = newest ? [newest.bytes, ...last] : last;
    this.#tag = newest?.tag ?? this.#tag;
    this.#newest = undefined;
    if (this.#end) this.#end = null;
    this.#silentTicks = 0;
    this.#sending = taken.reduce((sum, { length }) => sum + length, 0);
    this.#count();
    return taken.length > 0 ? taken : [this.format.heartbeat];
  }

  get #hasBytes(): boolean {
    return this.#newest !== undefined || Boolean(this.#end);
  }

  async #wait(): Promise<boolean> {
    const hasBytes = await new Promise<boolean>((settle) => {
      this.#wake = settle;
    });
    this.#wake = undefined;
    return hasBytes;
  }

  #notify(): void {
    this.#count();
    if (this.#hasBytes || this.#end === null) this.#wake?.(this.#hasBytes);
  }

  /** Counts what it holds. */
  #count(): void {
    const waiting = this.#newest?.bytes.length ?? 0;
    this.place.hold(this.options.bytes + this.#kept + this.#sending + waiting);
  }

  /** Call it once a second. @param now seconds since 1970 */
  tick(now: number): void {
    const { expiresAt = Number.POSITIVE_INFINITY, renewal } = this.#lease;
    if (expiresAt <= now) {
      if (!renewal) {
        this.finish(this.options.onExpire);
        return;
      }
      this.#renewingSince ??= now;
      if (now < this.#renewingSince + renewal.grace) void this.#renew(renewal.renew);
      // Without events, clients reconnect, and get the error as the answer.
      else this.finish();
    }
    // A slow reader gets no heartbeat: its connection times out.
    this.#silentTicks += 1;
    if (this.#silentTicks >= heartbeatAfter) this.#wake?.(true);
  }

  async #renew(renew: () => Promise<Lease | undefined>): Promise<void> {
    if (this.#isRenewing || this.#end !== undefined) return;
    this.#isRenewing = true;
    try {
      const lease = await renew();
      this.#renewingSince = undefined;
      if (lease) this.#lease = lease;
      else this.finish(this.options.onExpire);
    } catch {
      // Retried by the next tick.
    } finally {
      this.#isRenewing = false;
    }
  }
}

/** What the bytes of a stream are sent with. */
function toReadable(stream: EventStream): Readable {
  let start = stream.format.start;
  const readable = new Readable({
    // Nothing is buffered, or an outdated event would be sent.
    highWaterMark: 0,
    async read() {
      const events = (await stream.next()) && [start, ...stream.take()];
      start = Buffer.alloc(0);
      this.push(events ? Buffer.concat(events) : null);
    },
    destroy(error, done) {
      stream.destroy();
      done(error);
    },
  });
  stream.once('cut', () => readable.destroy());
  return readable;
}

export function sendEvents(
  request: FastifyRequest,
  reply: FastifyReply,
  format: StreamFormat,
  events: EventStream | Events,
): FastifyReply {
  if (request.deliverEvents) {
    request.streamedAfter = reply.elapsedTime;
    // Not awaited: what waits keeps the whole request.
    request.deliverEvents(events).finally(() => reply.send(''));
    return reply;
  }
  reply.headers(streamHeaders).header('Content-Type', format.contentType);
  if (!(events instanceof EventStream)) return reply.send(Buffer.concat([format.start, ...events]));
  request.streamedAfter = reply.elapsedTime;
  return reply.send(toReadable(events));
}

const streamHeaders = {
  'Cache-Control': 'no-store, no-transform',
  // Turns off the buffer of nginx.
  'X-Accel-Buffering': 'no',
};

export class EventStreams {
  readonly #streams = new Set<EventStream>();
  readonly #places: Places;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;
  /** Opened since the start, by transport. */
  readonly opened = new Map(transports.map((transport) => [transport, 0]));

  constructor(max: number) {
    this.#places = new Places({ places: max, bytes: shareOfHeap() });
  }

  /** Open now, by transport. */
  get open(): Map<Transport, number> {
    const open = new Map(transports.map((transport) => [transport, 0]));
    for (const { format } of this.#streams) increment(open, format.transport);
    return open;
  }

  /** @throws HttpError 503 while all places or bytes are taken, and during shutdown */
  add(format: StreamFormat, options: StreamOptions): EventStream {
    if (this.#isClosed) throw unavailable();
    const evict = () => stream.abandon(options.onEvict);
    const place = this.#places.take(options.sender, options.bytes, evict);
    if (!place) throw tooManyStreams();
    const stream = new EventStream(format, options, place);
    increment(this.opened, format.transport);
    this.#streams.add(stream);
    stream.once('close', () => {
      place.release();
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

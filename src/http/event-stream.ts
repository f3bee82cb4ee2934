// Server-sent events: heartbeats, the end of a token, how many streams there may be, how they end with the process.
import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { tooManyStreams, unavailable } from '../errors.ts';

declare module 'fastify' {
  interface FastifyRequest {
    streamedAfter: number | undefined;
  }
}

/** Seconds without an event after which a comment is sent: half of what most proxies wait. */
const heartbeat = 15;
const comment = Buffer.from(':\n\n');
const step = 1_000;

export function formatEvent(name: string, data: Buffer | string): Buffer {
  return Buffer.from(`event: ${name}\ndata: ${data}\n\n`);
}

/** One open stream. Of the events that could not be sent yet it keeps the newest: a slow reader skips the others. */
export class EventStream extends Readable {
  #newest: Buffer | undefined;
  #last: Buffer | undefined;
  #isWanted = false;
  #isFinished = false;
  #silentSteps = 0;

  /** @param onExpire the events that end it when the token ends, `expiresAt` seconds after 1970 */
  constructor(
    readonly expiresAt: number | undefined,
    readonly onExpire: Buffer,
  ) {
    // 0: nothing is read ahead, or else an event that has aged in a buffer would be sent.
    super({ highWaterMark: 0 });
  }

  /** Sends an event as soon as the reader takes it, unless it says the same as the last one. */
  offer(event: Buffer): void {
    this.#newest = event;
    this.#flush();
  }

  /** Ends it with these events. Without any, clients see a connection that broke, and connect again. */
  finish(events?: Buffer): void {
    if (this.#isFinished || this.destroyed) return;
    this.#isFinished = true;
    const newest = this.#takeNewest();
    if (newest && events) this.push(newest);
    if (events) this.push(events);
    this.push(null);
  }

  /** Ends it now; a reader that takes nothing is cut off. */
  abandon(): void {
    if (this.#isWanted) this.finish();
    else this.destroy();
  }

  /** To be called once a second. Nothing is sent to a reader that is slow: its connection times out. */
  keepAlive(): void {
    this.#silentSteps += 1;
    if (this.#silentSteps < heartbeat || !this.#isWanted || this.#isFinished) return;
    this.#send(comment);
  }

  override _read(): void {
    this.#isWanted = true;
    this.#flush();
  }

  #flush(): void {
    if (!this.#isWanted || this.#isFinished || this.destroyed) return;
    const newest = this.#takeNewest();
    if (!newest) return;
    this.#last = newest;
    this.#send(newest);
  }

  #send(bytes: Buffer): void {
    this.#isWanted = false;
    this.#silentSteps = 0;
    this.push(bytes);
  }

  /** What has not been sent; undefined when it would say again what the reader knows. */
  #takeNewest(): Buffer | undefined {
    const newest = this.#newest;
    this.#newest = undefined;
    const isKnown = newest === this.#last || (newest && this.#last?.equals(newest));
    return isKnown ? undefined : newest;
  }
}

export function sendEvents(
  request: FastifyRequest,
  reply: FastifyReply,
  events: EventStream | Buffer,
): FastifyReply {
  if (events instanceof EventStream) request.streamedAfter = reply.elapsedTime;
  return reply.headers(streamHeaders).send(events);
}

const streamHeaders = {
  'Content-Type': 'text/event-stream; charset=utf-8',
  'Cache-Control': 'no-store, no-transform',
  // nginx would collect events until a buffer is full.
  'X-Accel-Buffering': 'no',
};

export class EventStreams {
  readonly #streams = new Set<EventStream>();
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;
  opened = 0;

  constructor(private readonly max: number) {}

  get open(): number {
    return this.#streams.size;
  }

  /**
   * @param expiresAt seconds after 1970, when the events `onExpire` end it
   * @throws HttpError 503 when there are as many as there may be, or the process is about to end
   */
  add(expiresAt: number | undefined, onExpire: Buffer): EventStream {
    if (this.#isClosed) throw unavailable();
    if (this.#streams.size >= this.max) throw tooManyStreams(this.max);
    const stream = new EventStream(expiresAt, onExpire);
    this.opened += 1;
    this.#streams.add(stream);
    stream.once('close', () => {
      this.#streams.delete(stream);
      if (this.#streams.size > 0) return;
      clearInterval(this.#timer);
      this.#timer = undefined;
    });
    this.#timer ??= setInterval(() => this.#look(), step);
    return stream;
  }

  /** Ends all, so that clients connect again, elsewhere, and takes no more. */
  close(): void {
    this.#isClosed = true;
    for (const stream of this.#streams) stream.abandon();
  }

  #look(): void {
    const now = Date.now() / 1000;
    for (const stream of this.#streams) {
      if (stream.expiresAt !== undefined && stream.expiresAt <= now) stream.finish(stream.onExpire);
      else stream.keepAlive();
    }
  }
}

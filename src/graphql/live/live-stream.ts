// Live answers of one reader each: the newest one at its pace, as long as its credential is valid; and how many there are.

import { Places, shareOfHeap } from '../../admission/admission.ts';
import type { Lease } from '../../admission/viewer.ts';
import { HttpError, invalidToken, timedOut, tooManyStreams, unavailable } from '../../errors.ts';
import { entityTag } from '../../http/representation.ts';
import { type EncodedAnswer, refusalOf } from '../run.ts';

/** The token has expired: clients subscribe again with a new one. */
export const expired = refusalOf(
  new HttpError(401, invalidToken().code, 'The token has expired: ask again with a new one.'),
);
/** Another client needs its place. */
const evicted = refusalOf(tooManyStreams());

const tickInterval = 1_000;

/** Labels of the metrics. */
const transports = ['sse', 'multipart', 'ws'] as const;
export type Transport = (typeof transports)[number];

export interface StreamOptions {
  readonly transport: Transport;
  readonly sender: string;
  /** What it keeps of its request. */
  readonly bytes: number;
  /** How long it may stay open. */
  readonly lease: Lease;
}

/** It keeps the newest answer only, so a slow reader skips the others. Ends without a last one where it is cut. */
export class LiveStream implements AsyncIterableIterator<EncodedAnswer, undefined> {
  #newest: EncodedAnswer | undefined;
  /** Of the last answer that was taken. */
  #tag: string | undefined;
  /** Bytes that are being sent. */
  #sending = 0;
  #kept = 0;
  /** Follows the newest one. */
  #last: EncodedAnswer | undefined;
  #isEnding = false;
  #isClosed = false;
  /** The reader, while it waits. */
  #wake: (() => void) | undefined;
  #isRenewing = false;
  /** Seconds since 1970, of the first attempt. */
  #renewingSince: number | undefined;
  #lease: Lease;
  readonly #onClose: ((reason: HttpError, isCut: boolean) => void)[] = [];

  constructor(
    private readonly options: StreamOptions,
    private readonly place: { hold(bytes: number): void },
  ) {
    this.#lease = options.lease;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** Calls back when it has ended; `isCut`: in the middle of what is sent. */
  onClose(callback: (reason: HttpError, isCut: boolean) => void): void {
    this.#onClose.push(callback);
  }

  /**
   * For the reader as soon as it is ready, unless it equals the last one.
   * @param kept bytes that are kept for the next one
   */
  offer(answer: EncodedAnswer, kept = 0): void {
    if (this.#isEnding) return;
    this.#kept = kept;
    this.#newest = tagOf(answer) === this.#tag ? undefined : answer;
    // Behind variables that are invalid, say, nothing follows.
    this.#isEnding = answer.isRefusal;
    this.#notify();
  }

  /** Without a last answer, clients see a broken connection, and reconnect. */
  end(last?: EncodedAnswer): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    this.#last = last;
    if (!last) this.#newest = undefined;
    this.#notify();
  }

  /** Ends it now for that reason; a reader that is not ready is disconnected. */
  abandon(reason: HttpError, last?: EncodedAnswer): void {
    if (this.#wake) this.end(last);
    else this.destroy(reason);
  }

  /** Ends it now, in the middle of what is sent. */
  destroy(reason: HttpError = timedOut()): void {
    this.#close(reason, true);
  }

  #close(reason: HttpError, isCut: boolean): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#isEnding = true;
    this.#newest = undefined;
    this.#last = undefined;
    this.#wake?.();
    for (const callback of this.#onClose.splice(0)) callback(reason, isCut);
  }

  /** For its one reader, which has sent what it took before. */
  async next(): Promise<IteratorResult<EncodedAnswer, undefined>> {
    this.#sending = 0;
    this.#count();
    while (!this.#newest && !this.#isEnding) {
      await new Promise<void>((settle) => {
        this.#wake = settle;
      });
      this.#wake = undefined;
    }
    const value = this.#newest ?? this.#last;
    if (!value) {
      this.#close(timedOut(), false);
      return { done: true, value };
    }
    if (value === this.#last) this.#last = undefined;
    this.#newest = undefined;
    this.#tag = tagOf(value);
    this.#sending = value.body.length;
    this.#count();
    return { done: false, value };
  }

  async return(): Promise<IteratorResult<EncodedAnswer, undefined>> {
    this.destroy();
    return { done: true, value: undefined };
  }

  #notify(): void {
    this.#count();
    if (this.#newest || this.#isEnding) this.#wake?.();
  }

  /** Counts what it holds. */
  #count(): void {
    const waiting = this.#newest?.body.length ?? 0;
    this.place.hold(this.options.bytes + this.#kept + this.#sending + waiting);
  }

  /** Call it once a second. @param now seconds since 1970 */
  tick(now: number): void {
    const { expiresAt = Number.POSITIVE_INFINITY, renewal } = this.#lease;
    if (expiresAt > now) return;
    this.#renewingSince ??= now;
    if (!renewal) this.end(expired);
    else if (now < this.#renewingSince + renewal.grace) void this.#renew(renewal.renew);
    // Clients reconnect, and get the error as the answer.
    else this.end();
  }

  async #renew(renew: () => Promise<Lease | undefined>): Promise<void> {
    if (this.#isRenewing || this.#isEnding) return;
    this.#isRenewing = true;
    try {
      const lease = await renew();
      this.#renewingSince = undefined;
      if (lease) this.#lease = lease;
      else this.end(expired);
    } catch {
      // Retried by the next tick.
    } finally {
      this.#isRenewing = false;
    }
  }
}

/** Equal for equal answers. */
function tagOf(answer: EncodedAnswer): string {
  answer.tag ??= entityTag(answer.body);
  return answer.tag;
}

export class LiveStreams {
  readonly #streams = new Map<LiveStream, Transport>();
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
    for (const transport of this.#streams.values()) increment(open, transport);
    return open;
  }

  /** @throws HttpError 503 while all places or bytes are taken, and during shutdown */
  add(options: StreamOptions): LiveStream {
    if (this.#isClosed) throw unavailable();
    const evict = () => stream.abandon(tooManyStreams(), evicted);
    const place = this.#places.take(options.sender, options.bytes, evict);
    if (!place) throw tooManyStreams();
    const stream = new LiveStream(options, place);
    increment(this.opened, options.transport);
    this.#streams.set(stream, options.transport);
    stream.onClose(() => {
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
    for (const stream of this.#streams.keys()) stream.abandon(unavailable());
  }

  #tick(): void {
    const now = Date.now() / 1000;
    for (const stream of this.#streams.keys()) stream.tick(now);
  }
}

function increment(counts: Map<Transport, number>, key: Transport): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

// Live answers of one reader each: the newest one at its pace, as long as its credential is valid; and how many there are.

import { Places, shareOfHeap } from '../../admission/admission.ts';
import type { Lease, Viewer } from '../../admission/viewer.ts';
import { HttpError, invalidToken, timedOut, tooManyStreams, unavailable } from '../../errors.ts';
import { entityTag } from '../../http/representation.ts';
import { type EncodedAnswer, refusalOf } from '../run.ts';

/** The token has expired: clients subscribe again with a new one. */
export const expired = refusalOf(
  new HttpError(401, invalidToken().code, 'The token has expired: subscribe again with a new one.'),
);
/** Another client needs its place. */
const evicted = refusalOf(tooManyStreams());

const tickInterval = 1_000;

/** By transport, the label of the metrics. */
const noStreams = () => ({ sse: 0, ws: 0 });
export type Transport = keyof ReturnType<typeof noStreams>;

export interface StreamOptions {
  readonly transport: Transport;
  readonly sender: string;
  /** Whose lease says how long it may stay open. */
  readonly viewer: Viewer | undefined;
  /** What it keeps of its request. */
  readonly bytes: number;
}

/** It keeps the newest answer only, so a slow reader skips the others. Ends without a last one where it is cut. */
export class LiveStream implements AsyncIterableIterator<EncodedAnswer, undefined> {
  /** Resolved when something is there for the reader; rejected with why there will be nothing. */
  readonly begun: Promise<void>;
  /** Number of the first reading for it: one that began before it came may lack a commit that it must see. */
  firstReading = 0;
  #begin: () => void = () => {};
  #fail: (reason: unknown) => void = () => {};
  /** The newest answer, and the last one behind it. */
  #waiting: EncodedAnswer[] = [];
  /** Of the last answer that was taken. */
  #tag: string | undefined;
  /** Bytes that are being sent. */
  #sending = 0;
  #kept = 0;
  #isEnding = false;
  #isClosed = false;
  /** The reader, while it waits. */
  #wake: (() => void) | undefined;
  #isRenewing = false;
  /** Seconds since 1970, of the first attempt. */
  #renewingSince: number | undefined;
  #lease: Lease;
  readonly #onClose: ((isCut: boolean) => void)[] = [];

  constructor(
    readonly options: StreamOptions,
    private readonly place: { hold(bytes: number): void },
  ) {
    this.#lease = options.viewer ?? {};
    this.begun = new Promise((settle, reject) => {
      this.#begin = settle;
      this.#fail = reject;
    });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** Calls back when it has ended; `isCut`: in the middle of what is sent. */
  onClose(callback: (isCut: boolean) => void): void {
    this.#onClose.push(callback);
  }

  /**
   * For the reader as soon as it is ready, unless it equals the last one.
   * @param kept bytes that are kept for the next one
   */
  offer(answer: EncodedAnswer, kept = 0): void {
    if (this.#isEnding) return;
    this.#kept = kept;
    this.#waiting = tagOf(answer) === this.#tag ? [] : [answer];
    // Behind variables that are invalid, say, nothing follows.
    this.#isEnding = answer.isRefusal;
    this.#notify();
  }

  /** Of a reading: of one behind the first, its reader keeps the last answer, unless the answer has grown too large. */
  fail(error: unknown): void {
    if (this.#tag === undefined && this.#waiting.length === 0) this.destroy(error);
    else if (error instanceof HttpError && error.code === 'ANSWER_TOO_LARGE')
      this.end(refusalOf(error));
  }

  /** Without a last answer, clients see a broken connection, and reconnect. */
  end(last?: EncodedAnswer): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    this.#waiting = last ? [...this.#waiting, last] : [];
    this.#notify();
  }

  /** Ends it now for that reason; a reader that is not ready is disconnected. */
  abandon(reason: HttpError, last?: EncodedAnswer): void {
    if (this.#wake) this.end(last);
    else this.destroy(reason);
  }

  /** Ends it now, in the middle of what is sent. */
  destroy(reason: unknown = timedOut()): void {
    this.#close(reason, true);
  }

  #close(reason: unknown, isCut: boolean): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#isEnding = true;
    this.#waiting = [];
    this.#wake?.();
    this.#fail(reason);
    for (const callback of this.#onClose.splice(0)) callback(isCut);
  }

  /** For its one reader, which has sent what it took before. */
  async next(): Promise<IteratorResult<EncodedAnswer, undefined>> {
    this.#sending = 0;
    this.#count();
    while (this.#waiting.length === 0 && !this.#isEnding) {
      await new Promise<void>((settle) => {
        this.#wake = settle;
      });
      this.#wake = undefined;
    }
    const value = this.#waiting.shift();
    if (!value) {
      this.#close(timedOut(), false);
      return { done: true, value };
    }
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
    this.#begin();
    this.#count();
    if (this.#waiting.length > 0 || this.#isEnding) this.#wake?.();
  }

  /** Counts what it holds. */
  #count(): void {
    const waiting = this.#waiting[0]?.body.length ?? 0;
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
  readonly #streams = new Set<LiveStream>();
  readonly #places: Places;
  readonly #timer = setInterval(() => this.#tick(), tickInterval).unref();
  #isClosed = false;
  /** Opened since the start, by transport. */
  readonly opened = noStreams();

  constructor(max: number) {
    this.#places = new Places({ places: max, bytes: shareOfHeap() });
  }

  /** Open now, by transport. */
  get open(): Record<Transport, number> {
    const open = noStreams();
    for (const { options } of this.#streams) open[options.transport] += 1;
    return open;
  }

  /** @throws HttpError 503 while all places or bytes are taken, and during shutdown */
  add(options: StreamOptions): LiveStream {
    if (this.#isClosed) throw unavailable();
    const evict = () => stream.abandon(tooManyStreams(), evicted);
    const place = this.#places.take(options.sender, options.bytes, evict);
    if (!place) throw tooManyStreams();
    const stream = new LiveStream(options, place);
    this.opened[options.transport] += 1;
    this.#streams.add(stream);
    stream.onClose(() => {
      place.release();
      this.#streams.delete(stream);
    });
    return stream;
  }

  /** Ends all streams, so that clients reconnect elsewhere, and refuses new ones. */
  close(): void {
    this.#isClosed = true;
    clearInterval(this.#timer);
    for (const stream of this.#streams) stream.abandon(unavailable());
  }

  #tick(): void {
    const now = Date.now() / 1000;
    for (const stream of this.#streams) stream.tick(now);
  }
}

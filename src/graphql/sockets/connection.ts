// One WebSocket connection: the protocol graphql-transport-ws, its limits, and backpressure in both directions.
// @see https://github.com/enisdenjo/graphql-ws/blob/master/PROTOCOL.md
import type { IncomingHttpHeaders } from 'node:http';
import { CloseCode, MessageType, validateMessage } from 'graphql-ws';
import type { WebSocket } from 'ws';
import type { EventStream, Events } from '../../http/event-stream.ts';
import { readJson } from '../../http/json.ts';
import type { Place } from '../../http/places.ts';
import { expiredMessage, socketMessages } from '../live/formats.ts';
import { readParameters } from './parameters.ts';

/** Milliseconds: to `connection_init`, without a frame, then a ping is sent; without one at all; without an operation. */
const timeouts = { init: 10_000, ping: 10_000, silence: 45_000, idle: 300_000 };
/** Milliseconds that a frame of a client takes, and each 16 KiB of it: 50 a second, and 200 at once. */
const pace = { frame: 20, bytes: 16_384, burst: 4_000 };
/** Messages that may wait for a client to read, before the client is read no more. */
const maxWaiting = 64;
const maxIdLength = 128;
/** @see https://www.iana.org/assignments/websocket/websocket.xml#close-code-number */
const closeCodes = { goingAway: 1001, serviceRestart: 1012, tryAgainLater: 1013 };

/** A request with the headers of `connection_init`: of an operation, whose answer is delivered to it, or of none. */
export type Ask = (
  headers: IncomingHttpHeaders,
  operation?: SocketOperation,
) => Promise<{ readonly statusCode: number; readonly body: string }>;

export class SocketConnection {
  readonly #operations = new Map<string, SocketOperation>();
  /** Of `connection_init`. */
  #headers: IncomingHttpHeaders | undefined;
  #isAcknowledged = false;
  #isDraining = false;
  /** One message at a time: those behind it are written when it has been sent, from the newest state. */
  #sending = Promise.resolve();
  #waiting = 0;
  /** Until when the frames of the client have taken its time, at its pace (a token bucket). */
  #takenUntil = 0;
  #throttle: NodeJS.Timeout | undefined;
  #lastFrame = performance.now();
  #lastUse = performance.now();
  /** Bytes of a message that has not arrived completely, and of the messages of operations. */
  #arriving = 0;
  #operating = 0;

  /** @param kept bytes that it keeps of its handshake */
  constructor(
    private readonly socket: WebSocket,
    private readonly ask: Ask,
    private readonly onFailure: (error: unknown) => void,
    private readonly place: Pick<Place, 'hold'>,
    private kept: number,
  ) {
    socket.on('message', (data: Buffer) => {
      this.#onFrame(data);
      if (socket.readyState === socket.OPEN) this.#receive(data).catch(this.#fail);
    });
    socket.on('ping', (data) => {
      this.#onFrame(data);
      // Pongs would pile up for a client that does not read.
      if (socket.bufferedAmount === 0) socket.pong(data);
    });
    socket.on('pong', (data) => this.#onFrame(data));
    socket.on('error', () => {});
    socket.once('close', () => {
      clearTimeout(this.#throttle);
      for (const operation of this.#operations.values()) operation.end();
    });
  }

  close(code: CloseCode | number): void {
    this.socket.close(code, CloseCode[code]);
  }

  /** Ends for another client. */
  makeRoom(): void {
    this.close(closeCodes.tryAgainLater);
  }

  onBytes(length: number): void {
    this.#arriving += length;
    this.#count(0);
  }

  #count(change: number): void {
    this.#operating += change;
    this.place.hold(this.kept + this.#arriving + this.#operating);
  }

  /** Takes no more operations, and closes after the last one. */
  drain(): void {
    this.#isDraining = true;
    if (this.#operations.size > 0) return;
    void this.#sending.then(() => this.close(closeCodes.serviceRestart));
  }

  /** Call it every few seconds. */
  tick(): void {
    const now = performance.now();
    if (this.#operations.size > 0) this.#lastUse = now;
    const unused = now - this.#lastUse;
    // Nothing is heard of a client while it is throttled.
    const silent = now - Math.max(this.#lastFrame, this.#takenUntil);
    if (!this.#headers && unused > timeouts.init) {
      this.close(CloseCode.ConnectionInitialisationTimeout);
    } else if (silent > timeouts.silence) this.socket.terminate();
    else if (unused > timeouts.idle) this.close(closeCodes.goingAway);
    else if (silent > timeouts.ping) this.socket.ping();
  }

  /** @param messages gives them, once all before have been sent */
  send(messages: () => readonly (Buffer | string)[]): Promise<void> {
    this.#waiting += 1;
    this.#regulate();
    const write = async () => {
      // An error closes the connection.
      for (const message of messages()) {
        await new Promise((settle) => this.socket.send(message, { binary: false }, settle));
      }
      this.#waiting -= 1;
      this.#regulate();
    };
    this.#sending = this.#sending.then(write).catch(this.#fail);
    return this.#sending;
  }

  #onFrame({ length }: Buffer): void {
    this.#lastFrame = performance.now();
    this.#arriving = 0;
    const free = Math.max(this.#takenUntil, this.#lastFrame - pace.burst);
    this.#takenUntil = free + pace.frame * (1 + length / pace.bytes);
    this.#regulate();
  }

  /** Backpressure: a client that sends too fast, or does not read, is not read. */
  #regulate(): void {
    const { socket } = this;
    const now = performance.now();
    clearTimeout(this.#throttle);
    if (this.#takenUntil > now) {
      socket.pause();
      this.#throttle = setTimeout(() => this.#regulate(), this.#takenUntil - now);
    } else if (this.#waiting > maxWaiting) socket.pause();
    else socket.resume();
  }

  /** What a message fails with by a mistake of ours ends its connection, and nothing else. */
  readonly #fail = (error: unknown): void => {
    this.onFailure(error);
    this.close(CloseCode.InternalServerError);
  };

  async #receive(data: Buffer): Promise<void> {
    const message = readMessage(data);
    if (message?.type === MessageType.ConnectionInit) return this.#initialise(message.payload);
    if (message?.type === MessageType.Subscribe && message.id.length <= maxIdLength) {
      return this.#subscribe(message.id, message.payload, data.length);
    }
    if (message?.type === MessageType.Ping) return this.send(() => ['{"type":"pong"}']);
    if (message?.type === MessageType.Complete) this.#operations.get(message.id)?.end();
    else if (message?.type !== MessageType.Pong) this.close(CloseCode.BadRequest);
  }

  async #initialise(payload: unknown): Promise<void> {
    if (this.#headers) return this.close(CloseCode.TooManyInitialisationRequests);
    const headers = readParameters(payload);
    if (!headers) return this.close(CloseCode.BadRequest);
    this.#headers = headers;
    this.kept += JSON.stringify(headers).length;
    // The credentials of the handshake have been judged.
    const hasMore = Object.keys(headers).length > 0;
    const { statusCode } = hasMore ? await this.ask(headers) : { statusCode: 204 };
    this.#isAcknowledged = statusCode < 400;
    if (this.#isAcknowledged) return this.send(() => ['{"type":"connection_ack"}']);
    this.#closeFor(statusCode);
  }

  #closeFor(statusCode: number): void {
    // Clients connect again: with a new token, or later.
    this.close(statusCode === 401 ? CloseCode.Forbidden : closeCodes.tryAgainLater);
  }

  async #subscribe(id: string, payload: object, bytes: number): Promise<void> {
    if (!this.#isAcknowledged) return this.close(CloseCode.Unauthorized);
    if (this.#operations.has(id)) return this.close(CloseCode.SubscriberAlreadyExists);
    if (this.#isDraining) return;
    const operation = new SocketOperation(this, id, payload, bytes);
    this.#operations.set(id, operation);
    this.#count(bytes);
    return this.#run(operation);
  }

  /** Without the message, which would be kept as long as the operation. */
  async #run(operation: SocketOperation): Promise<void> {
    const { statusCode, body } = await this.ask(this.#headers ?? {}, operation);
    if (operation.hasEnded) return;
    // The credential of a connection is fixed. Without a body, it could not be verified again, say.
    if (statusCode === 401 || body === '') this.#closeFor(statusCode);
    else await operation.deliver([socketMessages.formatRefusal(Buffer.from(body))]);
  }

  remove(id: string, bytes: number): void {
    this.#operations.delete(id);
    this.#count(-bytes);
    if (this.#isDraining) this.drain();
  }
}

/** Undefined for what is no message of the protocol. */
function readMessage(data: Buffer) {
  try {
    const message = readJson(String(data), 'The message') as { type?: unknown; payload?: unknown };
    const { type, payload } = message;
    // Clients of stored documents have no text.
    if (type === MessageType.Subscribe && isObject(payload)) payload['query'] ??= '';
    return validateMessage(message);
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/** An operation from `subscribe` to `complete`, which both sides may send, or `error`. */
export class SocketOperation {
  hasEnded = false;
  /** Ends its request. */
  leave = () => {};

  constructor(
    private readonly connection: SocketConnection,
    private readonly id: string,
    private payload: object | undefined,
    private readonly bytes: number,
  ) {}

  /** The parameters of its request, which alone keeps them. */
  takePayload(): object | undefined {
    const { payload } = this;
    this.payload = undefined;
    return payload;
  }

  end(): void {
    if (this.hasEnded) return;
    this.hasEnded = true;
    this.connection.remove(this.id, this.bytes);
    this.leave();
  }

  /** Sends events in the format `socketMessages`, until they end. */
  async deliver(events: EventStream | Events): Promise<void> {
    if (!('next' in events)) return this.connection.send(() => this.#messagesIn(events));
    if (this.hasEnded) events.destroy();
    while (await events.next()) await this.connection.send(() => this.#messagesIn(events.take()));
  }

  #messagesIn(events: Events): Buffer[] {
    const messages: Buffer[] = [];
    for (const event of events) {
      if (event.length === 0 || this.hasEnded) continue;
      if (!event.toString('latin1', 0, 13).endsWith('next"')) this.end();
      if (event === expiredMessage) this.connection.close(CloseCode.Forbidden);
      else messages.push(Buffer.concat([Buffer.from(`{"id":${JSON.stringify(this.id)},`), event]));
    }
    return messages;
  }
}

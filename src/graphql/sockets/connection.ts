// One WebSocket connection: what graphql-ws needs of it, the limits of a client, and backpressure in both directions.
import type { IncomingHttpHeaders } from 'node:http';
import { type ExecutionArgs, parse } from 'graphql';
import { CloseCode, type Context, MessageType, makeServer } from 'graphql-ws';
import type { GraphQLParams } from 'graphql-yoga';
import type { WebSocket } from 'ws';
import { z } from 'zod';
import type { Place } from '../../admission/admission.ts';
import type { HttpError } from '../../errors.ts';
import { isObject, readJson } from '../../http/representation.ts';
import { expired, LiveStream } from '../live/live-stream.ts';
import type { EncodedAnswer } from '../run.ts';

/** Milliseconds: to `connection_init`, without a frame, then a ping is sent; without one at all; without an operation. */
const timeouts = { init: 10_000, ping: 10_000, silence: 45_000, idle: 300_000 };
/** Milliseconds that a frame of a client takes, and each 16 KiB of it: 50 a second, and 200 at once. */
const pace = { frame: 20, bytes: 16_384, burst: 4_000 };
/** Messages that may wait for a client to read, before the client is read no more. */
const maxWaiting = 64;
const maxIdLength = 128;
/** @see https://www.iana.org/assignments/websocket/websocket.xml#close-code-number */
export const closeCodes = { goingAway: 1001, serviceRestart: 1012, tryAgainLater: 1013 };

/** Those to a live query, or the single one to another operation. */
export type Answers = LiveStream | EncodedAnswer;

/** What a connection asks of the gateway. */
export interface Endpoint {
  /** @param parameters of `connection_init` @throws HttpError */
  connect(parameters: IncomingHttpHeaders): Promise<void>;
  /** @param text names everything that the answer depends on @throws HttpError 401 */
  answer(params: GraphQLParams, text: string, signal: AbortSignal): Promise<Answers>;
  fail(error: unknown): void;
  /** Waits for the turn of its sender, for a message of so many bytes; undefined: go on now. */
  takeTurn(bytes: number): Promise<void> | undefined;
}

/** What an operation is refused for: `error` instead of `next`. */
class Refusal extends Error {
  constructor(readonly answer: EncodedAnswer) {
    super();
  }
}

/** graphql-ws executes by the type of a document. Here the endpoint executes it, and all are answers to be sent. */
const document = parse('subscription { answers }');

/** The protocol. @see https://github.com/enisdenjo/graphql-ws/blob/master/PROTOCOL.md */
const protocol = makeServer<Record<string, unknown>, SocketConnection>({
  connectionInitWaitTimeout: timeouts.init,
  onConnect: (context) => context.extra.connect(context),
  onSubscribe: (context, id, payload) => {
    const contextValue = context.extra.answer(context, id, payload);
    return { document, contextValue } as unknown as ExecutionArgs;
  },
  subscribe: (({ contextValue }: { contextValue: unknown }) => contextValue) as never,
  onNext: ({ extra }, _id, _payload, _args, answer) => extra.payloadOf(answer),
  onError: (_context, _id, _payload, [error]) =>
    error?.originalError instanceof Refusal
      ? JSON.parse(String(error.originalError.answer.body)).errors
      : undefined,
});

type SocketContext = Context<Record<string, unknown>, SocketConnection>;

interface SocketOperation {
  /** Its client waits for it no more. */
  readonly leave: AbortController;
  /** Its message, until it was executed. */
  text: string;
  ended: Promise<void>;
}

const fromClients: readonly unknown[] = [
  ...[MessageType.ConnectionInit, MessageType.Ping, MessageType.Pong],
  ...[MessageType.Subscribe, MessageType.Complete],
];

export class SocketConnection {
  readonly protocol: string;
  readonly #operations = new Map<string, SocketOperation>();
  #handle: (message: string) => Promise<void> = async () => {};
  #isDraining = false;
  /** Of the answer whose message is written next. */
  #body: Buffer | undefined;
  /** One message at a time: those behind it wait. */
  #sending = Promise.resolve();
  /** While messages wait for their turn: those behind them wait, too. */
  #receiving: Promise<void> | undefined;
  #waiting = 0;
  /** Until when the frames of the client have taken its time, at its pace (a token bucket). */
  #takenUntil = 0;
  #throttle: NodeJS.Timeout | undefined;
  #lastFrame = performance.now();
  #lastUse = performance.now();
  /** Bytes of a message that has not arrived completely; of those that wait for their turn, and of the messages of operations. */
  #arriving = 0;
  #operating = 0;

  /** @param kept bytes that it keeps of its handshake */
  constructor(
    private readonly socket: WebSocket,
    private readonly endpoint: Endpoint,
    private readonly place: Pick<Place, 'hold'>,
    private kept: number,
  ) {
    this.protocol = socket.protocol;
    const close = protocol.opened(this, this);
    socket.on('message', (data: Buffer) => {
      this.#onFrame(data);
      const receive = () => {
        if (socket.readyState === socket.OPEN) this.#receive(data);
      };
      const takeTurn = () => this.endpoint.takeTurn(data.length);
      const turn = this.#receiving ? this.#receiving.then(takeTurn) : takeTurn();
      // At once: a client may close behind its last message.
      if (!turn) return receive();
      this.#count(data.length);
      const receiving = turn
        .then(() => {
          this.#count(-data.length);
          if (this.#receiving === receiving) this.#receiving = undefined;
          receive();
        })
        .catch(this.#fail);
      this.#receiving = receiving;
    });
    socket.on('ping', (data) => {
      this.#onFrame(data);
      // Pongs would pile up for a client that does not read.
      if (socket.bufferedAmount === 0) socket.pong(data);
    });
    socket.on('pong', (data) => this.#onFrame(data));
    socket.on('error', () => {});
    socket.once('close', (code, reason) => {
      clearTimeout(this.#throttle);
      for (const { leave } of this.#operations.values()) leave.abort();
      close(code, String(reason)).catch(this.#fail);
    });
  }

  close(code = 1000, reason = CloseCode[code]): void {
    this.socket.close(code, reason);
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
    // Nothing is heard of a client while it is throttled.
    const silent = now - Math.max(this.#lastFrame, this.#takenUntil);
    if (silent > timeouts.silence) this.socket.terminate();
    else if (now - this.#lastUse > timeouts.idle) this.close(closeCodes.goingAway);
    else if (silent > timeouts.ping) this.socket.ping();
  }

  onMessage(handle: (message: string) => Promise<void>): void {
    this.#handle = handle;
  }

  /** Without the payload of the ping, which may be large. */
  onPing(): Promise<void> {
    return this.send('{"type":"pong"}');
  }

  /** Sends a message of graphql-ws, with the bytes of an answer in their place. */
  send(message: string): Promise<void> {
    const body = this.#body;
    this.#body = undefined;
    this.#waiting += 1;
    this.#regulate();
    const write = () =>
      new Promise<void>((settle) => {
        const bytes = body ? insert(message, body) : message;
        // An error closes the connection.
        this.socket.send(bytes, { binary: false }, () => settle());
      });
    this.#sending = this.#sending.then(write).then(() => {
      this.#waiting -= 1;
      this.#regulate();
    });
    return this.#sending;
  }

  /** An answer is encoded once for all who read it: graphql-ws writes null, and `send` its bytes. */
  payloadOf(answer: unknown): object {
    const toJSON = () => {
      this.#body = (answer as EncodedAnswer).body;
      return null;
    };
    return { toJSON };
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
    this.endpoint.fail(error);
    this.close(CloseCode.InternalServerError);
  };

  #receive(data: Buffer): void {
    const text = String(data);
    const message = readMessage(text);
    const { type, id } = message ?? {};
    const named = typeof id === 'string' ? id : '';
    if (!message || !fromClients.includes(type)) this.close(CloseCode.BadRequest);
    else if (type === MessageType.Subscribe && named) this.#begin(named, message, text);
    else {
      if (type === MessageType.Complete) this.#operations.get(named)?.leave.abort();
      // As it is: a text would be parsed again.
      this.#handle(message as never).catch(this.#fail);
    }
  }

  #begin(id: string, message: object, text: string): void {
    const previous = this.#operations.get(id);
    const isInUse = previous && !previous.leave.signal.aborted;
    if (isInUse) this.close(CloseCode.SubscriberAlreadyExists);
    else if (id.length > maxIdLength) this.close(CloseCode.BadRequest);
    if (isInUse || id.length > maxIdLength || this.#isDraining) return;
    // One that was left may still be ending: graphql-ws would take its answers for those of this one.
    const { ended } = previous ?? { ended: Promise.resolve() };
    const operation: SocketOperation = { leave: new AbortController(), text, ended };
    this.#operations.set(id, operation);
    this.#count(Buffer.byteLength(text));
    operation.ended = ended
      .then(() => (operation.leave.signal.aborted ? undefined : this.#handle(message as never)))
      .catch(this.#fail)
      .then(() => {
        this.#release(operation);
        if (this.#operations.get(id) === operation) this.#operations.delete(id);
        if (this.#isDraining) this.drain();
      });
  }

  #release(operation: SocketOperation): void {
    this.#count(-Buffer.byteLength(operation.text));
    operation.text = '';
  }

  async connect(context: SocketContext): Promise<boolean> {
    const parameters = readParameters(context.connectionParams);
    // It would be kept as long as the connection.
    Object.assign(context, { connectionParams: undefined });
    if (!parameters) {
      this.close(CloseCode.BadRequest);
      return false;
    }
    this.kept += JSON.stringify(parameters).length;
    return this.endpoint.connect(parameters).then(
      () => true,
      (error) => this.#refuse(error),
    );
  }

  /** Clients connect again: with a new token, or later. */
  #refuse({ status }: HttpError): false {
    this.close(status === 401 ? CloseCode.Forbidden : closeCodes.tryAgainLater);
    return false;
  }

  /** The answers to an operation, which graphql-ws sends: of a live query all, of another its single one. */
  async *answer(
    { subscriptions }: SocketContext,
    id: string,
    payload: object,
  ): AsyncGenerator<EncodedAnswer> {
    const operation = this.#operations.get(id) as SocketOperation;
    const { signal } = operation.leave;
    const answers = await this.#execute(operation, id, payload);
    if (!answers) return;
    const isLive = answers instanceof LiveStream;
    for await (const answer of isLive ? answers : [answers]) {
      if (signal.aborted) return;
      if (answer === expired) this.close(CloseCode.Forbidden);
      else if (answer.isRefusal) throw new Refusal(answer);
      else yield answer;
    }
    if (!isLive || signal.aborted) return;
    // Cut: it goes on over another connection, so it is not complete.
    delete subscriptions[id];
    if (!this.#isDraining) this.close(closeCodes.tryAgainLater);
  }

  /** Not within the generator, which would keep what was sent as long as its answers. */
  async #execute(operation: SocketOperation, id: string, payload: object) {
    const params: GraphQLParams = { ...payload };
    // graphql-ws keeps the message as long as the operation.
    for (const name of Object.keys(payload)) Reflect.deleteProperty(payload, name);
    try {
      // The raw text, as over HTTP, without what no other operation has.
      const text = operation.text.replace(JSON.stringify(id), '');
      return await this.endpoint.answer(params, text, operation.leave.signal);
    } catch (error) {
      return this.#refuse(error as HttpError);
    } finally {
      this.#release(operation);
    }
  }
}

/** Undefined for what is no object of JSON. */
function readMessage(text: string): Record<string, unknown> | undefined {
  try {
    const message = readJson(text, 'The message');
    if (!isObject(message)) return undefined;
    const { type, payload } = message;
    // Clients of stored documents have no text.
    if (type === MessageType.Subscribe && isObject(payload)) payload['query'] ??= '';
    return message;
  } catch {
    return undefined;
  }
}

/** @param message in which the answer is null, as its last value */
function insert(message: string, answer: Buffer): Buffer {
  return Buffer.concat([Buffer.from(message.slice(0, -'null}'.length)), answer, Buffer.from('}')]);
}

/** Characters of a parameter of `connection_init`: a header that pages cannot add to a handshake. */
const maxParameter = 8_192;
/** A character that no header can have makes the value an invalid one. */
const parameter = z
  .string()
  .max(maxParameter)
  .transform((text) => text.replace(/[^\t -~]/g, '?'));
const parameterNames = /^(?:authorization|(?:apollographql-client|x-client)-(?:name|version))$/i;
const parameters = z.record(z.string(), parameter);

/** Also in `headers`, where the payload itself has none of the name. Undefined: a value is no text, or too long. */
function readParameters(payload: unknown): IncomingHttpHeaders | undefined {
  const { headers } = isObject(payload) ? payload : {};
  const found: Record<string, unknown> = {};
  for (const source of [headers, payload]) {
    if (!isObject(source)) continue;
    for (const [name, value] of Object.entries(source)) {
      if (value != null && parameterNames.test(name)) found[name.toLowerCase()] = value;
    }
  }
  return parameters.safeParse(found).data;
}

// The end of connections: client disconnects, graceful shutdown and drain.
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';

/**
 * Replaces `request.signal` by one that aborts when the client disconnects, created on first use. Fastify's own aborts
 * as soon as a body has been read. A half-closed connection counts as a disconnect: a killed client sends the same FIN.
 */
export function decorateDisconnectSignal(app: FastifyInstance): void {
  app.decorateRequest('signal', {
    getter() {
      return disconnectSignalOf(this.raw.socket);
    },
  });
}

const signals = new WeakMap<Socket, AbortSignal>();

/** For requests without a route too: Fastify does not decorate them. */
export function disconnectSignalOf(socket: Socket): AbortSignal {
  const signal = signals.get(socket) ?? createSignal(socket);
  signals.set(socket, signal);
  return signal;
}

function createSignal(socket: Socket): AbortSignal {
  const disconnect = new AbortController();
  if (socket.destroyed) disconnect.abort();
  else socket.once('close', () => disconnect.abort());
  return disconnect.signal;
}

/** Milliseconds between the failing readiness and the end of listening: load balancers look meanwhile. */
const readinessDelay = 1_000;
/** Milliseconds that requests in flight have after that. */
const shutdownTimeout = 2_500;
/** Milliseconds of a drain before connections close: a keep-alive client learns of it with its next answer. */
const keepAliveDelay = 5_000;
/** Milliseconds that requests in flight have in a drain: the server cuts a connection silent for that long anyway. */
const drainTimeout = 90_000;

/** Graceful shutdown: readiness fails first, then listening ends, then connections. */
export class Shutdown {
  #isClosing = false;
  #endsConnections = false;
  // Fastify waits for its main server only, and localhost has two.
  #inFlight = 0;
  #onIdle = () => {};

  /** Readiness fails before any request does. */
  get isClosing(): boolean {
    return this.#isClosing;
  }

  /** Counts the requests of `app` that are in flight. Call it before the routes are added. */
  follow(app: FastifyInstance): void {
    const onClose = () => {
      this.#inFlight -= 1;
      if (this.#inFlight === 0) this.#onIdle();
    };
    app.addHook('onRequest', (_request, reply, done) => {
      this.#inFlight += 1;
      reply.raw.on('close', onClose);
      done();
    });
    app.addHook('onSend', (_request, reply, _payload, done) => {
      if (this.#endsConnections) reply.header('Connection', 'close');
      done();
    });
  }

  /**
   * Fails readiness, stops listening, waits for requests in flight, then cuts the connections that are left.
   * @param announce whether to wait until load balancers have seen that readiness fails
   */
  async close(app: FastifyInstance, announce: boolean): Promise<void> {
    this.#isClosing = true;
    this.#endsConnections = true;
    if (announce) await sleep(readinessDelay);
    await this.#finish(app, shutdownTimeout);
  }

  /** Drain of a rolling restart: another worker takes over, so readiness stays, and requests have all their time. */
  async drain(app: FastifyInstance): Promise<void> {
    this.#endsConnections = true;
    await sleep(keepAliveDelay);
    await this.#finish(app, drainTimeout);
  }

  async #finish(app: FastifyInstance, timeout: number): Promise<void> {
    const closed = app.close();
    const finished = new Promise<void>((resolve) => {
      this.#onIdle = resolve;
      if (this.#inFlight === 0) resolve();
    });
    await Promise.race([Promise.all([closed, finished]), sleep(timeout)]);
    app.server.closeAllConnections();
  }
}

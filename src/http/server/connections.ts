// How connections end: the client leaves, or the service does.
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';

/**
 * Makes `request.signal` that of the connection, made when a request first waits. Fastify's own is aborted as soon as
 * a body has been read. A client that only closes its sending side counts as left: a killed one sends the same FIN.
 */
export function signalLeaving(app: FastifyInstance): void {
  app.decorateRequest('signal', {
    getter() {
      return leavingSignal(this.raw.socket);
    },
  });
}

const signals = new WeakMap<Socket, AbortSignal>();

/** The same for a request that no route was found for: Fastify gives it none of its decorations. */
export function leavingSignal(socket: Socket): AbortSignal {
  const signal = signals.get(socket) ?? makeSignal(socket);
  signals.set(socket, signal);
  return signal;
}

function makeSignal(socket: Socket): AbortSignal {
  const leaving = new AbortController();
  if (socket.destroyed) leaving.abort();
  else socket.once('close', () => leaving.abort());
  return leaving.signal;
}

/** Milliseconds for which connections are still taken after readiness has turned. */
const notice = 1_000;
/** Milliseconds that requests under way then have to finish. */
const grace = 2_500;
/** Milliseconds in which a client that stays connected has asked again: Node.js closes idle connections after them. */
const patience = 5_000;
/** Milliseconds that requests then have: a connection that is silent for as long is cut anyway. */
const longGrace = 90_000;

/** How the service goes away: readiness first, then no new connections, then none. */
export class Shutdown {
  #isClosing = false;
  #endsConnections = false;
  // Counted here, since Fastify waits for the main server only, and localhost has two.
  #underWay = 0;
  #settle = () => {};

  /** Readiness says so before anything is refused. */
  get isClosing(): boolean {
    return this.#isClosing;
  }

  /** Follows the requests of `app`; to be called before its routes are added. */
  follow(app: FastifyInstance): void {
    const onClose = () => {
      this.#underWay -= 1;
      if (this.#underWay === 0) this.#settle();
    };
    app.addHook('onRequest', (_request, reply, done) => {
      this.#underWay += 1;
      reply.raw.on('close', onClose);
      done();
    });
    app.addHook('onSend', (_request, reply, _payload, done) => {
      if (this.#endsConnections) reply.header('Connection', 'close');
      done();
    });
  }

  /**
   * Turns readiness, stops listening and lets requests finish; cuts off what is open after the grace.
   * @param announce whether to wait until others have seen that the service is not ready
   */
  async close(app: FastifyInstance, announce: boolean): Promise<void> {
    this.#isClosing = true;
    this.#endsConnections = true;
    if (announce) await sleep(notice);
    await this.#finish(app, grace);
  }

  /** The same while other processes take the clients over: readiness stays, and requests have all their time. */
  async leave(app: FastifyInstance): Promise<void> {
    this.#endsConnections = true;
    await sleep(patience);
    await this.#finish(app, longGrace);
  }

  async #finish(app: FastifyInstance, limit: number): Promise<void> {
    const closed = app.close();
    const finished = new Promise<void>((resolve) => {
      this.#settle = resolve;
      if (this.#underWay === 0) resolve();
    });
    await Promise.race([Promise.all([closed, finished]), sleep(limit)]);
    app.server.closeAllConnections();
  }
}

// Aborts when the client leaves.
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';

// A client that only closes its sending side counts as left. With `httpAllowHalfOpen` it would get its answer,
// but a killed client sends the same FIN, and resets the connection only when something is written to it:
// its statements would go on until then.

/**
 * Makes `request.signal` an AbortSignal that is aborted when the client leaves, whenever it is read:
 * Fastify's own is aborted as soon as a body has been read, and never when the client has left
 * before. It is that of the connection, and made when a request on it first waits for something, so
 * that answers from memory cost none.
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

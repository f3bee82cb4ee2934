// Aborts when the client leaves.
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';

/**
 * Makes `request.signal` an AbortSignal that is aborted when the client leaves, whenever it is read:
 * Fastify's own is aborted as soon as a body has been read, and never when the client has left
 * before. It is that of the connection, and made when a request on it first waits for something, so
 * that answers from memory cost none.
 */
export function signalLeaving(app: FastifyInstance): void {
  const signals = new WeakMap<Socket, AbortSignal>();
  app.decorateRequest('signal', {
    getter() {
      const { socket } = this.raw;
      const signal = signals.get(socket) ?? signalOf(socket);
      signals.set(socket, signal);
      return signal;
    },
  });
}

function signalOf(socket: Socket): AbortSignal {
  const leaving = new AbortController();
  if (socket.destroyed) leaving.abort();
  else socket.once('close', () => leaving.abort());
  return leaving.signal;
}

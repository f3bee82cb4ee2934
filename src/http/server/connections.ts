// The end of connections: client disconnects, unread bodies, and graceful shutdown.
import { close, open } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { devNull } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';

/**
 * Replaces `request.signal` by one that aborts when the client disconnects, created on first use. Fastify's own aborts
 * as soon as a body has been read.
 */
export function decorateDisconnectSignal(app: FastifyInstance): void {
  app.decorateRequest('signal', {
    getter() {
      return disconnectSignalOf(this.raw.socket);
    },
  });
}

const disconnects = new WeakMap<Socket, AbortController>();

/** For requests without a route too: Fastify does not decorate them. */
export function disconnectSignalOf(socket: Socket): AbortSignal {
  return disconnectOf(socket).signal;
}

/** Ends what requests of a connection wait for by an error, as if the client had disconnected. */
export function disconnectFor(socket: Socket, error: Error): void {
  disconnectOf(socket).abort(error);
}

function disconnectOf(socket: Socket): AbortController {
  const existing = disconnects.get(socket);
  if (existing) return existing;
  const disconnect = new AbortController();
  disconnects.set(socket, disconnect);
  if (socket.destroyed) disconnect.abort();
  else socket.once('close', () => disconnect.abort());
  onHalfClose(socket, () => limitHalfClosed(socket));
  return disconnect;
}

/**
 * Milliseconds that an answer may take once its client has half-closed the connection, and its request is served: a client
 * that reads on and one that was killed send the same FIN, and what takes longer is expensive.
 */
const halfClosedTime = 500;

/** Limits the time of the response that is due, if its client has half-closed the connection. */
export function limitHalfClosed(socket: Socket): void {
  const due = dueResponse(socket);
  if (!due || !socket.readableEnded) return;
  const disconnect = () => {
    if (due === dueResponse(socket) && !due.headersSent) socket.destroy();
  };
  setTimeout(disconnect, halfClosedTime).unref();
}

function onHalfClose(socket: Socket, callback: () => void): void {
  if (socket.readableEnded) callback();
  else socket.once('end', callback);
}

/** The response to the oldest request of a connection that is not answered, from the internal state of Node. */
export function dueResponse(socket: Socket): ServerResponse | undefined {
  return (socket as { readonly _httpMessage?: ServerResponse | null })._httpMessage ?? undefined;
}

/** For an answer that does not end: a client that half-closes disconnects. @returns function that ends this */
export function disconnectHalfClosed(socket: Socket): () => void {
  const disconnect = () => socket.destroy();
  onHalfClose(socket, disconnect);
  return () => void socket.off('end', disconnect);
}

/** The newest requests of connections whose answer was sent before their body was read. */
const unread = new WeakMap<Socket, IncomingMessage>();

export function hasUnreadBody(socket: Socket): boolean {
  return unread.get(socket)?.complete === false;
}

/**
 * Reads and drops what is left of a body when its answer has been sent: a kernel resets a connection that is closed with
 * unread bytes, and the client loses the answer. Node does so only where the connection is kept.
 * @see https://www.rfc-editor.org/rfc/rfc9112#section-9.6
 */
export function readBehind(request: IncomingMessage, response: ServerResponse): void {
  const { socket } = request;
  // Before Node's own listener, which calls destroySoon behind the last answer of a connection. Only then: a connection that
  // holds its request keeps it, and all that it refers to, in memory until a full garbage collection.
  response.prependOnceListener('finish', () => {
    if (request.complete) return;
    unread.set(socket, request);
    socket.destroySoon = () => {
      if (request.complete) return Socket.prototype.destroySoon.call(socket);
      closeInStages(socket);
      request.once('end', () => socket.destroy()).resume();
    };
    request.once('end', () => {
      if (unread.get(socket) !== request) return;
      unread.delete(socket);
      Reflect.deleteProperty(socket, 'destroySoon');
    });
  });
}

/** Milliseconds that a client may go on sending, and be silent, behind the last answer. */
const lingering = { most: 30_000, silent: 5_000 };

/** Ends the own side of a connection, and closes it when the client has ended its own, or in a while. */
export function closeInStages(socket: Socket): void {
  socket.end();
  const close = () => socket.destroy();
  const timer = setTimeout(close, lingering.most).unref();
  socket.setTimeout(lingering.silent, close).once('close', () => clearTimeout(timer));
  socket.resume();
}

/** Logs that all file descriptors are in use: the system then closes new connections, and reports it to nobody. */
export function watchDescriptors(app: FastifyInstance): void {
  const timer = setInterval(() => {
    open(devNull, 'r', (error, descriptor) => {
      if (!error) return close(descriptor);
      const { code } = error;
      app.log.error({ code }, 'no file descriptor is free: new connections are reset (ulimit -n)');
    });
  }, descriptorInterval).unref();
  app.addHook('onClose', async () => clearInterval(timer));
}

const descriptorInterval = 2_000;

/** Milliseconds between the failing readiness and the end of listening: load balancers look meanwhile. */
const readinessDelay = 1_000;
/** Milliseconds that requests in flight have after that. */
const shutdownTimeout = 2_500;

/** Graceful shutdown: readiness fails first, then listening ends, then connections. */
export class Shutdown {
  /** Readiness fails before any request does. */
  isClosing = false;

  /** Call it before the routes are added. */
  follow(app: FastifyInstance): void {
    app.addHook('onSend', (_request, reply, _payload, done) => {
      if (this.isClosing) reply.header('Connection', 'close');
      done();
    });
  }

  /**
   * Fails readiness, stops listening, waits for requests in flight, then cuts the connections that are left.
   * @param announce whether to wait until load balancers have seen that readiness fails
   */
  async close(app: FastifyInstance, announce: boolean): Promise<void> {
    this.isClosing = true;
    if (announce) await sleep(readinessDelay);
    await Promise.race([app.close(), sleep(shutdownTimeout)]);
    app.server.closeAllConnections();
  }
}

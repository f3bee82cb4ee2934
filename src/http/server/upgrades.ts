// WebSocket handshakes, among the requests that ask for an upgrade. @see RFC 9110 §7.8
import { type IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { afterPipelined } from './unreadable-requests.ts';

export function asksForWebSocket({ method, headers }: Pick<IncomingMessage, 'method' | 'headers'>) {
  return method === 'GET' && /^websocket$/i.test(headers.upgrade ?? '');
}

/**
 * Routes handshakes at `path` as requests, so that all hooks see them, and returns their connections. Others are plain
 * requests: Node gives a listener all upgrades, and Java's client sends `Upgrade: h2c` with bodies.
 */
export function routeHandshakes(app: FastifyInstance, path: string) {
  /** The connection of each handshake, and the bytes that have followed it. */
  const upgrades = new WeakMap<IncomingMessage, { socket: Socket; head: Buffer }>();
  /** Connections whose request is parsed again. */
  const parsedAgain = new WeakSet<Socket>();
  const onError = () => {};
  app.server.prependListener('request', ({ socket }) => parsedAgain.delete(socket));
  app.server.on('upgrade', (request, stream, head) => {
    const socket = stream as Socket;
    socket.on('error', onError);
    afterPipelined(socket, () => {
      // HTTP/1.0 has no upgrade.
      const isHandshake = asksForWebSocket(request) && request.httpVersion !== '1.0';
      if (!isHandshake || request.url?.split('?', 1)[0] !== path) {
        // Never twice: a request that stays an upgrade would be parsed for ever.
        if (parsedAgain.has(socket)) {
          app.server.emit('clientError', new Error('still an upgrade'), socket);
          return;
        }
        parsedAgain.add(socket);
        // The next request of this connection may be an upgrade, too.
        socket.off('error', onError);
        socket.unshift(Buffer.concat([encodeWithoutUpgrade(request), head]));
        app.server.emit('connection', socket);
        return;
      }
      upgrades.set(request, { socket, head });
      const response = new ServerResponse(request);
      response.shouldKeepAlive = false;
      response.assignSocket(socket);
      response.once('finish', () => socket.destroySoon());
      app.routing(request, response);
    });
  });
  return upgrades;
}

/** The header lines that make an upgrade of a request with `Upgrade`: the parser of Node takes both for one. */
const connectionName = /^(?:proxy-)?connection$/i;

function encodeWithoutUpgrade({ method, url, httpVersion, rawHeaders }: IncomingMessage): Buffer {
  let text = `${method} ${url} HTTP/${httpVersion}\r\n`;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const [name = '', value = ''] = rawHeaders.slice(at, at + 2);
    const kept = connectionName.test(name) ? value.replace(/upgrade/gi, 'x-upgrade') : value;
    text += `${name}: ${kept}\r\n`;
  }
  return Buffer.from(`${text}\r\n`, 'latin1');
}

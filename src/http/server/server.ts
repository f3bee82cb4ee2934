// The HTTP server: timeouts of slow clients, methods, expectations, listening, and WebSocket handshakes (RFC 9110 §7.8).
import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import {
  createServer as createHttpServer,
  type IncomingMessage,
  METHODS,
  type RequestListener,
  type Server,
  ServerResponse,
} from 'node:http';
import {
  type AddressInfo,
  connect,
  createServer as createTcpServer,
  isIPv6,
  type Socket,
  Server as TcpServer,
} from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import type { Config } from '../../config/config.ts';
import { bytesOfHead, hasBody } from '../headers.ts';
import { encodeJson } from '../representation.ts';
import { limitHalfClosed, readBehind, watchDescriptors } from './connections.ts';
import { afterPipelined } from './unreadable-requests.ts';

/** Milliseconds. Without timeouts, slow clients would hold connections for good. */
const timeouts = {
  headersTimeout: 10_000,
  /** For a whole request: enough for a megabyte from a phone on a bad network. */
  requestTimeout: 30_000,
  /** Idle time between two requests: above the 60 seconds of most proxies, so that the proxy closes first. */
  keepAliveTimeout: 72_000,
  connectionsCheckingInterval: 2_000,
};
const connectionTimeout = 90_000;
/** Connections waiting to be accepted: a burst is larger than Node's default of 511; 4,096 is the limit of Linux. */
const backlog = 4_096;

/** Node's parser takes those of RTSP and HTTP/2, too. CONNECT is for proxies. */
const methods = new Set(METHODS.filter((method) => method !== 'CONNECT'));
const unknownMethod = (response?: ServerResponse) =>
  Object.assign(new Error(), { code: 'HPE_INVALID_METHOD', response });

/** For Fastify's `serverFactory`, which then sets none of its own limits. */
export function createServer(listener: RequestListener): Server {
  const handle: RequestListener = (request, response) => {
    const { socket, method = '' } = request;
    // A connection that is closed in stages: nothing behind its last answer is read.
    if (!socket.writable) return;
    if (hasBody(request.headers)) readBehind(request, response);
    inItsTurn(request, response, () => {
      if (methods.has(method)) listener(request, response);
      else server.emit('clientError', unknownMethod(response), socket);
    });
  };
  // Without `requireHostHeader`, Node itself would answer a request without Host, in a format of its own.
  const server = createHttpServer({ ...timeouts, requireHostHeader: false }, handle);
  server.setTimeout(connectionTimeout);
  // By default Node drops header lines after the 2,000th, such as a second Authorization. 16 KiB in all is the limit.
  server.maxHeadersCount = 0;
  // A client that sends no more may still read (RFC 9112 §9.6): by default Node answers it only at once.
  Object.assign(server, { httpAllowHalfOpen: true });
  // Unknown expectations are ignored: Node would answer 417 with an empty body.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
  server.on('checkContinue', (request, response) => {
    expecting.add(response);
    server.emit('request', request, response);
  });
  server.on('connect', (_request, socket) => {
    socket.on('error', () => {});
    server.emit('clientError', unknownMethod(), socket);
  });
  return server;
}

/** What waits on each connection: a packet has thousands of requests, each of which takes kilobytes until it is answered. */
const pipelined = new WeakMap<Socket, { requests: number; bytes: number }>();
const maxPipelined = { requests: 100, bytes: 65_536 };

/** Serves a request as soon as those before it on its connection are answered: then Node gives its response the socket. */
function inItsTurn(request: IncomingMessage, response: ServerResponse, serve: () => void): void {
  if (response.socket) {
    serve();
    return;
  }
  const { socket } = request;
  const bytes = bytesOf(request);
  const waiting = pipelined.get(socket) ?? { requests: 0, bytes: 0 };
  pipelined.set(socket, waiting);
  waiting.requests += 1;
  waiting.bytes += bytes;
  if (waiting.requests > maxPipelined.requests || waiting.bytes > maxPipelined.bytes) {
    socket.destroy();
    return;
  }
  response.once('socket', () => {
    waiting.requests -= 1;
    waiting.bytes -= bytes;
    limitHalfClosed(socket);
    serve();
  });
}

/** Of its head, and of its body what Node reads before it is served: no limit of a sender counts them yet. */
function bytesOf(request: IncomingMessage): number {
  const { headers, readableHighWaterMark: most } = request;
  const body = hasBody(headers) ? Math.min(Number(headers['content-length'] ?? most), most) : 0;
  return bytesOfHead(request) + body;
}

/** Milliseconds of a turn of the event loop in which next to nothing can have connected. */
const quietTurn = 0.03;
/** Milliseconds after which listening ends without such a turn. */
const longestWait = 500;

/**
 * Ends listening right after a turn of the event loop that accepted what waited: the system resets connections that nobody
 * has accepted, and no proxy sends the write of such a client again.
 */
async function endListening(server: TcpServer): Promise<void> {
  const asked = performance.now();
  let begun: number;
  do {
    begun = performance.now();
    await nextTurn();
  } while (performance.now() - begun > quietTurn && begun - asked < longestWait);
  // Of the socket only: a server of HTTP would close its idle connections first, which takes a while.
  TcpServer.prototype.close.call(server);
}

/** Responses to requests with `Expect: 100-continue`. */
const expecting = new WeakSet<ServerResponse>();

/** Lets a client that has asked before send its body. @see RFC 9110 §10.1.1 */
export function sendContinue(response: ServerResponse): void {
  if (expecting.delete(response)) response.writeContinue();
}

type Address = Pick<Config, 'host' | 'port'>;

/** Listens on both addresses of localhost: with a server factory, Fastify takes only the first one. Returns the URL. */
export async function listen(
  app: FastifyInstance,
  { host, port }: Address,
  findAddresses = (name: string) => lookup(name, { all: true }),
): Promise<string> {
  const others: TcpServer[] = [];
  const closed: Promise<unknown>[] = [];
  watchDescriptors(app);
  // Behind its main server: Fastify waits for the connections of that one only.
  app.addHook('onClose', async () => {
    await Promise.all(closed);
  });
  app.addHook('preClose', async () => {
    await Promise.all([app.server, ...others].map(endListening));
  });
  // Fastify would log each address of the machine; the start logs the ones to use.
  const { level } = app.log;
  app.log.level = 'silent';
  const url = await app.listen({ host, port, backlog }).finally(() => {
    app.log.level = level;
  });
  if (host !== 'localhost') return url;
  const main = app.server.address() as AddressInfo;
  for (const { address } of await findAddresses(host)) {
    if (address === main.address) continue;
    // Its connections are those of the main server.
    const server = createTcpServer({ allowHalfOpen: true, noDelay: true }, (socket) =>
      app.server.emit('connection', socket),
    );
    server.listen(main.port, address, backlog);
    // The second address may not exist, or be in use.
    await once(server, 'listening')
      .then(() => {
        others.push(server);
        closed.push(new Promise((resolve) => server.once('close', resolve)));
      })
      .catch(() => {});
  }
  return url;
}

/**
 * Checks that the address is of this machine, and that nothing listens there, before a database is opened. Accepts no
 * connection: a client that is refused goes to another gateway, one that is cut off may lose a write.
 * @returns the port; a free one for 0
 */
export async function checkAddress({ host, port }: Address): Promise<number> {
  const probe = createTcpServer().listen(0, host);
  await once(probe, 'listening');
  const { port: free } = probe.address() as AddressInfo;
  await once(probe.close(), 'close');
  if (port === 0) return free;
  const socket = connect({ host, port });
  const isUsed = await once(socket, 'connect').then(
    () => true,
    () => false,
  );
  socket.destroy();
  if (!isUsed) return port;
  const message = `listen EADDRINUSE: address already in use ${host}:${port}`;
  throw Object.assign(new Error(message), { code: 'EADDRINUSE' });
}

export function urlOf(host: string, port: number): string {
  const shown = /^(::1?|127\.0\.0\.1|0\.0\.0\.0)$/.test(host) ? 'localhost' : host;
  return `http://${isIPv6(shown) ? `[${shown}]` : shown}:${port}`;
}

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

/**
 * `/health/live` and `/health/ready`: no statement, no token.
 * @param findProblem why the gateway is not ready, in one sentence
 */
export function serveHealth(app: FastifyInstance, findProblem: () => string | undefined): void {
  const probes = { '/health/live': () => undefined, '/health/ready': findProblem };
  for (const [url, find] of Object.entries(probes)) {
    app.route({
      method: ['GET', 'HEAD'],
      url,
      handler: (_request, reply) => {
        const detail = find();
        return reply
          .code(detail ? 503 : 200)
          .headers({ 'Content-Type': 'application/json', 'Cache-Control': 'no-store' })
          .send(encodeJson(detail ? { status: 'unavailable', detail } : { status: 'ok' }));
      },
    });
  }
}

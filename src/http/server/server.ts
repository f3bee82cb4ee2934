// How the service listens, on which addresses; time limits of slow clients; answers to what is not HTTP.
import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import {
  createServer as createHttpServer,
  type RequestListener,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import { type AddressInfo, createServer as createTcpServer, isIPv6, type Socket } from 'node:net';
import type { FastifyBaseLogger, FastifyInstance } from 'fastify';
import type { Config } from '../../config.ts';
import { arrivedTooSlowly, type HttpError, headTooLarge, notHttp } from '../../errors.ts';
import { type NameRequest, requestIdHeader, securityHeaders } from '../headers.ts';
import { encodeJson } from '../json.ts';

/** Milliseconds that a client has, so that slow ones do not hold connections for good. */
const timeLimits = {
  headersTimeout: 10_000,
  /** To send a whole request: a megabyte from a phone on a bad network. */
  requestTimeout: 30_000,
  /** Between two requests: more than the 60 seconds of most proxies, which must be first to close. */
  keepAliveTimeout: 72_000,
  connectionsCheckingInterval: 2_000,
};
const connectionTimeout = 90_000;
/** Connections that may wait to be accepted: Node's 511 are fewer than come in a burst. 4,096 is Linux' own limit. */
const backlog = 4_096;

/** For Fastify's `serverFactory`, which then sets none of its own limits. */
export function createServer(listener?: RequestListener): Server {
  // A request without Host gets an answer in the shape of the others.
  const server = createHttpServer({ ...timeLimits, requireHostHeader: false }, listener);
  server.setTimeout(connectionTimeout);
  // Node would drop lines behind the 2,000th, a second Authorization among them. All may have 16 KiB together.
  server.maxHeadersCount = 0;
  // An expectation that Node does not know is none of ours: it would answer 417 with nothing in it.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
  return server;
}

type Address = Pick<Config, 'host' | 'port'>;

/** On both addresses of localhost: with a factory, Fastify takes the first one only. Gives the address as a URL. */
export async function listen(
  app: FastifyInstance,
  { host, port }: Address,
  findAddresses = (name: string) => lookup(name, { all: true }),
): Promise<string> {
  const others: Server[] = [];
  app.addHook('preClose', async () => {
    for (const server of others) server.close();
  });
  // Fastify would log each address of the machine: what opens is said by who started it.
  const { level } = app.log;
  app.log.level = 'silent';
  const url = await app.listen({ host, port, backlog }).finally(() => {
    app.log.level = level;
  });
  if (host !== 'localhost') return url;
  const main = app.server.address() as AddressInfo;
  for (const { address } of await findAddresses(host)) {
    if (address === main.address) continue;
    const server = createServer();
    server.requestTimeout = app.server.requestTimeout;
    for (const event of ['request', 'clientError']) {
      server.on(event, (...given) => app.server.emit(event, ...given));
    }
    server.listen(main.port, address, backlog);
    // One of the two may not be there, or be taken.
    await once(server, 'listening')
      .then(() => others.push(server))
      .catch(() => {});
  }
  return url;
}

export interface Place {
  readonly port: number;
  /** The address in the form of a URL, for the machine that it runs on. */
  readonly url: string;
  release(): Promise<void>;
}

/** Takes the port, a free one if it is 0, until it is released: no other process can take it meanwhile. */
export async function reservePlace({ host, port }: Address): Promise<Place> {
  // A client that comes too early is turned away, as if nothing listened yet.
  const holder = createTcpServer((socket) => socket.destroy());
  holder.listen(port, host);
  await once(holder, 'listening');
  const { port: chosen } = holder.address() as AddressInfo;
  return {
    port: chosen,
    url: urlOf(host, chosen),
    release: async () => {
      await once(holder.close(), 'close');
    },
  };
}

export function urlOf(host: string, port: number): string {
  const shown = /^(::1?|127\.0\.0\.1|0\.0\.0\.0)$/.test(host) ? 'localhost' : host;
  return `http://${isIPv6(shown) ? `[${shown}]` : shown}:${port}`;
}

type OnClientError = (error: Error & { code?: string }, socket: Socket) => void;

/** Answers bytes that Node cannot read as an HTTP request. @param added headers beside those of all answers */
export function answerUnreadable(
  nameRequest: NameRequest,
  log: FastifyBaseLogger | undefined,
  added: Readonly<Record<string, string>> = {},
): OnClientError {
  const known = new WeakSet<Socket>();
  return (error, socket) => {
    // Node says it again for all that comes after it.
    if (known.has(socket)) return;
    known.add(socket);
    if (!socket.writable || error.code === 'ECONNRESET') socket.destroy();
    else whenAnswered(socket, () => sendError(error, socket, nameRequest, log, added));
  };
}

/** What Node keeps on a socket: the answer that is due, of the oldest of the pipelined requests. */
interface Pipelined {
  readonly _httpMessage?: ServerResponse | null;
}

function whenAnswered(socket: Socket, callback: () => void): void {
  const due = (socket as Pipelined)._httpMessage;
  if (due?.req.complete) due.once('close', () => whenAnswered(socket, callback));
  else if (socket.writable) callback();
}

function sendError(
  error: Error & { code?: string },
  socket: Socket,
  nameRequest: NameRequest,
  log: FastifyBaseLogger | undefined,
  added: Readonly<Record<string, string>>,
): void {
  const { status, message: detail } = httpErrorOf(error.code);
  const requestId = nameRequest({ headers: {} });
  log?.debug({ requestId, status, code: error.code }, 'unreadable');
  const body = encodeJson({ detail });
  const headers = {
    [requestIdHeader]: requestId,
    ...securityHeaders,
    ...added,
    'content-type': 'application/json',
    'content-length': body.length,
    connection: 'close',
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`);
}

function httpErrorOf(code: string | undefined): HttpError {
  if (code === 'HPE_HEADER_OVERFLOW') return headTooLarge();
  return code === 'ERR_HTTP_REQUEST_TIMEOUT' ? arrivedTooSlowly() : notHttp();
}

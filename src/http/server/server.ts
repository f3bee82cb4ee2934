// The HTTP server: timeouts of slow clients, listening, port reservation, answers to malformed requests.
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
import { type GenerateRequestId, requestIdHeader, securityHeaders } from '../headers.ts';
import { encodeJson } from '../json.ts';

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

/** For Fastify's `serverFactory`, which then sets none of its own limits. */
export function createServer(listener?: RequestListener): Server {
  // Without this, Node itself would answer a request without Host, in a format of its own.
  const server = createHttpServer({ ...timeouts, requireHostHeader: false }, listener);
  server.setTimeout(connectionTimeout);
  // By default Node drops header lines after the 2,000th, such as a second Authorization. 16 KiB in all is the limit.
  server.maxHeadersCount = 0;
  // Unknown expectations are ignored: Node would answer 417 with an empty body.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
  return server;
}

type Address = Pick<Config, 'host' | 'port'>;

/** Listens on both addresses of localhost: with a server factory, Fastify takes only the first one. Returns the URL. */
export async function listen(
  app: FastifyInstance,
  { host, port }: Address,
  findAddresses = (name: string) => lookup(name, { all: true }),
): Promise<string> {
  const others: Server[] = [];
  app.addHook('preClose', async () => {
    for (const server of others) server.close();
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
    const server = createServer();
    server.requestTimeout = app.server.requestTimeout;
    for (const event of ['request', 'clientError', 'upgrade']) {
      if (app.server.listenerCount(event) === 0) continue;
      server.on(event, (...given) => app.server.emit(event, ...given));
    }
    server.listen(main.port, address, backlog);
    // The second address may not exist, or be in use.
    await once(server, 'listening')
      .then(() => others.push(server))
      .catch(() => {});
  }
  return url;
}

export interface PortReservation {
  readonly port: number;
  /** The address as a URL, for this machine. */
  readonly url: string;
  release(): Promise<void>;
}

/** Holds the port, a free one for 0, until it is released: no other process can take it. */
export async function reservePort({ host, port }: Address): Promise<PortReservation> {
  // Early clients are disconnected, as if nothing listened yet.
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

/** For `clientErrorHandler`: answers bytes that Node cannot parse as HTTP. @param added headers of this gateway */
export function createClientErrorHandler(
  generateRequestId: GenerateRequestId,
  log: FastifyBaseLogger | undefined,
  added: Readonly<Record<string, string>> = {},
): OnClientError {
  const answered = new WeakSet<Socket>();
  return (error, socket) => {
    // Node emits the error again for all bytes that follow.
    if (answered.has(socket)) return;
    answered.add(socket);
    if (!socket.writable || error.code === 'ECONNRESET') socket.destroy();
    else afterPipelined(socket, () => sendError(error, socket, generateRequestId, log, added));
  };
}

/** Internal state of a Node socket: the pending response of the oldest pipelined request. */
interface Pipelined {
  readonly _httpMessage?: ServerResponse | null;
}

/** Calls back when all requests before the newest one on this connection are answered. */
export function afterPipelined(socket: Socket, callback: () => void): void {
  const due = (socket as Pipelined)._httpMessage;
  if (due?.req.complete) due.once('close', () => afterPipelined(socket, callback));
  else if (socket.writable) callback();
}

function sendError(
  error: Error & { code?: string },
  socket: Socket,
  generateRequestId: GenerateRequestId,
  log: FastifyBaseLogger | undefined,
  added: Readonly<Record<string, string>>,
): void {
  const { status, message: detail } = httpErrorOf(error.code);
  const requestId = generateRequestId({ headers: {} });
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

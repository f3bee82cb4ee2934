// How the service listens, and on which addresses; time limits of slow clients.
import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { createServer as createHttpServer, type RequestListener, type Server } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, isIPv6 } from 'node:net';
import type { FastifyInstance } from 'fastify';

/** Milliseconds that a client has, so that slow ones do not hold connections for good. */
const timeLimits = {
  /** To send the head of a request. */
  headersTimeout: 10_000,
  /** To send a whole request: a megabyte from a phone on a bad network. */
  requestTimeout: 30_000,
  /** Between two requests: more than the 60 seconds of most proxies, which must be first to close. */
  keepAliveTimeout: 72_000,
  connectionsCheckingInterval: 2_000,
};
/** Milliseconds in which nothing is sent or read. */
const connectionTimeout = 90_000;
/**
 * Connections that may wait to be accepted: Node's 511 are fewer than come in a burst, and the system lets the
 * others wait for a second, or breaks them off. More than this needs the system's own limit raised, too.
 */
const backlog = 4_096;

/** For Fastify's `serverFactory`, which then sets none of its own limits. */
export function createServer(listener?: RequestListener): Server {
  // A request without Host gets an answer in the shape of the others.
  const server = createHttpServer({ ...timeLimits, requireHostHeader: false }, listener);
  server.setTimeout(connectionTimeout);
  // Node would drop the header lines behind the 2,000th, a second Authorization among them. They are
  // few in any case: all together may have 16 KiB.
  server.maxHeadersCount = 0;
  // An expectation that Node does not know is none of ours: it would answer 417 with nothing in it.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
  return server;
}

/**
 * Listens, on both addresses if the host is localhost: a server of Fastify's that is made by a
 * factory takes the first one only.
 * @param findAddresses all addresses of a host, by the rules of this machine
 * @returns the address in the form of a URL
 */
export async function listen(
  app: FastifyInstance,
  { host, port }: { readonly host: string; readonly port: number },
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

/** Where a service will listen, known before it does. */
export interface Place {
  readonly port: number;
  /** The address in the form of a URL, for the machine that it runs on. */
  readonly url: string;
  /** To be called right before listening. */
  release(): Promise<void>;
}

/** Takes the port, a free one if it is 0, until it is released: no other process can take it meanwhile. */
export async function reservePlace({
  host,
  port,
}: {
  readonly host: string;
  readonly port: number;
}): Promise<Place> {
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

/** What a browser on this machine opens to see what listens there. */
export function urlOf(host: string, port: number): string {
  const shown = /^(::1?|127\.0\.0\.1|0\.0\.0\.0)$/.test(host) ? 'localhost' : host;
  return `http://${isIPv6(shown) ? `[${shown}]` : shown}:${port}`;
}

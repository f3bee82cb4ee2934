// How the service listens, and on which addresses; time limits of slow clients.
import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { createServer as createHttpServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
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
 * @returns the address in the form of a URL
 */
export async function listen(
  app: FastifyInstance,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<string> {
  const others: Server[] = [];
  app.addHook('preClose', async () => {
    for (const server of others) server.close();
  });
  const url = await app.listen({ host, port });
  if (host !== 'localhost') return url;
  const main = app.server.address() as AddressInfo;
  for (const { address } of await lookup(host, { all: true })) {
    if (address === main.address) continue;
    const server = createServer();
    for (const event of ['request', 'clientError']) {
      server.on(event, (...given) => app.server.emit(event, ...given));
    }
    server.listen(main.port, address);
    // One of the two may not be there, or be taken.
    await once(server, 'listening')
      .then(() => others.push(server))
      .catch(() => {});
  }
  return url;
}

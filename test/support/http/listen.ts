// Servers of the tests: on this machine, on a free port unless one is given.
import { once } from 'node:events';
import type { Server as HttpServer } from 'node:http';
import type { AddressInfo, Server } from 'node:net';

/** Gives the port. */
export async function listen(server: Server, port = 0): Promise<number> {
  await once(server.listen(port, '127.0.0.1'), 'listening');
  return portOf(server);
}

export const portOf = (server: Server) => (server.address() as AddressInfo).port;

/** Ends a server with all its connections. */
export async function closeServer(server: HttpServer): Promise<void> {
  server.close();
  server.closeAllConnections();
  await once(server, 'close');
}

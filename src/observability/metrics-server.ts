// GET /metrics on a port of its own.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Metrics } from './metrics.ts';

export interface MetricsServer {
  readonly port: number;
  close(): void;
}

/**
 * Serves `GET /metrics` on a port of its own, which the public does not reach.
 * @param port 0 takes any free port
 * @throws the error of Node when it cannot listen there
 */
export async function serveMetrics(
  metrics: Pick<Metrics, 'print'>,
  { host, port }: { host: string; port: number },
): Promise<MetricsServer> {
  const server = createServer((request, response) => {
    if (request.method !== 'GET' || request.url?.split('?', 1)[0] !== '/metrics') {
      response.writeHead(404).end();
      return;
    }
    metrics.print().then(
      ({ contentType, text }) => response.writeHead(200, { 'Content-Type': contentType }).end(text),
      () => response.writeHead(500).end(),
    );
  });
  server.listen(port, host);
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

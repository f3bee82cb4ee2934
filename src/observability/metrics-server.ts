// HTTP server of `GET /metrics` on METRICS_PORT.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface MetricsSource {
  print(): Promise<{ readonly contentType: string; readonly text: string }>;
}

/** Serves `GET /metrics` in the text format of Prometheus. Not for the public. */
export async function serveMetrics(
  source: MetricsSource,
  { host, port }: { host: string; port: number },
) {
  const server = createServer((request, response) => {
    const isRead = request.method === 'GET' || request.method === 'HEAD';
    const path = isRead && request.url?.split('?', 1)[0];
    const answer = async () => {
      if (path !== '/metrics') return void response.writeHead(404).end();
      const { contentType, text } = await source.print();
      response.writeHead(200, { 'Content-Type': contentType }).end(text);
    };
    answer().catch(() => response.writeHead(500).end());
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

// GET /metrics and GET /usage on a port of their own.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { heaviest } from '../http/accept.ts';
import { securityHeaders } from '../http/security-headers.ts';
import type { Metrics } from './metrics.ts';
import type { Usage } from './usage.ts';
import { usagePage, usagePageHeaders } from './usage-page.ts';

export interface MetricsServer {
  readonly port: number;
  close(): void;
}

/**
 * Serves `GET /metrics`, and `GET /usage` as JSON or a page, on a port of its own, which the public
 * does not reach.
 * @param port 0 takes any free port
 * @throws the error of Node when it cannot listen there
 */
export async function serveMetrics(
  metrics: Pick<Metrics, 'print' | 'usage'>,
  { host, port }: { host: string; port: number },
): Promise<MetricsServer> {
  const server = createServer((request, response) => {
    const path = request.method === 'GET' && request.url?.split('?', 1)[0];
    if (path === '/usage') {
      sendUsage(metrics.usage, request, response);
      return;
    }
    if (path !== '/metrics') {
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

const types = new Map([
  ['text/html', 'page'],
  ['application/json', 'json'],
  ['application/*', 'json'],
  ['*/*', 'json'],
]);

/** A page for those that prefer it to JSON, as browsers do. */
function sendUsage(usage: Usage, { headers }: IncomingMessage, response: ServerResponse): void {
  const isPage = heaviest(headers.accept ?? '', types)?.type === 'page';
  response.writeHead(200, {
    ...securityHeaders,
    Vary: 'Accept',
    'Cache-Control': 'no-store',
    ...(isPage ? usagePageHeaders : { 'Content-Type': 'application/json' }),
  });
  response.end(
    isPage
      ? usagePage(usage)
      : `${JSON.stringify({ since: usage.since, namesForgotten: usage.clients.forgotten, usage: usage.rows() }, null, 2)}\n`,
  );
}

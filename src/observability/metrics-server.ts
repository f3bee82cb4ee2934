// HTTP server of `GET /metrics` on METRICS_PORT.
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { preferredType } from '../http/content-negotiation.ts';

export interface MetricsSource {
  print(): Promise<{ readonly contentType: string; readonly text: string }>;
}

export interface MetricsServer {
  readonly port: number;
  close(): void;
}

/** Serves `GET /metrics` in the text format of Prometheus. Not for the public. */
export async function serveMetrics(
  source: MetricsSource,
  { host, port }: { host: string; port: number },
): Promise<MetricsServer> {
  const server = createServer((request, response) => {
    const isRead = request.method === 'GET' || request.method === 'HEAD';
    const path = isRead && request.url?.split('?', 1)[0];
    const answer = async () => {
      if (path !== '/metrics') return response.writeHead(404).end();
      const { contentType, text } = await source.print();
      if (!prefersOpenMetrics(request)) {
        return response.writeHead(200, { 'Content-Type': contentType }).end(text);
      }
      return response.writeHead(200, { 'Content-Type': openMetrics }).end(toOpenMetrics(text));
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

const openMetrics = 'application/openmetrics-text; version=1.0.0; charset=utf-8';

function prefersOpenMetrics({ headers }: IncomingMessage): boolean {
  const types = ['text/plain', 'application/openmetrics-text'] as const;
  return preferredType(headers.accept ?? '', types)?.type === types[1];
}

/**
 * From the text format of Prometheus. Not by prom-client, which then renames the counters of the registry for good.
 * @see https://github.com/prometheus/OpenMetrics/blob/v1.0.0/specification/OpenMetrics.md
 */
function toOpenMetrics(text: string): string {
  const families = text
    // The family of a counter is named without the suffix of its samples.
    .replace(/^(# (?:HELP|TYPE) \w+)_total /gm, '$1 ')
    .replace(/^# TYPE (\w+_(seconds|bytes)) .*$/gm, '$&\n# UNIT $1 $2')
    .replace(/\n\n/g, '\n');
  return `${families}# EOF\n`;
}

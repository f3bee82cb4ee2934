// An OpenTelemetry collector, as far as traces go: takes OTLP over HTTP and keeps what it was sent.
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { expect } from 'vitest';
import { closeServer, listen } from '../http/listen.ts';

export interface CollectedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly status: { readonly code?: number };
  readonly attributes: Record<string, unknown>;
}

interface Entry {
  readonly key: string;
  readonly value: Record<string, unknown> & {
    readonly arrayValue?: { readonly values: readonly Record<string, unknown>[] };
  };
}

/** @param answer body of each response */
export async function startCollector(answer = '{}') {
  const bodies: string[] = [];
  const heads: IncomingHttpHeaders[] = [];
  const paths: string[] = [];
  const server = createServer(async (request, response) => {
    heads.push(request.headers);
    paths.push(request.url ?? '');
    bodies.push((await buffer(request)).toString());
    response.writeHead(200, { 'Content-Type': 'application/json' }).end(answer);
  });
  const port = await listen(server);
  const resources = () => bodies.flatMap((body) => JSON.parse(body).resourceSpans);
  const spans = (): CollectedSpan[] =>
    resources()
      .flatMap(({ scopeSpans }) => scopeSpans)
      .flatMap((scope) => scope.spans)
      .map((span) => ({ ...span, attributes: toObject(span.attributes) }));
  const matching = (attributes: Record<string, unknown>) =>
    spans().filter((span) =>
      Object.entries(attributes).every(([name, value]) => span.attributes[name] === value),
    );
  return {
    endpoint: `http://127.0.0.1:${port}`,
    /** All bytes that were sent to it. */
    text: () => bodies.join('\n'),
    headers: (): readonly IncomingHttpHeaders[] => heads,
    paths: () => new Set(paths),
    spans,
    /** Those with all these attributes, once there are `count` of them. */
    async find(attributes: Record<string, unknown>, count = 1) {
      await expect.poll(() => matching(attributes).length, { timeout: 20_000 }).toBe(count);
      return matching(attributes);
    },
    resource: () => toObject(resources()[0]?.resource.attributes ?? []),
    close: () => closeServer(server),
  };
}

function toObject(entries: readonly Entry[]): Record<string, unknown> {
  return Object.fromEntries(
    entries.map(({ key, value }) => [
      key,
      value.arrayValue?.values.map((one) => Object.values(one)[0]) ?? Object.values(value)[0],
    ]),
  );
}

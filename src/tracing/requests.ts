// A span for each request, in the trace that its sender has begun.
import type { ServerResponse } from 'node:http';
import {
  context,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Clients } from '../observability/clients.ts';

/** Header names of W3C Trace Context. */
export const traceHeaders = ['traceparent', 'tracestate'] as const;

export function followRequests(app: FastifyInstance, tracer: Tracer, clients: Clients): void {
  app.addHook('onRequest', (request, reply, done) => {
    // Probes come every few seconds, and nobody looks for them.
    if (request.routeOptions.url?.startsWith('/health/')) return done();
    const parent = propagation.extract(ROOT_CONTEXT, traceHeadersOf(request));
    const span = tracer.startSpan(nameOf(request), { kind: SpanKind.SERVER }, parent);
    if (span.isRecording()) span.setAttributes(describe(request, clients));
    // Not the hook onResponse, which is not called when the client leaves before the end.
    reply.raw.once('close', () => end(span, reply.raw));
    const { traceId, spanId } = span.spanContext();
    request.log = reply.log = request.log.child({ trace_id: traceId, span_id: spanId });
    context.with(trace.setSpan(parent, span), done);
  });
}

function end(span: Span, { headersSent, statusCode, writableFinished }: ServerResponse): void {
  if (headersSent) span.setAttribute('http.response.status_code', statusCode);
  if (!writableFinished) span.setAttribute('gateway.client.left', true);
  if (headersSent && statusCode >= 500) {
    span.setAttribute('error.type', String(statusCode));
    span.setStatus({ code: SpanStatusCode.ERROR });
  }
  span.end();
}

function traceHeadersOf({ headers }: FastifyRequest): Record<string, string> {
  const sent = traceHeaders.map((name) => [name, headers[name]?.toString()] as const);
  return Object.fromEntries(sent.filter((pair): pair is [(typeof pair)[0], string] => !!pair[1]));
}

function nameOf({ method, routeOptions: { url }, is404 }: FastifyRequest): string {
  return url === undefined || is404 ? method : `${method} ${url}`;
}

/** No query string, which may hold variables, and no header but who the client says it is. */
function describe(request: FastifyRequest, clients: Clients) {
  const { id, method, is404, protocol, raw, routeOptions, url } = request;
  const client = clients.peek(request);
  return {
    'http.request.method': method,
    'url.scheme': protocol,
    'url.path': url.split('?', 1)[0] ?? '',
    'network.protocol.version': raw.httpVersion,
    'gateway.request.id': id,
    'gateway.client.name': client.name,
    'gateway.client.version': client.version,
    ...(routeOptions.url === undefined || is404 ? {} : { 'http.route': routeOptions.url }),
  };
}

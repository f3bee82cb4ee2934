// Spans of requests, in the trace of the client; of operations; and of snapshots of the database.
import type { ServerResponse } from 'node:http';
import {
  type Attributes,
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
import type { GraphQLError } from 'graphql';
import { HttpError } from '../../errors.ts';
import { clientOf } from '../clients.ts';
import { maxNameLength } from '../log.ts';

export function followRequests(app: FastifyInstance, tracer: Tracer): void {
  app.addHook('onRequest', (request, reply, done) => {
    // Health checks of the orchestrator come every few seconds.
    if (request.routeOptions.url?.startsWith('/health/')) return done();
    const parent = propagation.extract(ROOT_CONTEXT, request.headers);
    const span = tracer.startSpan(nameOf(request), { kind: SpanKind.SERVER }, parent);
    if (span.isRecording()) span.setAttributes(describe(request));
    // Not in the hook onResponse, which is not called when the client disconnects.
    reply.raw.once('close', () => end(span, reply.raw));
    const { traceId, spanId } = span.spanContext();
    request.log = reply.log = request.log.child({ trace_id: traceId, span_id: spanId });
    context.with(trace.setSpan(parent, span), done);
  });
}

function end(span: Span, { headersSent, statusCode, writableFinished }: ServerResponse): void {
  if (headersSent) span.setAttribute('http.response.status_code', statusCode);
  if (!writableFinished) span.setAttribute('gateway.client.left', true);
  if (headersSent && statusCode >= 500) fail(span, String(statusCode));
  span.end();
}

export function fail(span: Span, type?: string): void {
  if (type) span.setAttribute('error.type', type);
  span.setStatus({ code: SpanStatusCode.ERROR });
}

const knownMethods = /^(?:CONNECT|DELETE|GET|HEAD|OPTIONS|PATCH|POST|PUT|QUERY|TRACE)$/;

/** @see https://opentelemetry.io/docs/specs/semconv/http/http-spans/ */
export function describeMethod(method: string): { name: string; attributes: Attributes } {
  if (knownMethods.test(method))
    return { name: method, attributes: { 'http.request.method': method } };
  const attributes = { 'http.request.method': '_OTHER', 'http.request.method_original': method };
  return { name: 'HTTP', attributes };
}

/** The query string is in no span: it may hold variables. */
export const withoutQuery = (target: string) => target.split('?', 1)[0] ?? '';

function nameOf({ method, routeOptions: { url }, is404 }: FastifyRequest): string {
  const { name } = describeMethod(method);
  return url === undefined || is404 ? name : `${name} ${url}`;
}

/** Without headers other than the name of the client. */
function describe(request: FastifyRequest) {
  const { id, hostname, method, is404, port, protocol, raw, routeOptions, url } = request;
  const client = clientOf(request);
  return {
    ...describeMethod(method).attributes,
    ...(hostname ? { 'server.address': hostname } : {}),
    'server.port': port ?? (protocol === 'https' ? 443 : 80),
    'url.scheme': protocol,
    'url.path': withoutQuery(url),
    'network.protocol.version': raw.httpVersion,
    'gateway.request.id': id,
    'gateway.client.name': client.name,
    'gateway.client.version': client.version,
    ...(routeOptions.url === undefined || is404 ? {} : { 'http.route': routeOptions.url }),
  };
}

/** What the work for an operation finds out of it. */
interface Traced {
  readonly operation:
    | { readonly isLive: boolean; readonly name: string | undefined; readonly type: string }
    | undefined;
  readonly errors: readonly GraphQLError[] | undefined;
}

/**
 * A span for each operation, and for each document that is refused. No document and no variable: they may hold secrets.
 * The name has no operation name: clients choose it, and backends store each for good.
 * @see https://opentelemetry.io/docs/specs/semconv/graphql/graphql-spans/
 */
export const observeOperation =
  (tracer: Tracer) =>
  async <Result>(run: Traced, work: () => Promise<Result>): Promise<Result> => {
    const span = tracer.startSpan('GraphQL Operation', { kind: SpanKind.SERVER });
    try {
      return await context.with(trace.setSpan(context.active(), span), work);
    } catch (error) {
      // A client error of REST, such as a page past the end, is no failure; its code is in the span.
      const { statusCode = 500 } = error as { readonly statusCode?: number };
      if (statusCode >= 500) fail(span, error instanceof HttpError ? error.code : 'internal');
      throw error;
    } finally {
      describeOperation(span, run);
      span.end();
    }
  };

function describeOperation(span: Span, { operation, errors }: Traced): void {
  if (operation) {
    const type = operation.isLive ? 'subscription' : operation.type;
    const name = operation.name?.slice(0, maxNameLength);
    span.updateName(type).setAttribute('graphql.operation.type', type);
    if (name) span.setAttribute('graphql.operation.name', name);
  }
  if (!errors) return;
  // Error codes only: messages may quote values.
  const codes = errors.map(({ extensions }) => String(extensions['code'] ?? 'BAD_USER_INPUT'));
  span.setAttribute('gateway.graphql.error.codes', [...new Set(codes)]);
  if (codes.includes('INTERNAL_SERVER_ERROR')) fail(span);
}

export function observeLookup(outcome: string): void {
  const span = trace.getActiveSpan();
  span?.addEvent('snapshot known');
  span?.setAttribute('gateway.cache', outcome);
}

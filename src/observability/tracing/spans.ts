// Spans of requests, in the trace of the client; of operations and statements; and of requests to the old service.

import type { IncomingMessage, ServerResponse } from 'node:http';
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
import type pg from 'pg';
import type { ObserveStatement } from '../../database/connection/observe.ts';
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

function fail(span: Span, type?: string): void {
  if (type) span.setAttribute('error.type', type);
  span.setStatus({ code: SpanStatusCode.ERROR });
}

const knownMethods = /^(?:CONNECT|DELETE|GET|HEAD|OPTIONS|PATCH|POST|PUT|QUERY|TRACE)$/;

/** @see https://opentelemetry.io/docs/specs/semconv/http/http-spans/ */
function describeMethod(method: string): { name: string; attributes: Attributes } {
  if (knownMethods.test(method))
    return { name: method, attributes: { 'http.request.method': method } };
  const attributes = { 'http.request.method': '_OTHER', 'http.request.method_original': method };
  return { name: 'HTTP', attributes };
}

/** The query string is in no span: it may hold variables. */
const withoutQuery = (target: string) => target.split('?', 1)[0] ?? '';

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

/** Statements outside of a request, such as maintenance, are not traced. */
export const observeStatement =
  (tracer: Tracer): ObserveStatement =>
  ({ text, client }) => {
    if (!trace.getActiveSpan()?.isRecording()) return undefined;
    const { name, attributes } = describeStatement(text);
    const span = tracer.startSpan(name, {
      kind: SpanKind.CLIENT,
      attributes: { ...attributes, ...serverOf(client) },
    });
    return (error) => endStatement(span, error);
  };

/** @see https://opentelemetry.io/docs/specs/semconv/db/postgresql/ */
function serverOf({ host, port, database }: pg.Client): Attributes {
  // The host of the embedded database is the folder of its socket, which has no port.
  const isSocket = host.startsWith('/');
  return {
    'server.address': host,
    ...(isSocket ? {} : { 'server.port': port }),
    ...(database === undefined ? {} : { 'db.namespace': database }),
  };
}

/** Records the code of an error only: its message may quote values. The log has the message. */
function endStatement(span: Span, error: unknown): void {
  if (error) {
    const { code, name } = error as Error & { readonly code?: string };
    if (code) span.setAttribute('db.response.status_code', code);
    fail(span, code ?? name);
  }
  span.end();
}

/** Values are parameters of a statement, so its text holds none. */
function describeStatement(text: string): { name: string; attributes: Attributes } {
  const [operation] =
    /\b(?:select|insert|update|delete|merge|begin|commit|rollback|set)\b/i.exec(text) ?? [];
  const [, target] = /\b(?:from|into|update)\s+(?:"?public"?\.)?"?(\w+)/i.exec(text) ?? [];
  const name = [operation?.toUpperCase() ?? 'statement', target].filter(Boolean).join(' ');
  const attributes: Attributes = {
    'db.system.name': 'postgresql',
    'db.query.summary': name,
    'db.query.text': text,
    'db.operation.name': operation?.toUpperCase(),
  };
  return { name, attributes };
}

interface UpstreamRequest {
  readonly method: string;
  readonly target: string;
  /** Names and values alternately, as `rawHeaders` of Node. */
  readonly headers: readonly string[];
}

/**
 * A span for a request to another service. `traceparent` of this gateway replaces that of the caller.
 * @see https://www.w3.org/TR/trace-context/
 */
export const observeUpstream =
  (tracer: Tracer) =>
  async (
    { href, hostname, port, protocol }: URL,
    request: UpstreamRequest,
    open: (headers: readonly string[]) => Promise<IncomingMessage>,
  ): Promise<IncomingMessage> => {
    const { name, attributes } = describeMethod(request.method);
    const span = tracer.startSpan(name, {
      kind: SpanKind.CLIENT,
      attributes: {
        ...attributes,
        'server.address': hostname.replace(/^\[|\]$/g, ''),
        'server.port': Number(port) || (protocol === 'https:' ? 443 : 80),
        'url.full': href.replace(/\/$/, '') + withoutQuery(request.target),
      },
    });
    const own: Record<string, string> = {};
    propagation.inject(trace.setSpan(context.active(), span), own);
    try {
      const answer = await open(replaceHeaders(request, own));
      const { statusCode = 0 } = answer;
      span.setAttribute('http.response.status_code', statusCode);
      if (statusCode >= 400) fail(span, String(statusCode));
      answer.once('close', () => span.end());
      return answer;
    } catch (error) {
      fail(span, error instanceof HttpError ? error.code : 'unknown');
      span.end();
      throw error;
    }
  };

function replaceHeaders({ headers }: UpstreamRequest, own: Record<string, string>): string[] {
  const names = propagation.fields();
  const kept: string[] = [];
  for (let index = 0; index < headers.length; index += 2) {
    const [name = '', value = ''] = headers.slice(index, index + 2);
    if (!names.includes(name.toLowerCase())) kept.push(name, value);
  }
  return [...kept, ...Object.entries(own).flat()];
}

// Spans of requests to the old service, with propagation of the trace.
import type { IncomingMessage } from 'node:http';
import { context, propagation, SpanKind, type Tracer, trace } from '@opentelemetry/api';
import { HttpError } from '../errors.ts';
import { fail, traceHeaders } from './requests.ts';

export interface UpstreamRequest {
  readonly method: string;
  readonly target: string;
  /** Names and values alternately, as `rawHeaders` of Node. */
  readonly headers: readonly string[];
}

/** A client of another service. */
export interface Upstream<Request> {
  readonly host: string;
  open(request: Request): Promise<IncomingMessage>;
  close(): void;
}

/** `traceparent` of this gateway replaces that of the caller. @see https://www.w3.org/TR/trace-context/ */
export function traceUpstream<Request extends UpstreamRequest>(
  upstream: Upstream<Request>,
  tracer: Tracer,
): Upstream<Request> {
  return {
    host: upstream.host,
    close: () => upstream.close(),
    async open(request: Request) {
      const { method, target } = request;
      const span = tracer.startSpan(`${method} old service`, {
        kind: SpanKind.CLIENT,
        attributes: {
          'http.request.method': method,
          'server.address': upstream.host,
          'url.path': target.split('?', 1)[0] ?? '',
        },
      });
      const own: Record<string, string> = {};
      propagation.inject(trace.setSpan(context.active(), span), own);
      try {
        const answer = await upstream.open({ ...request, headers: replaceHeaders(request, own) });
        span.setAttribute('http.response.status_code', answer.statusCode ?? 0);
        answer.once('close', () => span.end());
        return answer;
      } catch (error) {
        fail(span, error instanceof HttpError ? error.code : 'unknown');
        span.end();
        throw error;
      }
    },
  };
}

function replaceHeaders({ headers }: UpstreamRequest, own: Record<string, string>): string[] {
  const kept: string[] = [];
  for (let index = 0; index < headers.length; index += 2) {
    const [name = '', value = ''] = headers.slice(index, index + 2);
    if (!traceHeaders.some((header) => header === name.toLowerCase())) kept.push(name, value);
  }
  return [...kept, ...traceHeaders.flatMap((name) => (own[name] ? [name, own[name]] : []))];
}

// Spans of requests to the old service, with propagation of the trace.
import type { IncomingMessage } from 'node:http';
import { context, propagation, SpanKind, type Tracer, trace } from '@opentelemetry/api';
import { HttpError } from '../../errors.ts';
import { describeMethod, fail, withoutQuery } from './requests.ts';

export interface UpstreamRequest {
  readonly method: string;
  readonly target: string;
  /** Names and values alternately, as `rawHeaders` of Node. */
  readonly headers: readonly string[];
}

/** A client of another service. */
export interface Upstream<Request> {
  readonly base: URL;
  open(request: Request): Promise<IncomingMessage>;
  close(): void;
}

/** `traceparent` of this gateway replaces that of the caller. @see https://www.w3.org/TR/trace-context/ */
export function traceUpstream<Request extends UpstreamRequest>(
  upstream: Upstream<Request>,
  tracer: Tracer,
): Upstream<Request> {
  return {
    base: upstream.base,
    close: () => upstream.close(),
    async open(request: Request) {
      const { method, target } = request;
      const { name, attributes } = describeMethod(method);
      const { href, hostname, port, protocol } = upstream.base;
      const span = tracer.startSpan(name, {
        kind: SpanKind.CLIENT,
        attributes: {
          ...attributes,
          'server.address': hostname.replace(/^\[|\]$/g, ''),
          'server.port': Number(port) || (protocol === 'https:' ? 443 : 80),
          'url.full': href.replace(/\/$/, '') + withoutQuery(target),
        },
      });
      const own: Record<string, string> = {};
      propagation.inject(trace.setSpan(context.active(), span), own);
      try {
        const answer = await upstream.open({ ...request, headers: replaceHeaders(request, own) });
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
    },
  };
}

function replaceHeaders({ headers }: UpstreamRequest, own: Record<string, string>): string[] {
  const names = propagation.fields();
  const kept: string[] = [];
  for (let index = 0; index < headers.length; index += 2) {
    const [name = '', value = ''] = headers.slice(index, index + 2);
    if (!names.includes(name.toLowerCase())) kept.push(name, value);
  }
  return [...kept, ...Object.entries(own).flat()];
}

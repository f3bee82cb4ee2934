// A span for each request to the old service, which is told the trace.
import type { IncomingMessage } from 'node:http';
import { context, propagation, SpanKind, type Tracer, trace } from '@opentelemetry/api';
import { HttpError } from '../errors.ts';
import { fail, traceHeaders } from './requests.ts';

interface UpstreamRequest {
  readonly method: string;
  readonly target: string;
  /** Names and values in turn, as they go over the wire. */
  readonly headers: readonly string[];
}

/** What sends requests to another service. */
interface Upstream<Request> {
  readonly host: string;
  open(request: Request): Promise<IncomingMessage>;
}

/** The same way to the old service, with `traceparent` of this gateway in place of that of the client. */
export function traceUpstream<Request extends UpstreamRequest, Sender extends Upstream<Request>>(
  upstream: Sender & Upstream<Request>,
  tracer: Tracer,
): Sender {
  return {
    ...upstream,
    async open(asked: Request) {
      const { method, target } = asked;
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
        const answer = await upstream.open({ ...asked, headers: replaceHeaders(asked, own) });
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

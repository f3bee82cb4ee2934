// A span for each request to the old service, which is told the trace.
import { context, propagation, SpanKind, type Tracer, trace } from '@opentelemetry/api';
import { HttpError } from '../errors.ts';
import { type Asked, pairsOf, type Upstream } from '../legacy/upstream.ts';
import { fail, traceHeaders } from './requests.ts';

/** The same way to the old service, with `traceparent` of this gateway in place of that of the client. */
export function traceUpstream(upstream: Upstream, tracer: Tracer): Upstream {
  return {
    ...upstream,
    async open(asked) {
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

function replaceHeaders({ headers }: Asked, own: Record<string, string>): string[] {
  const kept = pairsOf(headers).filter(
    ([name]) => !traceHeaders.some((header) => header === name.toLowerCase()),
  );
  const added = traceHeaders.flatMap((name) => (own[name] ? [[name, own[name]]] : []));
  return [...kept, ...added].flat();
}

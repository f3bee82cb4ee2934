// A span for each operation, and for each probe of what the database shows.
import {
  context,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import type { ExecutionResult } from 'graphql';
import type { AnswerCache } from '../cache/answer-cache.ts';
import type { Snapshots } from '../database/snapshots.ts';
import { HttpError } from '../errors.ts';
import type { Engine } from '../graphql/engine.ts';
import { maxNameLength } from '../observability/log.ts';
import { RestError } from '../rest/errors.ts';

/** Operation names that may name a span: clients choose them, and backends keep each for good. */
const maxNames = 100;

/** The same engine, with a span for each answer. No document and no variable: they may hold secrets. */
export function traceEngine(engine: Engine, tracer: Tracer): Engine {
  const names = new Set<string>();
  const isNamed = (name: string) => {
    if (names.size < maxNames) names.add(name);
    return names.has(name);
  };
  return {
    ...engine,
    async answer(question, asker) {
      const { operation, toAnswer } = question;
      const type = operation.isLive ? 'subscription' : operation.type;
      const name = operation.name?.slice(0, maxNameLength);
      const span = tracer.startSpan(name && isNamed(name) ? `${type} ${name}` : type);
      span.setAttribute('graphql.operation.type', type);
      if (name) span.setAttribute('graphql.operation.name', name);
      try {
        return await context.with(trace.setSpan(context.active(), span), () =>
          engine.answer(
            {
              ...question,
              toAnswer(result, isForAll) {
                describeErrors(span, result);
                return toAnswer(result, isForAll);
              },
            },
            asker,
          ),
        );
      } catch (error) {
        // A client error of REST, such as a page past the end, is no failure; its code is in the span.
        if (error instanceof RestError && error.statusCode < 500) throw error;
        span.setAttribute('error.type', error instanceof HttpError ? error.code : 'internal');
        span.setStatus({ code: SpanStatusCode.ERROR });
        throw error;
      } finally {
        span.end();
      }
    },
  };
}

/** Their codes only: the words may quote values. */
function describeErrors(span: Span, { errors }: ExecutionResult): void {
  if (!errors) return;
  const codes = errors.map(({ extensions }) => String(extensions['code'] ?? 'BAD_USER_INPUT'));
  span.setAttribute('gateway.graphql.error.codes', [...new Set(codes)]);
  if (codes.includes('INTERNAL_SERVER_ERROR')) span.setStatus({ code: SpanStatusCode.ERROR });
}

/** Says of each answer whether it came from memory. */
export function followCache(cache: AnswerCache): void {
  cache.observe((outcome) => {
    const span = trace.getActiveSpan();
    span?.addEvent('snapshot known');
    span?.setAttribute('gateway.cache', outcome);
  });
}

/**
 * One probe answers many requests: so it is a trace of its own, and linked to and from those that wait
 * for it.
 */
export function traceSnapshots(
  snapshots: Snapshots,
  tracer: Tracer,
): Pick<Snapshots, 'changes' | 'takeNext'> {
  const probes = new WeakMap<Promise<unknown>, Span>();
  return {
    changes: snapshots.changes,
    takeNext() {
      const taken = context.with(ROOT_CONTEXT, () => snapshots.takeNext());
      const asker = trace.getActiveSpan();
      if (!asker?.isRecording()) return taken;
      const probe = probes.get(taken) ?? startProbe(taken, tracer);
      probes.set(taken, probe);
      probe.addLink({ context: asker.spanContext() });
      asker.addLink({ context: probe.spanContext() });
      return taken;
    },
  };
}

function startProbe(taken: Promise<unknown>, tracer: Tracer): Span {
  const span = tracer.startSpan('snapshot probe', {
    kind: SpanKind.CLIENT,
    root: true,
    attributes: { 'db.system.name': 'postgresql', 'db.operation.name': 'SELECT' },
  });
  taken.then(
    () => span.end(),
    () => {
      span.setStatus({ code: SpanStatusCode.ERROR });
      span.end();
    },
  );
  return span;
}

// Traces for OpenTelemetry. Loaded only when OTEL_EXPORTER_OTLP_ENDPOINT is set: without it, no hook is added
// and none of its packages is loaded, but for the bare interface, which prom-client takes in any case.
//
// What OpenTelemetry's packages read from the environment by themselves holds too: OTEL_SERVICE_NAME,
// OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER and _ARG, OTEL_EXPORTER_OTLP_HEADERS and _TIMEOUT, OTEL_BSP_*.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Tracer } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
} from '@opentelemetry/resources';
import {
  BatchSpanProcessor,
  NodeTracerProvider,
  type SpanExporter,
} from '@opentelemetry/sdk-trace-node';
import type { FastifyBaseLogger, FastifyInstance } from 'fastify';
import type { AnswerCache, Probes } from '../cache/answer-cache.ts';
import type { Database } from '../database/database.ts';
import type { Engine } from '../graphql/engine.ts';
import type { Upstream } from '../legacy/upstream.ts';
import type { Clients } from '../observability/clients.ts';
import { followCache, followRequests, traceEngine, traceSnapshots } from './requests.ts';
import { followStatements } from './statements.ts';
import { traceUpstream } from './upstream.ts';

export interface Tracing {
  /** A span for each request; to be called before all other hooks, which then run within it. */
  followRequests(app: FastifyInstance, clients: Clients): void;
  /** A span for each statement; to be called before the first one is sent. */
  followStatements(pool: Database['pool']): void;
  followCache(cache: AnswerCache): void;
  traceSnapshots(snapshots: Probes): Probes;
  traceEngine(engine: Engine): Engine;
  traceUpstream(upstream: Upstream): Upstream;
  /** Sends what is left, as far as that is quick. */
  close(): Promise<void>;
}

/** Milliseconds between two lines about a collector that takes nothing. */
const pause = 60_000;
const grace = 1_000;

/** @param endpoint of an OpenTelemetry collector, without a trailing slash */
export function startTracing(endpoint: string, log: FastifyBaseLogger): Tracing {
  const exporter = new OTLPTraceExporter({ url: `${endpoint}/v1/traces` });
  const provider = new NodeTracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes({ 'service.name': 'outfit-gateway' }))
      .merge(detectResources({ detectors: [envDetector] })),
    // It keeps a bounded number of spans and drops what is more, so a collector that is down costs nothing.
    spanProcessors: [new BatchSpanProcessor(warnOfFailures(exporter, endpoint, log))],
  });
  provider.register();
  const tracer: Tracer = provider.getTracer('outfit-gateway');
  return {
    followRequests: (app, clients) => followRequests(app, tracer, clients),
    followStatements: (pool) => followStatements(pool, tracer),
    followCache,
    traceSnapshots: (snapshots) => traceSnapshots(snapshots, tracer),
    traceEngine: (engine) => traceEngine(engine, tracer),
    traceUpstream: (upstream) => traceUpstream(upstream, tracer),
    close: () => Promise.race([provider.shutdown().catch(() => {}), sleep(grace)]),
  };
}

function warnOfFailures(
  exporter: SpanExporter,
  endpoint: string,
  log: FastifyBaseLogger,
): SpanExporter {
  let quietUntil = 0;
  return {
    export(spans, settle) {
      exporter.export(spans, (result) => {
        settle(result);
        if (!result.error || Date.now() < quietUntil) return;
        quietUntil = Date.now() + pause;
        const reason = result.error.message || result.error.name;
        log.warn({ reason }, `traces are lost: ${endpoint} does not take them`);
      });
    },
    forceFlush: async () => exporter.forceFlush?.(),
    shutdown: () => exporter.shutdown(),
  };
}

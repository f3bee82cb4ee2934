// Tracing with OpenTelemetry. Loaded only when OTEL_EXPORTER_OTLP_ENDPOINT is set: without it, no hook is added and no
// package loaded but the API, which prom-client imports. The packages read other OTEL_* variables themselves.
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
import type { StateSource } from '../database/changes/snapshots.ts';
import type { Database } from '../database/database.ts';
import type { Engine } from '../graphql/engine/engine.ts';
import type { Clients } from '../observability/clients.ts';
import { followCache, followEngine, followRequests, traceSnapshots } from './requests.ts';
import { followStatements } from './statements.ts';
import { traceUpstream, type Upstream, type UpstreamRequest } from './upstream.ts';

/** Throttle: milliseconds between two warnings. */
const warningInterval = 60_000;
/** Milliseconds that the last spans may take at shutdown. */
const flushTimeout = 1_000;

/** Registers the global tracer provider, and instruments the parts of a gateway. */
export class Tracing {
  readonly followCache = followCache;
  readonly #provider: NodeTracerProvider;
  readonly #tracer: Tracer;

  constructor(endpoint: string, log: FastifyBaseLogger) {
    const exporter = new OTLPTraceExporter({ url: `${endpoint}/v1/traces` });
    this.#provider = new NodeTracerProvider({
      resource: defaultResource()
        .merge(resourceFromAttributes({ 'service.name': 'outfit-gateway' }))
        .merge(detectResources({ detectors: [envDetector] })),
      // Buffers a bounded number of spans and drops the rest, so a collector that is down costs nothing.
      spanProcessors: [new BatchSpanProcessor(warnOfFailures(exporter, endpoint, log))],
    });
    this.#provider.register();
    this.#tracer = this.#provider.getTracer('outfit-gateway');
  }

  /** To be called before other hooks are added, so that they run within the span. */
  followRequests(app: FastifyInstance, clients: Clients): void {
    followRequests(app, this.#tracer, clients);
  }

  /** To be called before the first statement is sent. */
  followStatements(pool: Database['pool']): void {
    followStatements(pool, this.#tracer);
  }

  followEngine(engine: Engine): void {
    followEngine(engine, this.#tracer);
  }

  traceSnapshots(snapshots: StateSource): StateSource {
    return traceSnapshots(snapshots, this.#tracer);
  }

  /** Bound, since it is passed on as a function. */
  readonly traceUpstream = <Request extends UpstreamRequest>(upstream: Upstream<Request>) =>
    traceUpstream(upstream, this.#tracer);

  /** Exports the remaining spans, within a timeout. */
  async close(): Promise<void> {
    await Promise.race([this.#provider.shutdown().catch(() => {}), sleep(flushTimeout)]);
  }
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
        quietUntil = Date.now() + warningInterval;
        const reason = result.error.message || result.error.name;
        log.warn({ reason }, `traces are lost: ${endpoint} does not take them`);
      });
    },
    forceFlush: async () => exporter.forceFlush?.(),
    shutdown: () => exporter.shutdown(),
  };
}

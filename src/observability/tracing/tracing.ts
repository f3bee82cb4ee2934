// Tracing with OpenTelemetry. Loaded only when an endpoint or an exporter is set: without it, no hook is added and no
// package loaded but the API, which prom-client imports. The packages read other OTEL_* variables themselves.

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  context,
  type DiagLogger,
  DiagLogLevel,
  diag,
  propagation,
  type TextMapPropagator,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import {
  CompositePropagator,
  loggingErrorHandler,
  setGlobalErrorHandler,
  W3CBaggagePropagator,
  W3CTraceContextPropagator,
} from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
} from '@opentelemetry/resources';
import {
  BatchSpanProcessor,
  ConsoleSpanExporter,
  NodeTracerProvider,
  type SpanExporter,
} from '@opentelemetry/sdk-trace-node';

import type { FastifyBaseLogger, FastifyInstance } from 'fastify';
import { cut } from '../../errors.ts';
import { createLogThrottle } from '../log.ts';
import {
  followRequests,
  observeLookup,
  observeOperation,
  observeStatement,
  observeUpstream,
} from './spans.ts';

/** Throttle: milliseconds between two warnings. */
const warningInterval = 60_000;
/** Milliseconds that the last spans may take at shutdown. */
const flushTimeout = 1_000;

/** The settings of OpenTelemetry that its packages do not read themselves. */
interface TracingConfig {
  readonly otelDisabled: string;
  readonly otlpProtocol: string;
  readonly otlpEndpoint: string | undefined;
  readonly otlpTracesEndpoint: string | undefined;
  readonly propagators: readonly string[];
  readonly tracesExporter: readonly string[];
}

type Log = Pick<FastifyBaseLogger, 'warn'> & { readonly level?: string };

/** Registers the global tracer provider, and instruments the parts of a gateway. */
export class Tracing {
  readonly observeLookup = observeLookup;
  readonly observeOperation;
  readonly observeStatement;
  readonly observeUpstream;
  readonly #provider: NodeTracerProvider;
  readonly #tracer: Tracer;

  /** @param version of this gateway */
  constructor(config: TracingConfig, version: string, log: Log) {
    const warn = (message: string) => log.warn(message);
    // What the packages find wrong in the environment while they read it, such as an unknown sampler.
    diag.setLogger({ error: warn, warn } as DiagLogger, DiagLogLevel.WARN);
    if (!/^(?:true|false)$/i.test(config.otelDisabled)) {
      warn(`OTEL_SDK_DISABLED is "${config.otelDisabled}", which counts as false`);
    }
    if (!/^http\/(?:json|protobuf)$/.test(config.otlpProtocol)) {
      warn(
        `OTEL_EXPORTER_OTLP_PROTOCOL is "${config.otlpProtocol}", which is left out: traces are sent as http/json, to a port such as 4318`,
      );
    }
    const exporters = choose('OTEL_TRACES_EXPORTER', config.tracesExporter, exporterKinds, warn);
    this.#provider = new NodeTracerProvider({
      resource: defaultResource()
        .merge(
          resourceFromAttributes({
            'service.name': 'outfit-gateway',
            'service.version': version,
            'service.instance.id': randomUUID(),
          }),
        )
        .merge(detectResources({ detectors: [envDetector] })),
      // Buffers a bounded number of spans and drops the rest, so a collector that is down costs nothing.
      spanProcessors: (exporters.length > 0 ? exporters : [exporterKinds.otlp]).map(
        (open) => new BatchSpanProcessor(open(config)),
      ),
    });
    const propagators = choose('OTEL_PROPAGATORS', config.propagators, propagatorKinds, warn);
    this.#provider.register({
      propagator: new CompositePropagator({ propagators: propagators.flatMap((open) => open()) }),
    });
    this.#tracer = this.#provider.getTracer('outfit-gateway', version);
    this.observeOperation = observeOperation(this.#tracer);
    this.observeStatement = observeStatement(this.#tracer);
    this.observeUpstream = observeUpstream(this.#tracer);
    // Of what the packages say from now on, only lost traces are of interest.
    const throttleLoss = createLogThrottle(false, warningInterval);
    const lost = `traces are lost: ${endpointOf(config)} does not take all of them`;
    const warnOfLoss = (reason: string) =>
      throttleLoss(log, (suppressed) => log.warn({ reason: cut(reason, 200), suppressed }, lost));
    setGlobalErrorHandler((error) =>
      warnOfLoss(typeof error === 'string' ? error : error.message || String(error.name)),
    );
    const onWarning = (message: string, ...more: unknown[]) => {
      if (message.includes('Partial Success')) warnOfLoss(more.join(' '));
    };
    diag.disable();
    diag.setLogger({ error() {}, warn: onWarning } as unknown as DiagLogger, DiagLogLevel.WARN);
  }

  /** To be called before other hooks are added, so that they run within the span. */
  followRequests(app: FastifyInstance): void {
    followRequests(app, this.#tracer);
  }

  /** Exports the remaining spans, within a timeout. */
  async close(): Promise<void> {
    await Promise.race([this.#provider.shutdown().catch(() => {}), sleep(flushTimeout)]);
    setGlobalErrorHandler(loggingErrorHandler());
    for (const global of [diag, trace, context, propagation]) global.disable();
  }
}

const propagatorKinds = {
  tracecontext: (): TextMapPropagator[] => [new W3CTraceContextPropagator()],
  baggage: () => [new W3CBaggagePropagator()],
  none: () => [],
};

const endpointOf = ({ otlpEndpoint, otlpTracesEndpoint }: TracingConfig) =>
  otlpTracesEndpoint ?? `${otlpEndpoint ?? 'http://localhost:4318'}/v1/traces`;

const exporterKinds = {
  otlp: (config: TracingConfig): SpanExporter => new OTLPTraceExporter({ url: endpointOf(config) }),
  console: (): SpanExporter => new ConsoleSpanExporter(),
};

/** Those of the named kinds that there are. */
function choose<Kind>(
  setting: string,
  named: readonly string[],
  kinds: Readonly<Record<string, Kind>>,
  warn: (message: string) => void,
): Kind[] {
  return named.flatMap((name) => {
    const kind = Object.hasOwn(kinds, name) ? kinds[name] : undefined;
    if (kind) return [kind];
    warn(
      `${setting} names "${name}", which is left out: known are ${Object.keys(kinds).join(', ')}`,
    );
    return [];
  });
}

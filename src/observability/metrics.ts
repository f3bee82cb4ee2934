// What is measured.
import type { FastifyInstance } from 'fastify';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { ConcurrencyLimit } from '../admission/concurrency-limit.ts';
import type { AnswerCache } from '../cache/answer-cache.ts';
import type { Database } from '../database/database.ts';
import type { LaneState } from '../database/lane.ts';
import type { EventStreams } from '../http/event-stream.ts';
import type { Upkeep } from '../outfits/fold.ts';
import { version } from '../package.ts';
import { maxNameLength } from './log.ts';
import type { Measured } from './metrics-server.ts';
import type { UnknownParameters } from './unknown-parameters.ts';

import { Usage } from './usage.ts';

/** What is measured of one process. */
export interface Metrics extends Measured {
  /** Who calls what. */
  readonly usage: Usage;
  /** For what a capability measures that is not always there. */
  readonly registry: Registry;
  /** Counts and times the answers of `app`; to be called before its routes are added. */
  countAnswers(app: FastifyInstance): void;
  follow(parts: { cache: AnswerCache; limit: ConcurrencyLimit }): void;
  followStreams(streams: Pick<EventStreams, 'open' | 'opened'>): void;
  followCounts(upkeep: Pick<Upkeep, 'wrongCounts'>): void;
  countUnknown(parameters: UnknownParameters): void;
}

/** Operation names that are told apart: clients choose them, and every one costs memory for good. */
const maxOperations = 100;

const seconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export function createMetrics({ pool, snapshots }: Pick<Database, 'pool' | 'snapshots'>): Metrics {
  const registry = new Registry();
  const registers = [registry];
  // The process: CPU, memory, garbage collection, event-loop lag.
  collectDefaultMetrics({ register: registry });
  new Gauge({
    name: 'gateway_build_info',
    help: 'Which gateway this is; always 1.',
    labelNames: ['version'],
    aggregator: 'first',
    registers,
  }).set({ version }, 1);
  new Gauge({ name: 'gateway_workers', help: 'Processes that serve.', registers }).set(1);

  const probes = new Histogram({
    name: 'gateway_snapshot_probe_seconds',
    help: 'Time that the database took to say what it shows.',
    buckets: seconds,
    registers,
  });
  snapshots.observe((milliseconds) => probes.observe(milliseconds / 1000));

  /** @param aggregator how the values of several workers become one */
  const gauge = (
    name: string,
    help: string,
    read: () => number,
    aggregator: 'max' | 'sum' = 'sum',
  ) =>
    new Gauge({
      name,
      help,
      aggregator,
      registers,
      collect() {
        this.set(read());
      },
    });
  const counter = (name: string, help: string, read: () => number) =>
    new Counter({
      name,
      help,
      registers,
      collect() {
        this.reset();
        this.inc(read());
      },
    });

  gauge(
    'gateway_database_connections_in_use',
    'Connections of the pool that work on something.',
    () => pool.totalCount - pool.idleCount,
  );
  gauge(
    'gateway_database_connections_idle',
    'Connections of the pool that are free.',
    () => pool.idleCount,
  );
  gauge(
    'gateway_database_connections_waiting',
    'Statements that wait for a connection of the pool.',
    () => pool.lanes['all']?.waiting ?? 0,
  );
  const fill = (metric: Gauge | Counter, read: (lane: LaneState) => number) => {
    metric.reset();
    for (const [lane, state] of Object.entries(pool.lanes)) metric.inc({ lane }, read(state));
  };
  const perLane = { labelNames: ['lane'], registers };
  new Gauge({
    ...perLane,
    name: 'gateway_database_lane_running',
    help: 'Statements under way, by lane; those of trial and expensive are also among all.',
    collect() {
      fill(this, ({ running }) => running);
    },
  });
  new Gauge({
    ...perLane,
    name: 'gateway_database_lane_waiting',
    help: 'Statements that wait for a place in their lane.',
    collect() {
      fill(this, ({ waiting }) => waiting);
    },
  });
  new Counter({
    ...perLane,
    name: 'gateway_database_lane_refused_total',
    help: 'Statements that were refused because their lane was full.',
    collect() {
      fill(this, ({ refused }) => refused);
    },
  });
  counter(
    'gateway_database_expensive_timeouts_total',
    'Expensive statements that EXPENSIVE_QUERY_TIMEOUT has stopped.',
    () => pool.timedOut,
  );

  const usage = new Usage();
  new Counter({
    name: 'gateway_client_requests_total',
    help: 'Answers of REST and GraphQL by the client that asked: at most 50 names, and other.',
    labelNames: ['client', 'interface'],
    registers,
    collect() {
      this.reset();
      for (const { client, interface: kind, requests } of usage.requests()) {
        this.inc({ client, interface: kind }, requests);
      }
    },
  });

  return {
    usage,
    countAnswers(app) {
      countAnswers(app, registry);
      usage.follow(app);
    },
    registry,
    follow({ cache, limit }) {
      counter('gateway_cache_hits_total', 'Answers from memory.', () => cache.hits);
      counter('gateway_cache_misses_total', 'Answers that were read anew.', () => cache.misses);
      counter(
        'gateway_cache_touched_total',
        'Answers in memory that a commit had touched when they were wanted again.',
        () => cache.touched,
      );
      counter(
        'gateway_cache_cleared_total',
        'Times that all answers in memory ended, since nobody knew what was committed.',
        () => cache.cleared,
      );
      gauge('gateway_cache_bytes', 'Size of the answers in memory.', () => cache.bytes);
      gauge('gateway_requests_under_way', 'Requests that are worked on.', () => limit.running);
      gauge('gateway_requests_waiting', 'Requests that wait for their turn.', () => limit.waiting);
    },
    followStreams(streams) {
      gauge('gateway_streams', 'Live answers that are being streamed.', () => streams.open);
      counter('gateway_streams_total', 'Streams that were opened.', () => streams.opened);
    },
    followCounts(upkeep) {
      gauge(
        'gateway_counts_wrong',
        'Nodes of the counts that the last sample, each minute, found to differ from the outfits.',
        () => upkeep.wrongCounts() ?? 0,
        'max',
      );
    },
    countUnknown(parameters) {
      new Counter({
        name: 'gateway_unknown_parameters_total',
        help: 'Requests of REST with a query parameter that nothing reads; for each client at most 20 names, and other.',
        labelNames: ['client', 'parameter'],
        registers,
        collect() {
          this.reset();
          for (const { client, parameter, requests } of parameters) {
            this.inc({ client, parameter }, requests);
          }
        },
      });
    },
    async print() {
      return { contentType: registry.contentType, text: await registry.metrics() };
    },
    readUsage: async () => usage.report(),
  };
}

function countAnswers(app: FastifyInstance, registry: Registry): void {
  const durations = new Histogram({
    name: 'gateway_request_duration_seconds',
    help: 'Time from the head of a request to the end of its answer.',
    labelNames: ['method', 'route', 'operation', 'status'],
    buckets: seconds,
    registers: [registry],
  });
  new Counter({
    name: 'gateway_requests_total',
    help: 'Answers, refused requests (429, 503) among them.',
    labelNames: ['method', 'route', 'operation', 'status'],
    registers: [registry],
    // Read off when it is asked for: counting each answer twice would cost twice as much.
    async collect() {
      this.reset();
      for (const { metricName, labels, value } of (await durations.get()).values) {
        if (metricName?.endsWith('_count')) this.inc(labels, value);
      }
    },
  });

  const operations = new Set<string>();
  const label = (name: string | undefined) => {
    if (name === undefined || operations.has(name)) return name ?? '';
    if (name.length > maxNameLength || operations.size === maxOperations) return 'other';
    operations.add(name);
    return name;
  };

  app.addHook('onResponse', (request, reply, done) => {
    const { method, routeOptions, operationName, streamedAfter } = request;
    const route = routeOptions.url ?? 'none';
    const labels = { method, route, operation: label(operationName), status: reply.statusCode };
    durations.observe(labels, (streamedAfter ?? reply.elapsedTime) / 1000);
    done();
  });
}

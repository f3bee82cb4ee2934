// What is measured.
import type { FastifyInstance } from 'fastify';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { ConcurrencyLimit } from '../admission/concurrency-limit.ts';
import type { AnswerCache } from '../cache/answer-cache.ts';
import type { Database } from '../database/database.ts';
import { maxNameLength } from './log.ts';

/** What is measured of one gateway. */
export interface Metrics {
  /** Counts and times the answers of `app`; to be called before its routes are added. */
  countAnswers(app: FastifyInstance): void;
  follow(parts: { cache: AnswerCache; limit: ConcurrencyLimit }): void;
  /** All values in the text format of Prometheus. */
  print(): Promise<{ contentType: string; text: string }>;
}

/** Operation names that are told apart: clients choose them, and every one costs memory for good. */
const maxOperations = 100;

const seconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export function createMetrics({ pool, snapshots }: Pick<Database, 'pool' | 'snapshots'>): Metrics {
  const registry = new Registry();
  const registers = [registry];
  // The process: CPU, memory, garbage collection, event-loop lag.
  collectDefaultMetrics({ register: registry });

  const probes = new Histogram({
    name: 'gateway_snapshot_probe_seconds',
    help: 'Time that the database took to say what it shows.',
    buckets: seconds,
    registers,
  });
  snapshots.observe((milliseconds) => probes.observe(milliseconds / 1000));

  const gauge = (name: string, help: string, read: () => number) =>
    new Gauge({
      name,
      help,
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
    () => pool.waitingCount,
  );

  return {
    countAnswers: (app) => countAnswers(app, registry),
    follow({ cache, limit }) {
      counter('gateway_cache_hits_total', 'Answers from memory.', () => cache.hits);
      counter('gateway_cache_misses_total', 'Answers that were read anew.', () => cache.misses);
      gauge('gateway_cache_bytes', 'Size of the answers in memory.', () => cache.bytes);
      gauge('gateway_requests_under_way', 'Requests that are worked on.', () => limit.running);
      gauge('gateway_requests_waiting', 'Requests that wait for their turn.', () => limit.waiting);
    },
    async print() {
      return { contentType: registry.contentType, text: await registry.metrics() };
    },
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

  app.addHook('onResponse', ({ method, routeOptions, operationName }, reply, done) => {
    const route = routeOptions.url ?? 'none';
    const labels = { method, route, operation: label(operationName), status: reply.statusCode };
    durations.observe(labels, reply.elapsedTime / 1000);
    done();
  });
}

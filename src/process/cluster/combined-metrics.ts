// Metrics summed over all workers, exited ones included: a counter that falls with a worker would look like
// a restart of the whole gateway.
import { AggregatorRegistry, Counter, Gauge, Registry } from 'prom-client';
import { addProcessMetrics } from '../../observability/metrics.ts';
import type { MetricsSource } from '../../observability/metrics-server.ts';
import type { Metric, Report } from './messages.ts';
import type { WorkerHandle } from './worker-handle.ts';

/** Overrides of prom-client: the lag of one slow worker must not be averaged away, and the parent has the start time. */
function aggregatorOf({ name, aggregator }: Metric): Metric['aggregator'] {
  if (name === 'process_start_time_seconds') return 'first';
  if (!name.startsWith('nodejs_eventloop_lag')) return aggregator;
  return name.includes('_min_') ? 'min' : 'max';
}

export class CombinedMetrics implements MetricsSource {
  readonly #workers = new Set<WorkerHandle>();
  /** Counters and histograms of exited workers, summed. */
  #retired: readonly Metric[] = [];
  readonly #registry = new Registry();
  readonly #exits: Counter;

  constructor(wanted = 1) {
    addProcessMetrics(this.#registry);
    new Gauge({
      name: 'gateway_workers_wanted',
      help: 'Workers that serve when none has ended.',
      registers: [this.#registry],
    }).set(wanted);
    this.#exits = new Counter({
      name: 'gateway_worker_exits_total',
      help: 'Workers that exited unexpectedly.',
      registers: [this.#registry],
    });
  }

  add(worker: WorkerHandle): void {
    this.#workers.add(worker);
  }

  /** Keeps the counts of a worker that has exited. */
  retire(worker: WorkerHandle, isUnexpected: boolean): void {
    this.#workers.delete(worker);
    if (isUnexpected) this.#exits.inc();
    if (!worker.report) return;
    const counted = worker.report.metrics.filter(({ type }) =>
      ['counter', 'histogram'].includes(String(type)),
    );
    this.#retired = AggregatorRegistry.aggregate([
      [...this.#retired],
      counted,
    ]).getMetricsAsArray() as Metric[];
  }

  async print(): Promise<{ contentType: string; text: string }> {
    await this.#refreshReports();
    const own = (await this.#registry.getMetricsAsJSON()) as Metric[];
    // The parent first: metrics with the aggregator "omit" are taken from it only.
    const all = [own, this.#retired, ...this.#reports().map(({ metrics }) => metrics)];
    const combined = AggregatorRegistry.aggregate(
      all.map((metrics, index) =>
        metrics
          .filter(({ aggregator }) => index === 0 || String(aggregator) !== 'omit')
          .map((metric) => ({ ...metric, aggregator: aggregatorOf(metric) })),
      ),
    );
    return { contentType: combined.contentType, text: await combined.metrics() };
  }

  #reports(): Report[] {
    return [...this.#workers].flatMap(({ report }) => report ?? []);
  }

  async #refreshReports(): Promise<void> {
    await Promise.all([...this.#workers].map((worker) => worker.refreshReport()));
  }
}

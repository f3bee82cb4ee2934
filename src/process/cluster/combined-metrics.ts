// Metrics and usage summed over all workers, exited ones included: a counter that falls with a worker would look like
// a restart of the whole gateway.
import { AggregatorRegistry, Counter, Gauge, Registry } from 'prom-client';
import { maxNames, other } from '../../observability/clients.ts';
import { addProcessMetrics } from '../../observability/metrics.ts';
import type { MetricsSource } from '../../observability/metrics-server.ts';
import {
  meanOfDays,
  recentDays,
  sortUsage,
  type UsageReport,
  type UsageRow,
} from '../../observability/usage.ts';
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
  readonly #since = new Date();
  #retiredUsage: readonly UsageReport[] = [];
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
    const usages = [...this.#retiredUsage, worker.report.usage];
    this.#retiredUsage = [combineUsage(this.#since, usages)];
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

  async readUsage(): Promise<UsageReport> {
    await this.#refreshReports();
    const usages = this.#reports().map(({ usage }) => usage);
    return combineUsage(this.#since, [...this.#retiredUsage, ...usages]);
  }

  #reports(): Report[] {
    return [...this.#workers].flatMap(({ report }) => report ?? []);
  }

  async #refreshReports(): Promise<void> {
    await Promise.all([...this.#workers].map((worker) => worker.refreshReport()));
  }
}

/** In the form of one process: the clients with the most requests, as many as one process would name. */
function combineUsage(since: Date, reports: readonly UsageReport[]): UsageReport {
  const all = reports.flatMap(({ usage }) => usage);
  const clients = merge(
    all.filter(({ client }) => client !== other),
    ({ client }) => client,
    addRows,
  );
  const most = clients.sort((a, b) => b.requests - a.requests).slice(0, maxNames);
  const names = new Set(most.map(({ client }) => client));
  const rows = merge(
    all.map((row) => (names.has(row.client) ? row : { ...row, client: other, version: other })),
    ({ client, version, interface: kind, route }) => JSON.stringify([client, version, kind, route]),
    addRows,
  );
  return {
    since,
    namesForgotten: reports.reduce((sum, { namesForgotten }) => sum + namesForgotten, 0),
    usage: sortUsage(rows.map(dropOldDays)),
  };
}

/** Drops expired days: the report of an exited worker still has them. */
function dropOldDays(row: UsageRow): UsageRow {
  const now = Date.now();
  const days = recentDays(row.days, now);
  return { ...row, days, requestsADay: meanOfDays(days, row.firstSeen, now) };
}

/** Groups by key, and adds up each group. */
function merge<Item>(
  items: readonly Item[],
  keyOf: (item: Item) => string,
  add: (a: Item, b: Item) => Item,
): Item[] {
  const merged = new Map<string, Item>();
  for (const item of items) {
    const before = merged.get(keyOf(item));
    merged.set(keyOf(item), before ? add(before, item) : item);
  }
  return [...merged.values()];
}

function addRows(a: UsageRow, b: UsageRow): UsageRow {
  const parameters = merge(
    [...a.parameters, ...b.parameters],
    ({ name }) => name,
    (x, y) => ({ ...y, requests: x.requests + y.requests }),
  );
  return {
    ...a,
    requests: a.requests + b.requests,
    statuses: addNumbers(a.statuses, b.statuses),
    parameters: parameters.sort((x, y) => y.requests - x.requests),
    firstSeen: a.firstSeen < b.firstSeen ? a.firstSeen : b.firstSeen,
    lastSeen: a.lastSeen > b.lastSeen ? a.lastSeen : b.lastSeen,
    days: addNumbers(a.days, b.days),
  };
}

function addNumbers<Numbers extends Readonly<Record<string, number>>>(a: Numbers, b: Numbers) {
  const sum: Record<string, number> = { ...a };
  for (const [name, number] of Object.entries(b)) sum[name] = (sum[name] ?? 0) + number;
  return sum as Numbers;
}

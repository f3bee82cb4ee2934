// The numbers of all workers together, also of those that have ended: a sum that fell when a worker is
// replaced would look like a restart of everything, and like all its requests once more.
import { AggregatorRegistry, Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import type { Measured } from '../observability/metrics-server.ts';
import { combineUsage } from './combined-usage.ts';
import type { Member } from './member.ts';
import type { Metric, Report } from './messages.ts';

/**
 * How metrics of Node.js are combined, where prom-client means it otherwise: one worker that is slow
 * must not hide behind the others, and the gateway is as old as the parent.
 */
function aggregatorOf({ name, aggregator }: Metric): Metric['aggregator'] {
  if (name === 'process_start_time_seconds') return 'first';
  if (!name.startsWith('nodejs_eventloop_lag')) return aggregator;
  return name.includes('_min_') ? 'min' : 'max';
}

export class CombinedMetrics implements Measured {
  readonly #members = new Set<Member>();
  /** What workers that have ended had counted: counters and histograms, added up. */
  #retired: readonly Metric[] = [];
  readonly #since = new Date();
  #retiredUsage: Report['usage'] | undefined;
  /** What is known of the parent itself. */
  readonly #registry = new Registry();
  readonly #ends: Counter;

  /** @param wanted workers that serve when none has ended */
  constructor(wanted = 1) {
    collectDefaultMetrics({ register: this.#registry });
    new Gauge({
      name: 'gateway_workers_wanted',
      help: 'Workers that serve when none has ended.',
      registers: [this.#registry],
    }).set(wanted);
    this.#ends = new Counter({
      name: 'gateway_worker_ends_total',
      help: 'Workers that have ended though nobody wanted it.',
      registers: [this.#registry],
    });
  }

  add(member: Member): void {
    this.#members.add(member);
  }

  /**
   * A worker has ended: what it has counted stays.
   * @param isUnexpected whether it should not have
   */
  retire(member: Member, isUnexpected: boolean): void {
    this.#members.delete(member);
    if (isUnexpected) this.#ends.inc();
    if (!member.report) return;
    const counted = member.report.metrics.filter(({ type }) => {
      return ['counter', 'histogram'].includes(String(type));
    });
    this.#retired = AggregatorRegistry.aggregate([
      [...this.#retired],
      counted,
    ]).getMetricsAsArray() as Metric[];
    this.#retiredUsage = combineUsage(this.#since, [
      ...(this.#retiredUsage ? [this.#retiredUsage] : []),
      member.report.usage,
    ]);
  }

  async print(): Promise<{ contentType: string; text: string }> {
    await this.#askAll();
    const own = (await this.#registry.getMetricsAsJSON()) as Metric[];
    // Those of the parent first: of it alone there is what "omit" leaves out of the others.
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

  async readUsage(): Promise<Report['usage']> {
    await this.#askAll();
    const reports = this.#reports().map(({ usage }) => usage);
    return combineUsage(this.#since, [
      ...(this.#retiredUsage ? [this.#retiredUsage] : []),
      ...reports,
    ]);
  }

  #reports(): Report[] {
    return [...this.#members].flatMap(({ report }) => report ?? []);
  }

  async #askAll(): Promise<void> {
    await Promise.all([...this.#members].map((member) => member.askForReport()));
  }
}

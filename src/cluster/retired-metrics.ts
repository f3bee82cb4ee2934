// What workers that have ended had counted: counters and histograms, added up.
import type { Metric } from './messages.ts';

const isCounted = ({ type }: Metric) => ['counter', 'histogram'].includes(String(type));

type Value = Metric['values'][number];

export class RetiredMetrics {
  readonly #metrics = new Map<string, { metric: Metric; values: Map<string, Value> }>();

  add(metrics: readonly Metric[]): void {
    for (const metric of metrics.filter(isCounted)) {
      const known = this.#metrics.get(metric.name) ?? { metric, values: new Map() };
      this.#metrics.set(metric.name, known);
      for (const value of metric.values) {
        const key = JSON.stringify([value.metricName, Object.entries(value.labels).toSorted()]);
        const before = known.values.get(key)?.value ?? 0;
        known.values.set(key, { ...value, value: before + value.value });
      }
    }
  }

  metrics(): Metric[] {
    return [...this.#metrics.values()].map(({ metric, values }) => ({
      ...metric,
      values: [...values.values()],
    }));
  }
}

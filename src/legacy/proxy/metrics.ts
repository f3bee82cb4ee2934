// Metrics of the old service and of comparisons with it.
import { Counter, Histogram, type Registry } from 'prom-client';

export type Outcome =
  | 'same'
  | 'different'
  | 'accepted'
  /** Different at first, and not in the same way later: one side was behind. */
  | 'stale'
  /** Beyond the comparison budget, or too many answers buffered. */
  | 'dropped'
  | 'unreachable'
  /** This gateway had no answer: overloaded, or without database. */
  | 'failed'
  /** Nothing to compare: 304, too large, or the client has left. */
  | 'skipped';

/** Distinct labels: a counter never forgets one. */
const maxClients = 50;

const buckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 80];

export class LegacyMetrics {
  readonly #requests: Histogram;
  readonly #comparisons: Counter;
  readonly #differences: Counter;
  readonly #clients = new Set<string>();

  constructor(registry: Registry | undefined) {
    const registers = registry ? [registry] : [];
    const counter = (name: string, help: string, ...labelNames: string[]) =>
      new Counter({ name: `gateway_legacy_${name}_total`, help, labelNames, registers });
    this.#requests = new Histogram({
      name: 'gateway_legacy_request_duration_seconds',
      help: 'Time that the old service took to begin its answer, or to fail.',
      labelNames: ['result'],
      buckets,
      registers,
    });
    this.#comparisons = counter(
      'comparisons',
      'Answers of the old service that were compared with those of this gateway.',
      'outcome',
    );
    this.#differences = counter(
      'differences',
      'What differed, each kind once for a comparison.',
      ...['kind', 'route', 'client', 'accepted'],
    );
  }

  /** @param result `answered`, `left`, or the code of the error @param seconds to the head */
  countRequest(result: string, seconds: number): void {
    this.#requests.observe({ result }, seconds);
  }

  countComparison(outcome: Outcome): void {
    this.#comparisons.inc({ outcome });
  }

  countDifference(kind: string, route: string, client: string, accepted: boolean): void {
    if (this.#clients.size < maxClients) this.#clients.add(client);
    const shown = this.#clients.has(client) ? client : 'other';
    this.#differences.inc({ kind, route, client: shown, accepted: String(accepted) });
  }
}

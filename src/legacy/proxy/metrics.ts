// Metrics of the old service and of comparisons with it.
import { Counter, Histogram, type Registry } from 'prom-client';

export type Outcome =
  | 'same'
  | 'different'
  | 'accepted'
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

export type LegacyMetrics = ReturnType<typeof createLegacyMetrics>;

export function createLegacyMetrics(registry: Registry | undefined) {
  const registers = registry ? [registry] : [];
  const requests = new Histogram({
    name: 'gateway_legacy_request_duration_seconds',
    help: 'Time that the old service took to begin its answer, or to fail.',
    labelNames: ['result'],
    buckets,
    registers,
  });
  const comparisons = new Counter({
    name: 'gateway_legacy_comparisons_total',
    help: 'Answers of the old service that were compared with those of this gateway.',
    labelNames: ['outcome'],
    registers,
  });
  const differences = new Counter({
    name: 'gateway_legacy_differences_total',
    help: 'What differed, each kind once for a comparison.',
    labelNames: ['kind', 'route', 'client', 'accepted'],
    registers,
  });
  const paths = new Counter({
    name: 'gateway_legacy_paths_total',
    help: 'Requests for paths that only the old service serves; at most 50 paths, and other.',
    labelNames: ['path'],
    registers,
  });
  const clients = new Set<string>();
  return {
    /** @param result `answered`, `left`, or the code of the error; @param seconds to the head */
    countRequest: (result: string, seconds: number) => requests.observe({ result }, seconds),
    countPath: (path: string) => paths.inc({ path }),
    countComparison: (outcome: Outcome) => comparisons.inc({ outcome }),
    countDifference(kind: string, route: string, client: string, accepted: boolean) {
      if (clients.size < maxClients) clients.add(client);
      const shown = clients.has(client) ? client : 'other';
      differences.inc({ kind, route, client: shown, accepted: String(accepted) });
    },
  };
}

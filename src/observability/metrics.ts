// Metrics of one process for Prometheus, read from counters of the other rooms when they are scraped.
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { version } from '../config/package.ts';
import type { LaneState } from '../database/connection/lane.ts';
import type { Database } from '../database/database.ts';
import { fallbackReasons, type Replicas } from '../database/standby/replicas.ts';
import { BoundedNames, clientOf } from './clients.ts';
import { maxNameLength, type ObserveAnswer } from './log.ts';

/** Operation names used as labels at most: clients choose them, and each costs memory for good. */
const maxOperations = 100;

const maxClients = 50;
/** Paths for each client and interface: those of this service, and patterns of those of the old one. */
const maxPaths = 60;

/** The usual ones, from 0 on: what begins with its first event has no increase for Prometheus. */
const unreadableReasons = [
  ...['HPE_INVALID_METHOD', 'HPE_INVALID_URL', 'HPE_INVALID_VERSION', 'HPE_INVALID_CONSTANT'],
  ...['HPE_INVALID_HEADER_TOKEN', 'HPE_INVALID_CONTENT_LENGTH', 'HPE_HEADER_OVERFLOW'],
  'ERR_HTTP_REQUEST_TIMEOUT',
];

const seconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

type Series = Iterable<readonly [labels: Record<string, string>, value: number]>;

/** Counters of the answer cache since the start, and its size. */
interface CacheState {
  readonly hits: number;
  readonly misses: number;
  readonly invalidated: number;
  readonly cleared: number;
  readonly bytes: number;
}

interface LimitState {
  readonly running: number;
  readonly waiting: number;
}

/** A metric whose values are read when it is scraped. */
type MetricDefinition = [
  name: string,
  help: string,
  read: () => number | Series,
  labelNames?: string[],
];

/** All metrics of one process; each `follow…` adds those of one component. */
export class Metrics {
  /** For the metrics of optional features. */
  readonly registry = new Registry();
  readonly #unreadable = new Counter({
    name: 'gateway_unreadable_requests_total',
    help: 'Requests that were refused because they cannot be read as HTTP, by reason.',
    labelNames: ['reason'],
    registers: [this.registry],
  });

  constructor({ pool, snapshots }: Pick<Database, 'pool' | 'snapshots'>) {
    for (const reason of unreadableReasons) this.#unreadable.inc({ reason }, 0);
    this.#addProcess();
    this.#addSnapshots(snapshots);
    this.#addPool(pool);
  }

  async print() {
    return { contentType: this.registry.contentType, text: await this.registry.metrics() };
  }

  /** Counts and times answers. */
  countAnswers(): ObserveAnswer {
    const time = timeAnswers(this.registry);
    const countClient = this.#countClients();
    return (...answer) => {
      time(...answer);
      countClient(...answer);
    };
  }

  #countClients(): ObserveAnswer {
    const clients = new BoundedNames(maxClients, (client) => {
      // Each has paths of its own: those that only the old service serves are of any number.
      const pathsOf = (kind: string) =>
        new BoundedNames(maxPaths, (path) => {
          return { labels: { client, interface: kind, path }, requests: 0 };
        });
      return { rest: pathsOf('rest'), graphql: pathsOf('graphql'), legacy: pathsOf('legacy') };
    });
    this.#counter(
      'gateway_client_requests_total',
      'Answers of REST, of GraphQL and of paths that only the old service serves, by client (at most 50 names, and other) and path.',
      () =>
        [...clients.values()]
          .flatMap((interfaces) => Object.values(interfaces))
          .flatMap((paths) => [...paths.values()])
          .map(({ labels, requests }) => [labels, requests] as const),
      ['client', 'interface', 'path'],
    );
    return (request) => {
      const { forwardedPath, routeOptions } = request;
      const path = forwardedPath ?? routeOptions.url ?? '';
      // Assets of GraphiQL are not counted.
      const [, own] = /^\/(?:(api)\/|graphql(?!\/assets\/))/.exec(path) ?? ['', 'none'];
      if (own === 'none' && !forwardedPath) return;
      const kind = forwardedPath ? 'legacy' : own ? 'rest' : 'graphql';
      clients.get(clientOf(request).name)[kind].get(path).requests += 1;
    };
  }

  /** Returns the function that counts the errors of an operation. */
  countErrors(): (codes: Iterable<string>, type: string) => void {
    const errors = new Counter({
      name: 'gateway_graphql_errors_total',
      help: 'GraphQL operations with an error, by its code, and by the type of operation: none, if none was found.',
      labelNames: ['code', 'type'],
      registers: [this.registry],
    });
    return (codes, type) => {
      for (const code of codes) errors.inc({ code, type });
    };
  }

  /** Counts a request that could not be read as HTTP. */
  countUnreadable(reason: string): void {
    this.#unreadable.inc({ reason });
  }

  follow({ cache, limit }: { cache: CacheState; limit: LimitState }): void {
    this.#counter('gateway_cache_hits_total', 'Answers from memory.', () => cache.hits);
    this.#counter(
      'gateway_cache_misses_total',
      'Answers that were not in the cache.',
      () => cache.misses,
    );
    this.#counter(
      'gateway_cache_invalidations_total',
      'Answers in memory that a commit had invalidated when they were looked up again.',
      () => cache.invalidated,
    );
    this.#counter(
      'gateway_cache_clears_total',
      'Times that all answers in memory were dropped, since it was unknown what was committed.',
      () => cache.cleared,
    );
    this.#gauge('gateway_cache_bytes', 'Size of the answers in memory.', () => cache.bytes);
    this.#gauge('gateway_requests_running', 'Requests that are worked on.', () => limit.running);
    this.#gauge(
      'gateway_requests_waiting',
      'Requests that wait for their turn.',
      () => limit.waiting,
    );
  }

  followStreams(streams: Record<'open' | 'opened', Record<string, number>>): void {
    const byTransport = (read: () => Record<string, number>) => () =>
      Object.entries(read()).map(([transport, count]) => [{ transport }, count] as const);
    this.#gauge(
      'gateway_streams_open',
      'Live answers that are being streamed, by transport.',
      byTransport(() => streams.open),
      ['transport'],
    );
    this.#counter(
      'gateway_streams_opened_total',
      'Streams that were opened, by transport.',
      byTransport(() => streams.opened),
      ['transport'],
    );
  }

  /** Returns the function that observes a request to AUTH_WEBHOOK_URL. */
  timeWebhook(): (outcome: string, duration: number) => void {
    const durations = new Histogram({
      name: 'gateway_auth_webhook_duration_seconds',
      help: 'Duration of requests to AUTH_WEBHOOK_URL; decisions from memory are not among them.',
      labelNames: ['outcome'],
      buckets: seconds,
      registers: [this.registry],
    });
    const stale = new Counter({
      name: 'gateway_auth_webhook_stale_total',
      help: 'Requests whose credential went on after its last acceptance, because AUTH_WEBHOOK_URL failed.',
      registers: [this.registry],
    });
    return (outcome, duration) =>
      outcome === 'stale' ? stale.inc() : durations.observe({ outcome }, duration);
  }

  followCounts(maintenance: {
    readonly wrongCounts: number | undefined;
    readonly pendingSeconds: number;
  }): void {
    this.#gauge(
      'gateway_counts_pending_seconds',
      'For how long the oldest change has waited to be applied to the counts, as far as this process has seen.',
      () => maintenance.pendingSeconds,
    );
    this.#gauge(
      'gateway_counts_wrong',
      'Buckets of the counts that the last sample, each minute, found to differ from the outfits.',
      () => maintenance.wrongCounts ?? 0,
    );
  }

  followAttachment(attachment: {
    readonly problems: number;
    readonly lag: number | undefined;
  }): void {
    this.#gauge(
      'gateway_attached_lag_seconds',
      'Time since the last message of a subscription to the attached tables; nothing without one.',
      () => (attachment.lag === undefined ? [] : [[{}, attachment.lag]]),
    );
    this.#gauge(
      'gateway_attached_problems',
      'Rows of the attached tables that are not carried over, and triggers on them that are missing or off.',
      () => attachment.problems,
    );
  }

  followReplicas(replicas: Pick<Replicas, 'replicationLag' | 'primaryReads' | 'standbys'>): void {
    const ofStandbys = (read: (standby: Replicas['standbys'][number]) => number) => () =>
      replicas.standbys.map((standby) => [{ standby: standby.name }, read(standby)] as const);
    this.#gauge(
      'gateway_standby_used',
      'Whether the standby is read from: 1 or 0.',
      ofStandbys(({ problem }) => (problem ? 0 : 1)),
      ['standby'],
    );
    this.#gauge(
      'gateway_standby_lag_seconds',
      'For how long the standby has lacked what was to be read.',
      ofStandbys((standby) => replicas.replicationLag(standby) / 1000),
      ['standby'],
    );
    this.#counter(
      'gateway_standby_reads_total',
      'Queries that were read from the standby.',
      ofStandbys(({ reads }) => reads),
      ['standby'],
    );
    this.#counter(
      'gateway_primary_reads_total',
      'Queries that were read from the primary although there are standbys, by reason.',
      () => fallbackReasons.map((reason) => [{ reason }, replicas.primaryReads[reason]] as const),
      ['reason'],
    );
  }

  #addProcess(): void {
    const registers = [this.registry];
    collectDefaultMetrics({ register: this.registry });
    // Gauges named as counters, whose sums other gauges have.
    for (const kind of ['handles', 'requests', 'resources']) {
      this.registry.removeSingleMetric(`nodejs_active_${kind}_total`);
    }
    new Gauge({
      name: 'gateway_build_info',
      help: 'Which gateway this is; always 1.',
      labelNames: ['version'],
      registers,
    }).set({ version }, 1);
  }

  #addSnapshots(snapshots: Database['snapshots']): void {
    const probes = new Histogram({
      name: 'gateway_snapshot_probe_duration_seconds',
      help: 'Time that the database took for a snapshot of its state.',
      buckets: seconds,
      registers: [this.registry],
    });
    snapshots.observe((milliseconds) => probes.observe(milliseconds / 1000));
  }

  #addPool(pool: Database['pool']): void {
    this.#gauge(
      'gateway_database_connections_in_use',
      'Connections of the pool that work on something.',
      () => pool.totalCount - pool.idleCount,
    );
    this.#gauge(
      'gateway_database_connections_idle',
      'Connections of the pool that are free.',
      () => pool.idleCount,
    );
    const ofLanes = (read: (lane: LaneState) => number) => () =>
      Object.entries(pool.lanes).map(([lane, state]) => [{ lane }, read(state)] as const);
    this.#gauge(
      'gateway_database_statements_running',
      'Statements under way, by lane; those of trial and expensive are also among all.',
      ofLanes(({ running }) => running),
      ['lane'],
    );
    this.#gauge(
      'gateway_database_statements_waiting',
      'Statements that wait for a place in their lane; in all, for a connection of the pool.',
      ofLanes(({ waiting }) => waiting),
      ['lane'],
    );
    this.#counter(
      'gateway_database_statements_refused_total',
      'Statements that were refused because their lane was full.',
      ofLanes(({ refused }) => refused),
      ['lane'],
    );
    this.#counter(
      'gateway_database_statement_timeouts_total',
      'Expensive statements that EXPENSIVE_QUERY_TIMEOUT has stopped.',
      () => pool.timedOut,
    );
  }

  #gauge(...metric: MetricDefinition): void {
    this.#measure(Gauge, ...metric);
  }

  #counter(...metric: MetricDefinition): void {
    this.#measure(Counter, ...metric);
  }

  #measure(
    Kind: typeof Counter | typeof Gauge,
    ...[name, help, read, labelNames = []]: MetricDefinition
  ): void {
    new Kind({
      ...{ name, help, labelNames, registers: [this.registry] },
      collect() {
        this.reset();
        const found = read();
        if (typeof found === 'number') this.inc(found);
        else for (const [labels, value] of found) this.inc(labels, value);
      },
    });
  }
}

function timeAnswers(registry: Registry): ObserveAnswer {
  const durations = new Histogram({
    name: 'gateway_http_request_duration_seconds',
    help: 'Time from the head of a request to the end of its answer; refused requests (429, 503) are counted too.',
    labelNames: ['method', 'route', 'operation', 'status'],
    buckets: seconds,
    registers: [registry],
  });

  const operations = new Set<string>();
  const label = (name: string | undefined) => {
    if (name === undefined || operations.has(name)) return name ?? '';
    if (name.length > maxNameLength || operations.size === maxOperations) return 'other';
    operations.add(name);
    return name;
  };

  return ({ method, routeOptions, operationName }, status, milliseconds) => {
    const route = routeOptions.url ?? 'none';
    durations.observe(
      { method, route, operation: label(operationName), status },
      milliseconds / 1000,
    );
  };
}

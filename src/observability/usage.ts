// Usage statistics of this process: requests by client, version and route.
import type { FastifyInstance } from 'fastify';
import { BoundedNames, type Client, Clients } from './clients.ts';
import { createParameterReader } from './unknown-parameters.ts';

export type Interface = 'rest' | 'graphql';

export interface UsageRow {
  readonly client: string;
  readonly version: string;
  readonly interface: Interface;
  /** Path pattern of the route, such as `/api/outfits/`. */
  readonly route: string;
  readonly requests: number;
  readonly statuses: Readonly<Record<(typeof statusClasses)[number], number>>;
  readonly parameters: readonly UsedParameter[];
  readonly firstSeen: Date;
  readonly lastSeen: Date;
  /** Mean over the UTC days since the first request, today included; over 30 days at most. */
  readonly requestsADay: number;
  /** Requests by UTC day, such as `2026-11-22`, days without requests omitted; of the last 30 days. */
  readonly days: Readonly<Record<string, number>>;
}

export interface UsedParameter {
  readonly name: string;
  readonly requests: number;
  /** Whether no route reads it: the answer is the same without it. */
  readonly unknown: boolean;
}

export interface UsageReport {
  readonly since: Date;
  readonly namesForgotten: number;
  readonly usage: readonly UsageRow[];
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Pattern of a path that this gateway does not serve and has forwarded, such as `/api/users/:id/`. */
    forwardedPath?: string | undefined;
  }
}

const maxParameters = 20;
const maxDays = 30;
const dayLength = 86_400_000;
export const statusClasses = ['2xx', '3xx', '4xx', '5xx'] as const;

/** Counts requests. Memory is bounded: by the limit of client names and the number of routes. */
export class Usage {
  readonly since = new Date(Date.now());
  readonly clients = new Clients();
  /** Weak: the counts of a client are dropped when it is evicted. */
  readonly #counts = new WeakMap<Client, Map<string, Count>>();
  readonly #parametersIn = createParameterReader();

  /** Counts the answers of `app` on REST and GraphQL; to be called before its routes are added. */
  follow(app: FastifyInstance): void {
    app.addHook('onResponse', (request, reply, done) => {
      const { config, url } = request.routeOptions;
      const route = (request.forwardedPath && `${request.forwardedPath} (old service)`) || url;
      const kind = interfaceOf(route);
      if (route !== undefined && kind !== undefined) {
        const client = this.clients.count(request);
        const count = this.#countOf(client, route, kind, config.knownParameters);
        const parameters = kind === 'rest' ? this.#parametersIn(request.url) : [];
        count.add(Date.now(), reply.statusCode, parameters);
      }
      done();
    });
  }

  /** Numbers for the metrics; a client may occur several times. Cheap, since scraped every few seconds. */
  *requests(): Generator<{ client: string; interface: Interface; requests: number }> {
    for (const client of this.clients) {
      for (const count of this.#counts.get(client)?.values() ?? []) {
        yield { client: client.name, interface: count.kind, requests: count.requests };
      }
    }
  }

  report(): UsageReport {
    const now = Date.now();
    const rows = [...this.clients].flatMap((client) =>
      [...(this.#counts.get(client)?.values() ?? [])].map((count) => count.toRow(client, now)),
    );
    return { since: this.since, namesForgotten: this.clients.evicted, usage: sortUsage(rows) };
  }

  #countOf(
    client: Client,
    route: string,
    kind: Interface,
    parameters: ReadonlySet<string> | undefined,
  ): Count {
    const routes = this.#counts.get(client) ?? new Map<string, Count>();
    const existing = routes.get(route);
    if (existing) return existing;
    const count = new Count(route, kind, parameters);
    this.#counts.set(client, routes.set(route, count));
    return count;
  }
}

/** Sorts: REST first, then by requests. */
export function sortUsage(rows: readonly UsageRow[]): UsageRow[] {
  return rows.toSorted((a, b) => b.interface.localeCompare(a.interface) || b.requests - a.requests);
}

export function recentDays(days: UsageRow['days'], now: number): UsageRow['days'] {
  const oldest = formatDay(Math.floor(now / dayLength) - maxDays + 1);
  return Object.fromEntries(Object.entries(days).filter(([day]) => day >= oldest));
}

const formatDay = (day: number) => new Date(day * dayLength).toISOString().slice(0, 10);

export function meanOfDays(
  days: UsageRow['days'],
  firstSeen: Date,
  now: number,
): UsageRow['requestsADay'] {
  const since = Math.floor(now / dayLength) - Math.floor(firstSeen.getTime() / dayLength) + 1;
  const total = Object.values(days).reduce((sum, number) => sum + number, 0);
  return Math.round((10 * total) / Math.max(Math.min(maxDays, since), 1)) / 10;
}

function interfaceOf(route: string | undefined): Interface | undefined {
  if (route?.startsWith('/api/') || route?.endsWith('(old service)')) return 'rest';
  // Assets of GraphiQL are not counted.
  return route?.startsWith('/graphql') && !route.startsWith('/graphql/assets/')
    ? 'graphql'
    : undefined;
}

class Count {
  readonly #statuses = [0, 0, 0, 0];
  readonly #parameters = new BoundedNames(maxParameters, (name) => ({ name, requests: 0 }));
  /** By days since 1970, oldest first. */
  readonly #days = new Map<number, number>();
  readonly #firstSeen = Date.now();
  #lastSeen = this.#firstSeen;

  constructor(
    private readonly route: string,
    readonly kind: Interface,
    private readonly knownParameters: ReadonlySet<string> | undefined,
  ) {}

  get requests(): number {
    return this.#statuses.reduce((sum, number) => sum + number, 0);
  }

  add(now: number, status: number, parameters: readonly string[]): void {
    const index = Math.floor(status / 100) - 2;
    this.#statuses[index] = (this.#statuses[index] ?? 0) + 1;
    for (const name of parameters) this.#parameters.count(name, now).requests += 1;
    this.#lastSeen = now;
    const day = Math.floor(now / dayLength);
    this.#days.set(day, (this.#days.get(day) ?? 0) + 1);
    if (this.#days.size > maxDays) this.#days.delete(this.#days.keys().next().value ?? day);
  }

  toRow({ name, version }: Client, now: number): UsageRow {
    const firstSeen = new Date(this.#firstSeen);
    const all = [...this.#days].map(([day, number]) => [formatDay(day), number] as const);
    const days = recentDays(Object.fromEntries(all), now);
    return {
      client: name,
      version,
      interface: this.kind,
      route: this.route,
      requests: this.requests,
      statuses: Object.fromEntries(
        statusClasses.map((name, index) => [name, this.#statuses[index] ?? 0]),
      ) as UsageRow['statuses'],
      parameters: [...this.#parameters.values()]
        .map((parameter) => ({
          ...parameter,
          unknown: this.knownParameters?.has(parameter.name) === false,
        }))
        .sort((a, b) => b.requests - a.requests),
      firstSeen,
      lastSeen: new Date(this.#lastSeen),
      requestsADay: meanOfDays(days, firstSeen, now),
      days,
    };
  }
}

// Unknown query parameters: counted by client and logged once. Names only, never values.
import type { FastifyInstance } from 'fastify';
import { LRUCache } from 'lru-cache';
import { BoundedNames, type Clients, sanitizeName } from './clients.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Query parameters that the route reads; undefined: unknown ones are not counted. */
    readonly knownParameters?: ReadonlySet<string>;
    /** Whether the values in the path fit its parameters; otherwise it is no path of this service. */
    readonly hasPath?: (parameters: Readonly<Record<string, string>>) => boolean;
  }
}

/** Names read from one query string at most. */
const maxRead = 50;
/** Bytes of the cache of parsed addresses, roughly. */
const maxMemory = 1_000_000;
const none: readonly string[] = [];

/** Returns a function: address -> distinct parameter names of its query string, sanitized. */
export function createParameterReader(): (url: string) => readonly string[] {
  const parsed = new LRUCache<string, readonly string[]>({ maxSize: maxMemory });
  return (url) => {
    const start = url.indexOf('?');
    if (start === -1) return none;
    const cached = parsed.get(url);
    if (cached) return cached;
    const names = new Set<string>();
    for (const name of new URLSearchParams(url.slice(start).split('#', 1)[0]).keys()) {
      names.add(sanitizeName(name));
      if (names.size === maxRead) break;
    }
    const list = [...names];
    parsed.set(url, list, { size: 500 + 2 * url.length });
    return list;
  };
}

export interface UnknownParameter {
  readonly client: string;
  readonly parameter: string;
  requests: number;
}

const maxClients = 50;
/** For each client. */
const maxParameters = 20;

/** Counts unknown parameters, and logs each once per client. To be called before the routes are added. */
export function followUnknownParameters(
  app: FastifyInstance,
  clients: Clients,
  metrics: { followUnknownParameters(read: () => Iterable<UnknownParameter>): void } | undefined,
): void {
  const counts = new BoundedNames(maxClients, (client) => {
    return new BoundedNames(maxParameters, (parameter): UnknownParameter => {
      return { client, parameter, requests: 0 };
    });
  });
  const parametersIn = createParameterReader();
  app.addHook('onResponse', (request, _reply, done) => {
    const { method, routeOptions, log } = request;
    const { knownParameters } = routeOptions.config;
    if (knownParameters && (method === 'GET' || method === 'HEAD')) {
      const unknown = parametersIn(request.url).filter((name) => !knownParameters.has(name));
      if (unknown.length > 0) {
        const now = Date.now();
        const ofClient = counts.count(clients.lookup(request).name, now);
        // Names beyond the limit share one count, which a request increments once.
        for (const count of new Set(unknown.map((name) => ofClient.count(name, now)))) {
          count.requests += 1;
          if (count.requests > 1) continue;
          const { client, parameter } = count;
          log.warn({ client, parameter, route: routeOptions.url }, 'unknown query parameter');
        }
      }
    }
    done();
  });
  metrics?.followUnknownParameters(() =>
    [...counts.values()].flatMap((ofClient) => [...ofClient.values()]),
  );
}

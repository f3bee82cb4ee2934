// Names of query parameters, never values; and who sends those that no stored document reads, logged once.
import type { FastifyInstance } from 'fastify';
import { LRUCache } from 'lru-cache';
import { BoundedNames } from './bounded-names.ts';
import { type Clients, showable } from './clients.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Query parameters that the route reads; undefined: it reads none of its own. */
    readonly knownParameters?: ReadonlySet<string>;
  }
}

/** Most names that are looked at in one query string. */
const maxRead = 50;
/** Bytes that remembered addresses may take, about. */
const maxMemory = 1_000_000;
const none: readonly string[] = [];

/** Makes a function that gives the names in the query string of an address, each once, as they may be shown. */
export function createParameterReader(): (url: string) => readonly string[] {
  const remembered = new LRUCache<string, readonly string[]>({ maxSize: maxMemory });
  return (url) => {
    const start = url.indexOf('?');
    if (start === -1) return none;
    const known = remembered.get(url);
    if (known) return known;
    const names = new Set<string>();
    for (const name of new URLSearchParams(url.slice(start).split('#', 1)[0]).keys()) {
      names.add(showable(name));
      if (names.size === maxRead) break;
    }
    const list = [...names];
    remembered.set(url, list, { size: 500 + 2 * url.length });
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

/** Counts unknown parameters, and logs each once for each client; to be called before the routes are added. */
export function followUnknownParameters(
  app: FastifyInstance,
  clients: Clients,
  metrics: { countUnknown(read: () => Iterable<UnknownParameter>): void } | undefined,
): void {
  const counts = new BoundedNames(maxClients, (client) => {
    return new BoundedNames(maxParameters, (parameter): UnknownParameter => {
      return { client, parameter, requests: 0 };
    });
  });
  const parametersIn = createParameterReader();
  app.addHook('onResponse', (request, _reply, done) => {
    const { method, routeOptions, log } = request;
    const known = routeOptions.config.knownParameters;
    if (known && (method === 'GET' || method === 'HEAD')) {
      const unknown = parametersIn(request.url).filter((name) => !known.has(name));
      if (unknown.length > 0) {
        const now = Date.now();
        const ofClient = counts.take(clients.peek(request).name, now);
        // Names beyond the bound share one count: a request counts once in it.
        for (const count of new Set(unknown.map((name) => ofClient.take(name, now)))) {
          count.requests += 1;
          if (count.requests > 1) continue;
          const { client, parameter } = count;
          log.warn({ client, parameter, route: routeOptions.url }, 'unknown query parameter');
        }
      }
    }
    done();
  });
  metrics?.countUnknown(() => [...counts.values()].flatMap((ofClient) => [...ofClient.values()]));
}

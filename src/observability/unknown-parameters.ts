// Unknown query parameters: counted by client and logged once. Names only, never values.
import type { FastifyInstance } from 'fastify';
import { ClientCounts, clientOf, sanitizeName } from './clients.ts';
import type { Metrics } from './metrics.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Query parameters that the route reads; undefined: unknown ones are not counted. */
    readonly knownParameters?: ReadonlySet<string>;
    /** Whether the values in the path fit its parameters; otherwise it is no path of this service. */
    readonly hasPath?: (parameters: Readonly<Record<string, string>>) => boolean;
  }
}

/** For each client. */
const maxParameters = 20;
/** Parameters of one request that are looked at. */
const maxRead = 50;

/** Counts unknown parameters, and logs each once per client. To be called before the routes are added. */
export function followUnknownParameters(app: FastifyInstance, metrics: Metrics | undefined): void {
  const counts = new ClientCounts(maxParameters);
  app.addHook('onResponse', (request, _reply, done) => {
    const { method, routeOptions, log, url } = request;
    const { knownParameters } = routeOptions.config;
    const query = url.split('#', 1)[0]?.split('?').slice(1).join('?');
    if (knownParameters && query && (method === 'GET' || method === 'HEAD')) {
      const names = [...new URLSearchParams(query).keys()].slice(0, maxRead);
      const unknown = new Set(names.map(sanitizeName).filter((name) => !knownParameters.has(name)));
      for (const name of unknown) {
        const { client, name: parameter, requests } = counts.count(clientOf(request).name, name);
        if (requests > 1) continue;
        log.warn({ client, parameter, route: routeOptions.url }, 'unknown query parameter');
      }
    }
    done();
  });
  metrics?.followUnknownParameters(counts);
}

// Query parameters that no stored document reads: who sends them, counted and logged once.
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { BoundedNames } from './bounded-names.ts';
import type { Clients } from './clients.ts';
import { createParameterReader } from './query-parameters.ts';

/** How many requests of a client had an unknown parameter. */
export interface UnknownParameter {
  readonly client: string;
  readonly parameter: string;
  requests: number;
}

const maxClients = 50;
/** For each client. */
const maxParameters = 20;

/**
 * Counts the unknown parameters of requests to `app`, and logs each once for each client; to be called
 * before its routes are added.
 */
export function followUnknownParameters(
  app: FastifyInstance,
  clients: Clients,
  metrics: { countUnknown(parameters: UnknownParameters): void } | undefined,
): void {
  const parameters = new UnknownParameters(clients);
  parameters.follow(app);
  metrics?.countUnknown(parameters);
}

/** Bounded in memory, and in lines of the log. */
export class UnknownParameters {
  readonly #clients: Clients;
  readonly #counts = new BoundedNames(maxClients, (client) => {
    return new BoundedNames(maxParameters, (parameter): UnknownParameter => {
      return { client, parameter, requests: 0 };
    });
  });
  readonly #parametersIn = createParameterReader();

  constructor(clients: Clients) {
    this.#clients = clients;
  }

  follow(app: FastifyInstance): void {
    app.addHook('onResponse', (request, _reply, done) => {
      const { method, routeOptions, log } = request;
      const known = routeOptions.config.knownParameters;
      if (known && (method === 'GET' || method === 'HEAD')) {
        const unknown = this.#parametersIn(request.url).filter((name) => !known.has(name));
        for (const count of unknown.length > 0 ? this.#count(request, unknown) : []) {
          if (count.requests > 1) continue;
          const { client, parameter: name } = count;
          log.warn({ client, parameter: name, route: routeOptions.url }, 'unknown query parameter');
        }
      }
      done();
    });
  }

  *[Symbol.iterator](): Generator<UnknownParameter> {
    for (const parameters of this.#counts.values()) yield* parameters.values();
  }

  /** Counts a request once, however many parameters it has. */
  #count(request: FastifyRequest, parameters: readonly string[]): ReadonlySet<UnknownParameter> {
    const now = Date.now();
    const ofClient = this.#counts.take(this.#clients.peek(request).name, now);
    const counts = new Set(parameters.map((parameter) => ofClient.take(parameter, now)));
    for (const count of counts) count.requests += 1;
    return counts;
  }
}

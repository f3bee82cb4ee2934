// Deprecation of the REST paths: the headers Deprecation, Sunset and Link.
import type { FastifyInstance } from 'fastify';
import type { Config } from '../config/config.ts';

/**
 * Adds the headers to all answers, errors included. Call it before the routes are added.
 * @see https://www.rfc-editor.org/rfc/rfc9745 Deprecation
 * @see https://www.rfc-editor.org/rfc/rfc8594 Sunset, and the relation of Link
 */
export function announceDeprecation(app: FastifyInstance, config: DeprecationConfig): void {
  const headers = deprecationHeaders(config);
  if (!headers) return;

  app.addHook('onRequest', (_request, reply, done) => {
    reply.headers(headers);
    // Pages of other origins can read exposed headers only.
    const exposed = reply.getHeader('Access-Control-Expose-Headers');
    if (exposed) {
      reply.header('Access-Control-Expose-Headers', exposeAlso(exposed.toString(), headers));
    }
    done();
  });
}

export function exposeAlso(exposed: string, headers: Readonly<Record<string, string>>): string {
  return [exposed, ...Object.keys(headers)].join(', ');
}

export function deprecationHeaders({
  restDeprecated,
  restSunset,
  publicUrl,
}: DeprecationConfig): Readonly<Record<string, string>> | undefined {
  if (!restDeprecated && !restSunset) return undefined;
  // A relative reference works behind any proxy.
  const successor = publicUrl === undefined ? '/graphql' : new URL(`${publicUrl}/graphql`).href;
  return {
    ...(restDeprecated ? { Deprecation: `@${Math.floor(restDeprecated.getTime() / 1000)}` } : {}),
    ...(restSunset ? { Sunset: restSunset.toUTCString() } : {}),
    Link: `<${successor}>; rel="successor-version"`,
  };
}

export type DeprecationConfig = Pick<Config, 'publicUrl' | 'restDeprecated' | 'restSunset'>;

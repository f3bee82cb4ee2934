// Says on every answer of the legacy paths that they end: Deprecation, Sunset and Link.
import type { FastifyInstance } from 'fastify';
import type { Config } from '../config.ts';

/** `Deprecation` (RFC 9745), `Sunset` (RFC 8594), `Link`, on errors too. Before the routes of `app` are added. */
export function announceDeprecation(app: FastifyInstance, config: DeprecationConfig): void {
  const headers = deprecationHeaders(config);
  if (!headers) return;

  app.addHook('onRequest', (_request, reply, done) => {
    reply.headers(headers);
    // Pages of other origins see only what is named to them.
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
  // Relative, it leads to where the client has sent its request, through any proxy.
  const successor = publicUrl === undefined ? '/graphql' : new URL(`${publicUrl}/graphql`).href;
  return {
    ...(restDeprecated ? { Deprecation: `@${Math.floor(restDeprecated.getTime() / 1000)}` } : {}),
    ...(restSunset ? { Sunset: restSunset.toUTCString() } : {}),
    Link: `<${successor}>; rel="successor-version"`,
  };
}

export type DeprecationConfig = Pick<Config, 'publicUrl' | 'restDeprecated' | 'restSunset'>;

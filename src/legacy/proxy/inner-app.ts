// A second app with the REST paths and without a port: internal requests are not logged, counted or limited.
import type { IncomingHttpHeaders } from 'node:http';
import Fastify, { type FastifyInstance } from 'fastify';
import { decorateClient, ignoreQuery } from '../../http/headers.ts';
import { decorateDisconnectSignal } from '../../http/server/connections.ts';

export interface InnerRequest {
  readonly method: 'GET' | 'HEAD' | 'OPTIONS';
  readonly headers: IncomingHttpHeaders;
  readonly protocol: string;
  readonly host: string;
  readonly target: string;
}

const targetHeader = 'x-target';

/** @param serve adds the paths */
export async function buildInnerApp(
  serve: (app: FastifyInstance) => Promise<void>,
): Promise<FastifyInstance> {
  const app = Fastify({
    exposeHeadRoutes: false,
    // `inject` would normalize the target.
    rewriteUrl: ({ headers, url }) => headers[targetHeader]?.toString() ?? url ?? '/',
    routerOptions: { querystringParser: ignoreQuery },
  });
  decorateDisconnectSignal(app);
  // `x-forwarded-*` below carry the scheme and host of the original request.
  decorateClient(app, () => true);
  app.decorateRequest('viewer', undefined);
  app.decorate('logHttpError', () => {});
  await app.register(serve);
  await app.ready();
  return app;
}

export function askInnerApp(
  app: FastifyInstance,
  { method, headers, protocol, host, target }: InnerRequest,
) {
  const forwarded = { 'x-forwarded-proto': protocol, 'x-forwarded-host': host };
  return app.inject({
    method,
    url: '/',
    headers: { ...headers, ...forwarded, [targetHeader]: target },
  });
}

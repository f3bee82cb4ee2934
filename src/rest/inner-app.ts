// The legacy paths once more, on an app that is not reachable: asking it counts nowhere as a request.
import type { IncomingHttpHeaders } from 'node:http';
import Fastify, { type FastifyInstance } from 'fastify';
import { ignoreQuery } from '../http/headers.ts';
import { decorateDisconnectSignal } from '../http/server/connections.ts';

export interface InnerRequest {
  readonly method?: 'GET' | 'OPTIONS';
  readonly headers: IncomingHttpHeaders;
  readonly protocol: string;
  readonly host: string;
  readonly target: string;
}

export type InnerApp = Awaited<ReturnType<typeof createInnerApp>>;

const targetHeader = 'x-target';

export async function createInnerApp(serve: (app: FastifyInstance) => Promise<void>) {
  const app = Fastify({
    exposeHeadRoutes: false,
    // As it came: `inject` would write it anew.
    rewriteUrl: ({ headers, url }) => headers[targetHeader]?.toString() ?? url ?? '/',
    routerOptions: { querystringParser: ignoreQuery },
    // It is told below what the real request was found to be.
    trustProxy: true,
  });
  decorateDisconnectSignal(app);
  app.decorateRequest('viewer', undefined);
  app.decorate('logHttpError', () => {});
  await app.register(serve);
  await app.ready();

  return {
    ask: ({ method = 'GET', headers, protocol, host, target }: InnerRequest) =>
      app.inject({
        method,
        url: '/',
        headers: {
          ...headers,
          'x-forwarded-proto': protocol,
          'x-forwarded-host': host,
          [targetHeader]: target,
        },
      }),
    close: () => app.close(),
  };
}

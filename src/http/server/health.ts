// /health/live and /health/ready.
import type { FastifyInstance } from 'fastify';
import { encodeJson } from '../json.ts';

/**
 * Both cost nothing and need no token.
 * @param findProblem why requests would fail, in one sentence; undefined: they would not
 */
export function serveHealth(app: FastifyInstance, findProblem: () => string | undefined): void {
  const probes = { '/health/live': () => undefined, '/health/ready': findProblem };
  for (const [url, find] of Object.entries(probes)) {
    app.route({
      method: ['GET', 'HEAD'],
      url,
      handler: (_request, reply) => {
        const detail = find();
        return reply
          .code(detail ? 503 : 200)
          .headers({ 'Content-Type': 'application/json', 'Cache-Control': 'no-store' })
          .send(encodeJson(detail ? { status: 'unavailable', detail } : { status: 'ok' }));
      },
    });
  }
}

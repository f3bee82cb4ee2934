// Health checks: liveness and readiness.
import type { FastifyInstance } from 'fastify';
import { encodeJson } from '../json.ts';

/**
 * `/health/live` and `/health/ready`: no statement, no token.
 * @param findProblem why the gateway is not ready, in one sentence
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

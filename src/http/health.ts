// /health/live and /health/ready.
import type { FastifyInstance } from 'fastify';
import { encodeJson } from './json.ts';

export interface Health {
  /** Why requests would fail, in one sentence; undefined: they would not. */
  readonly findProblem?: (() => string | undefined) | undefined;
  readonly isClosing?: () => boolean;
}

/**
 * Serves `/health/live`, which answers as long as the process does, and `/health/ready`, which is
 * 503 while requests would be. Both cost nothing and need no token.
 */
export function serveHealth(app: FastifyInstance, health: Health): void {
  addProbe(app, '/health/live', () => undefined);
  addProbe(app, '/health/ready', () => {
    if (health.isClosing?.()) return 'The gateway is closing.';
    return health.findProblem?.();
  });
}

/** @param findProblem why the answer is 503; undefined: it is 200 */
function addProbe(app: FastifyInstance, url: string, findProblem: () => string | undefined): void {
  app.route({
    method: ['GET', 'HEAD'],
    url,
    handler: (_request, reply) => {
      const problem = findProblem();
      return reply
        .code(problem ? 503 : 200)
        .headers({ 'Content-Type': 'application/json', 'Cache-Control': 'no-store' })
        .send(encodeJson(problem ? { status: 'unavailable', detail: problem } : { status: 'ok' }));
    },
  });
}

// How the service goes away: readiness first, then no new connections, then none.
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';

/** How the service goes away. */
export interface Shutdown {
  /** Readiness says so before anything is refused. */
  readonly isClosing: boolean;
  /** Follows the requests of `app`; to be called before its routes are added. */
  follow(app: FastifyInstance): void;
  /**
   * Turns readiness, then stops listening and lets requests finish. What is still open after the
   * grace, such as a client that reads nothing, is cut off. Takes at most 3.6 seconds.
   * @param announce whether to wait until others have seen that the service is not ready
   */
  close(app: FastifyInstance, announce: boolean): Promise<void>;
}

/** Milliseconds for which connections are still taken after readiness has turned. */
const notice = 1_000;
/** Milliseconds that requests under way then have to finish. */
const grace = 2_500;

export function createShutdown(): Shutdown {
  let isClosing = false;
  // Fastify listens on each address of localhost with a server of its own, and waits for one of them
  // only: so requests are counted here.
  let underWay = 0;
  let settle = () => {};
  const onClose = () => {
    underWay -= 1;
    if (underWay === 0) settle();
  };

  return {
    get isClosing() {
      return isClosing;
    },
    follow(app) {
      app.addHook('onRequest', (_request, reply, done) => {
        underWay += 1;
        reply.raw.on('close', onClose);
        done();
      });
      app.addHook('onSend', (_request, reply, _payload, done) => {
        if (isClosing) reply.header('Connection', 'close');
        done();
      });
    },
    async close(app, announce) {
      isClosing = true;
      if (announce) await sleep(notice);
      const closed = app.close();
      const finished = new Promise<void>((resolve) => {
        settle = resolve;
        if (underWay === 0) resolve();
      });
      await Promise.race([Promise.all([closed, finished]), sleep(grace)]);
      app.server.closeAllConnections();
    },
  };
}

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
  /**
   * The same while others go on, which take the clients over: readiness stays, clients that are busy
   * go elsewhere after their next answer, and requests have all the time that they may take. Takes 5
   * seconds as a rule, and at most 95.
   */
  leave(app: FastifyInstance): Promise<void>;
}

/** Milliseconds for which connections are still taken after readiness has turned. */
const notice = 1_000;
/** Milliseconds that requests under way then have to finish. */
const grace = 2_500;
/**
 * Milliseconds in which a client that stays connected will have asked again: whoever does not, has a
 * connection that servers close at any time, Node.js after these 5 seconds unless told else.
 */
const patience = 5_000;
/** Milliseconds that requests then have: a connection that is silent for as long is cut anyway. */
const longGrace = 90_000;

export function createShutdown(): Shutdown {
  let isClosing = false;
  let endsConnections = false;
  // Fastify listens on each address of localhost with a server of its own, and waits for one of them
  // only: so requests are counted here.
  let underWay = 0;
  let settle = () => {};
  const onClose = () => {
    underWay -= 1;
    if (underWay === 0) settle();
  };

  /** Stops listening, and cuts off what is still open after so many milliseconds. */
  const finish = async (app: FastifyInstance, limit: number) => {
    const closed = app.close();
    const finished = new Promise<void>((resolve) => {
      settle = resolve;
      if (underWay === 0) resolve();
    });
    await Promise.race([Promise.all([closed, finished]), sleep(limit)]);
    app.server.closeAllConnections();
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
        if (endsConnections) reply.header('Connection', 'close');
        done();
      });
    },
    async close(app, announce) {
      isClosing = true;
      endsConnections = true;
      if (announce) await sleep(notice);
      await finish(app, grace);
    },
    async leave(app) {
      endsConnections = true;
      await sleep(patience);
      await finish(app, longGrace);
    },
  };
}

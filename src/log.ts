import type { FastifyInstance } from 'fastify';
import { type DestinationStream, type Logger, pino } from 'pino';
import type { Config } from './config.ts';
import { describeError } from './logged-error.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Name of the GraphQL operation that was executed; undefined: none, or it has no name. */
    operationName: string | undefined;
  }
}

export function createLog(level: Config['logLevel'], destination?: DestinationStream): Logger {
  const options = { level, serializers: { err: describeError } };
  return destination ? pino(options, destination) : pino(options);
}

/** Characters of an operation name that are kept: a client may send a megabyte. */
export const longestName = 64;

/** Milliseconds from which on an answer is called slow. */
const slow = 1_000;

/** Milliseconds between two lines about slow or refused requests. */
const pause = 1_000;

/**
 * One line per answer: at error for failures, at warn for refused and slow ones, and at debug for
 * all others, because two lines per request at info took a third of the throughput. There is the
 * path in it but no query string, which may hold variables.
 */
export function logAnswers(app: FastifyInstance): void {
  // Under overload thousands are refused in a second: one line says how many there were.
  let nextLine = 0;
  let leftOut = 0;

  app.decorateRequest('operationName', undefined);
  app.addHook('onResponse', (request, reply, done) => {
    const { statusCode, elapsedTime } = reply;
    const { log } = request;
    const describe = () => ({
      method: request.method,
      path: request.url.split('?', 1)[0],
      operation: request.operationName?.slice(0, longestName),
      status: statusCode,
      milliseconds: Math.round(elapsedTime * 10) / 10,
    });
    if (statusCode >= 500 && statusCode !== 503) {
      log.error(describe(), 'failed');
    } else if (statusCode === 503 || elapsedTime >= slow) {
      const now = Date.now();
      if (now < nextLine) {
        leftOut += 1;
      } else {
        log.warn({ ...describe(), leftOut }, statusCode === 503 ? 'refused' : 'slow');
        nextLine = now + pause;
        leftOut = 0;
      }
    } else if (log.level === 'debug') {
      log.debug(describe(), 'answered');
    }
    done();
  });
}

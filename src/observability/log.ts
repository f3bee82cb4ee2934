// The log, and what it says of each answer.
import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type DestinationStream, type Logger, pino, stdTimeFunctions } from 'pino';
import type { Config } from '../config.ts';
import type { HttpError } from '../errors.ts';
import type { Clients } from './clients.ts';
import { serializeError } from './error-serializer.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Name of the GraphQL operation that was executed; undefined: none, or it has no name. */
    operationName: string | undefined;
  }
  interface FastifyInstance {
    /** Logs why a request was refused, if there is a cause: at most once a second. */
    logHttpError: (log: FastifyBaseLogger, error: HttpError) => void;
  }
}

export function createLog(level: Config['logLevel'], destination?: DestinationStream): Logger {
  const options = {
    level,
    serializers: { err: serializeError },
    // Names and times that need no table.
    formatters: { level: (name: string) => ({ level: name }) },
    timestamp: stdTimeFunctions.isoTime,
  };
  return destination ? pino(options, destination) : pino(options);
}

/** Characters of an operation name that are kept: a client may send a megabyte. */
export const maxNameLength = 64;

/** Milliseconds from which on an answer is called slow. */
const slow = 1_000;

/** Milliseconds between two lines of a kind that comes in floods. */
const pause = 1_000;

/**
 * One line per answer: at error for failures, at warn for refused (502 to 504) and slow ones, and at debug
 * for all others, because two lines per request at info took a third of the throughput. There is the
 * path in it but no query string, which may hold variables.
 */
export function logAnswers(app: FastifyInstance, clients: Clients): void {
  const causes = createPacer();
  const refused = createPacer();
  const slowOnes = createPacer();

  app.decorate('logHttpError', (log, { cause, message }) => {
    if (cause) causes(log, (leftOut) => log.error({ err: cause, leftOut }, message));
  });
  app.decorateRequest('operationName', undefined);
  app.addHook('onResponse', (request, reply, done) => {
    const { statusCode } = reply;
    // A stream is open for as long as its reader likes.
    const elapsedTime = request.streamedAfter ?? reply.elapsedTime;
    const { log } = request;
    const describe = () => ({
      method: request.method,
      path: request.url.split('?', 1)[0],
      operation: request.operationName?.slice(0, maxNameLength),
      client: clients.peek(request),
      // Who it is, is for whoever looks for a fault, and not to be kept with every slow answer.
      viewer: log.level === 'debug' ? request.viewer?.userId : undefined,
      status: statusCode,
      bytes: bytesOf(request, reply),
      milliseconds: Math.round(elapsedTime * 10) / 10,
    });
    if (statusCode > 500) {
      refused(log, (leftOut) => log.warn({ ...describe(), leftOut }, 'refused'));
    } else if (statusCode >= 500) {
      log.error(describe(), 'failed');
    } else if (elapsedTime >= slow) {
      slowOnes(log, (leftOut) => log.warn({ ...describe(), leftOut }, 'slow'));
    } else if (log.level === 'debug') {
      log.debug(describe(), 'answered');
    }
    done();
  });
}

/** Of the body that was sent; undefined for one that was sent piece by piece. */
function bytesOf({ method }: FastifyRequest, reply: FastifyReply): number | undefined {
  const length = reply.getHeader('content-length');
  if (method === 'HEAD') return 0;
  return length === undefined ? undefined : Number(length);
}

/**
 * Lets one line of a kind through in each pause, with the number of those before it that were left
 * out: thousands of requests may be refused in a second.
 * @param allAtDebug whether none is left out at debug
 */
export function createPacer(allAtDebug = true) {
  let nextLine = 0;
  let leftOut = 0;
  return (log: FastifyBaseLogger, write: (leftOut: number) => void): void => {
    const now = Date.now();
    if (now < nextLine && !(allAtDebug && log.level === 'debug')) {
      leftOut += 1;
      return;
    }
    write(leftOut);
    nextLine = now + pause;
    leftOut = 0;
  };
}

// What is observed of each answer, and the log: one line per answer at debug, throttled warnings, and errors without the
// values of clients.
import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import {
  type DestinationStream,
  type LevelWithSilent,
  type Logger,
  pino,
  stdTimeFunctions,
} from 'pino';
import { clientOf } from './clients.ts';

declare module 'fastify' {
  interface FastifyInstance {
    /** Logs the cause of a refused request, if it has one. Throttled to one line a second. */
    logHttpError: (log: FastifyBaseLogger, error: Error) => void;
  }
  interface FastifyRequest {
    /** Name of the executed GraphQL operation; undefined: none was executed, or it is anonymous. */
    operationName: string | undefined;
    /** Milliseconds to the first byte of a stream, which stays open until its reader leaves. */
    streamedAfter: number | undefined;
    /** Pattern of a path that this gateway does not serve and has forwarded, such as `/api/users/:id/`. */
    forwardedPath?: string | undefined;
  }
}

/** JSON lines (pino), without values of clients in errors. */
export function createLog(level: LevelWithSilent, destination?: DestinationStream): Logger {
  const options = {
    level,
    serializers: { err: serializeError },
    formatters: { level: (name: string) => ({ level: name }) },
    timestamp: stdTimeFunctions.isoTime,
  };
  return destination ? pino(options, destination) : pino(options);
}

/** Characters of an operation name that are logged: a client may send a megabyte. */
export const maxNameLength = 64;

/** Milliseconds from which an answer is logged as slow. */
const slow = 1_000;

/** Milliseconds between two lines of a throttled kind. */
const throttleInterval = 1_000;

/** One line per answer, most at debug: two per request cost a third of the throughput. Without the query string. */
export function logAnswers(app: FastifyInstance): ObserveAnswer {
  const throttleCauses = createLogThrottle();
  const throttleRefused = createLogThrottle();
  const throttleSlow = createLogThrottle();

  app.decorate('logHttpError', (log, { cause, message }) => {
    if (cause) throttleCauses(log, (suppressed) => log.error({ err: cause, suppressed }, message));
  });
  return (request, status, milliseconds, bytes) => {
    const { log } = request;
    const describe = () => ({
      method: request.method,
      path: request.url.split('?', 1)[0],
      operation: request.operationName?.slice(0, maxNameLength),
      client: clientOf(request),
      // Personal data: only at debug, not with every slow answer.
      viewer: log.level === 'debug' ? request.viewer?.userId : undefined,
      status,
      bytes,
      milliseconds: Math.round(milliseconds * 10) / 10,
    });
    if (status > 500) {
      throttleRefused(log, (suppressed) => log.warn({ ...describe(), suppressed }, 'refused'));
    } else if (status >= 500) {
      log.error(describe(), 'failed');
    } else if (milliseconds >= slow) {
      throttleSlow(log, (suppressed) => log.warn({ ...describe(), suppressed }, 'slow'));
    } else if (log.level === 'debug') {
      log.debug(describe(), 'answered');
    }
  };
}

/** Throttle: one line per interval, with the number suppressed before it. @param allAtDebug no throttle at debug */
export function createLogThrottle(allAtDebug = true, interval = throttleInterval) {
  let nextLine = 0;
  let suppressed = 0;
  return (log: { readonly level?: string }, write: (suppressed: number) => void): void => {
    const now = performance.now();
    if (now < nextLine && !(allAtDebug && log.level === 'debug')) {
      suppressed += 1;
      return;
    }
    write(suppressed);
    nextLine = now + interval;
    suppressed = 0;
  };
}

interface SerializedError {
  readonly type: string;
  /** Omitted when it may quote what a client sent. */
  readonly message?: string;
  readonly code?: string;
  /** The frames of the stack, without the message that Node puts before them. */
  readonly stack?: string;
  readonly cause?: SerializedError;
}

/** Without values of a request, which errors of PostgreSQL carry in `detail`, `where`, `meta` and messages. */
function serializeError(error: unknown): SerializedError {
  if (!(error instanceof Error)) return { type: typeof error };
  const fields = error as Error & ErrorFields;
  const inner = [error.cause, fields.originalError, fields.meta?.driverAdapterError].find(
    (candidate) => candidate instanceof Error,
  );
  const code = fields.code ?? (error.cause as ErrorFields | undefined)?.originalCode;
  const stack = error.stack?.split('\n').filter((line) => /^\s+at /.test(line)) ?? [];
  return {
    type: error.constructor.name,
    ...(isFixedText(fields) ? { message: error.message } : {}),
    ...(typeof code === 'string' ? { code } : {}),
    ...(stack.length > 0 ? { stack: stack.map((line) => line.trim()).join('\n') } : {}),
    ...(inner ? { cause: serializeError(inner) } : {}),
  };
}

interface ErrorFields {
  readonly code?: unknown;
  /** Set on causes by Prisma's driver adapter. */
  readonly originalCode?: unknown;
  /** Set by PostgreSQL alone. */
  readonly severity?: unknown;
  /** Of a GraphQLError: the error that it wraps. */
  readonly originalError?: unknown;
  readonly meta?: { readonly driverAdapterError?: unknown };
}

/** Whether the message consists of fixed words and names, so that it may be logged. */
function isFixedText(error: Error & ErrorFields): boolean {
  // A wrapped message, or one that quotes a value which cannot be coerced.
  if (error.name === 'GraphQLError') {
    return !error.originalError && !error.message.includes('cannot represent');
  }
  // JSON.parse and BigInt quote what they cannot read; Prisma prints the arguments of a query.
  if (/^(?:SyntaxError$|DriverAdapterError$|PrismaClient)/.test(error.name)) return false;
  // PostgreSQL quotes values in data exceptions (class 22) and in what functions raise (P0).
  return error.severity === undefined || !/^(22|P0)/.test(String(error.code));
}

export type Answered = Pick<
  FastifyRequest,
  'forwardedPath' | 'headers' | 'log' | 'method' | 'operationName' | 'url'
> & {
  readonly viewer?: { readonly userId: number } | undefined;
  readonly routeOptions: { readonly url?: string | undefined };
};

/** @param bytes of the body; undefined: it is streamed */
export type ObserveAnswer = (
  request: Answered,
  status: number,
  milliseconds: number,
  bytes?: number,
) => void;

/** Returns the function that observes what is no answer to a request. */
export function observeAnswers(
  app: FastifyInstance,
  observers: readonly (ObserveAnswer | undefined)[],
): ObserveAnswer {
  const observe: ObserveAnswer = (...answer) => {
    for (const one of observers) one?.(...answer);
  };
  app.decorateRequest('operationName', undefined);
  app.addHook('onResponse', (request, reply, done) => {
    const { streamedAfter = reply.elapsedTime } = request;
    observe(request, reply.statusCode, streamedAfter, bytesOf(request, reply));
    done();
  });
  return observe;
}

function bytesOf({ method }: FastifyRequest, reply: FastifyReply): number | undefined {
  const length = reply.getHeader('content-length');
  if (method === 'HEAD') return 0;
  return length === undefined ? undefined : Number(length);
}

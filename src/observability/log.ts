// The log, what it says of each answer, and what of an error may be in it.
import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type DestinationStream, type Logger, pino, stdTimeFunctions } from 'pino';
import type { Config } from '../config.ts';
import type { HttpError } from '../errors.ts';
import type { Clients } from './clients.ts';

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
    formatters: { level: (name: string) => ({ level: name }) },
    timestamp: stdTimeFunctions.isoTime,
  };
  return destination ? pino(options, destination) : pino(options);
}

/** For `setChildLoggerFactory`. Most say nothing: a child of pino's for each took a fiftieth of an answer from memory. */
export function createRequestLog(
  parent: FastifyBaseLogger,
  bindings: Record<string, unknown>,
): FastifyBaseLogger {
  return new RequestLog(parent, bindings) as unknown as FastifyBaseLogger;
}

class RequestLog {
  readonly #parent: FastifyBaseLogger;
  readonly #bindings: Record<string, unknown>;
  #made: FastifyBaseLogger | undefined;

  constructor(parent: FastifyBaseLogger, bindings: Record<string, unknown>) {
    this.#parent = parent;
    this.#bindings = bindings;
  }

  get level(): string {
    return this.#parent.level;
  }

  get made(): FastifyBaseLogger {
    this.#made ??= this.#parent.child(this.#bindings);
    return this.#made;
  }
}

for (const name of ['child', 'fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']) {
  Object.defineProperty(RequestLog.prototype, name, {
    value(this: RequestLog, ...given: unknown[]) {
      const { made } = this;
      return Reflect.get(made, name).apply(made, given);
    },
  });
}

/** Characters of an operation name that are kept: a client may send a megabyte. */
export const maxNameLength = 64;

const slow = 1_000;

/** Milliseconds between two lines of a kind that comes in floods. */
const pause = 1_000;

/** A line per answer, most at debug: two per request took a third of the throughput. Without the query string. */
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

/** Throttles: one line of a kind in each pause, with the number left out before it. @param allAtDebug none at debug */
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

interface SerializedError {
  readonly type: string;
  /** Left out when it may repeat what a client sent. */
  readonly message?: string;
  readonly code?: string;
  /** The frames of the stack, without the message that Node puts before them. */
  readonly stack?: string;
  readonly cause?: SerializedError;
}

/** Never a value that came with a request: errors of the database carry such in `detail`, `where`, `meta` and messages. */
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
  /** In the causes that Prisma's driver gives. */
  readonly originalCode?: unknown;
  /** Set by PostgreSQL only. */
  readonly severity?: unknown;
  /** Of an error of GraphQL: the one that it wraps. */
  readonly originalError?: unknown;
  readonly meta?: { readonly driverAdapterError?: unknown };
}

/** Whether the message is made of fixed words and names alone. */
function isFixedText(error: Error & ErrorFields): boolean {
  // The message of what it wraps, or one about a value that does not fit.
  if (error.name === 'GraphQLError') {
    return !error.originalError && !error.message.includes('cannot represent');
  }
  // JSON.parse and BigInt quote what they cannot read; Prisma prints the arguments of a query.
  if (/^(?:SyntaxError$|DriverAdapterError$|PrismaClient)/.test(error.name)) return false;
  // PostgreSQL quotes values in data exceptions (class 22) and in what functions raise (P0).
  return error.severity === undefined || !/^(22|P0)/.test(String(error.code));
}

/** What the log keeps of an error. */
export interface SerializedError {
  readonly type: string;
  /** Left out when it may repeat what a client sent. */
  readonly message?: string;
  readonly code?: string;
  /** The frames of the stack, without the message that Node puts before them. */
  readonly stack?: string;
  readonly cause?: SerializedError;
}

/**
 * Chooses what of an error may be in the log: never a value that came with a request. Errors of the
 * database carry such values in `detail`, `where` and `meta`, and some in their messages.
 */
export function serializeError(error: unknown): SerializedError {
  if (!(error instanceof Error)) return { type: typeof error };
  const fields = error as Error & ErrorFields;
  const inner = [error.cause, fields.originalError, fields.meta?.driverAdapterError].find(
    (candidate) => candidate instanceof Error,
  );
  const code = fields.code ?? (error.cause as DriverFields | undefined)?.originalCode;
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
  /** Set by PostgreSQL only. */
  readonly severity?: unknown;
  /** Of an error of GraphQL: the one that it wraps. */
  readonly originalError?: unknown;
  /** Of an error of Prisma. */
  readonly meta?: { readonly driverAdapterError?: unknown };
}

/** What Prisma's driver gives as the cause of its errors. */
interface DriverFields {
  readonly originalCode?: unknown;
}

/** Whether the message is made of fixed words and names alone. */
function isFixedText(error: Error & ErrorFields): boolean {
  switch (error.name) {
    // JSON.parse and BigInt quote what they cannot read.
    case 'SyntaxError':
      return false;
    // The message of what it wraps, or one about a value that does not fit.
    case 'GraphQLError':
      return !error.originalError && !error.message.includes('cannot represent');
    case 'DriverAdapterError':
      return false;
    default:
  }
  // Prisma prints the arguments of a query.
  if (error.name.startsWith('PrismaClient')) return false;
  // PostgreSQL quotes values in data exceptions (class 22) and in what functions raise (P0).
  return error.severity === undefined || !/^(22|P0)/.test(String(error.code));
}

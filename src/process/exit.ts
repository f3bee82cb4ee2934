// Explains to the operator the error that ends a process.
import pg from 'pg';
import { ConfigError } from '../config/config.ts';
import { httpErrorFor } from '../database/errors.ts';
import { OperatorError } from '../errors.ts';

/** Errors meant for an operator as a sentence, unexpected ones with their stack. */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error instanceof OperatorError || error instanceof ConfigError) return error.message;
  // The database server is unreachable, or refuses: its message is enough, a stack adds nothing.
  if (isDatabaseError(error) || 'syscall' in error) return `The database failed: ${error.message}.`;
  return error.stack ?? error.message;
}

/** Whether a statement or the connection failed. */
export function isDatabaseError(error: unknown): boolean {
  return error instanceof pg.DatabaseError || httpErrorFor(error) !== undefined;
}

/** The last line of a service, with LOG_FORMAT=json as one of the log. */
export function lastLine(error: unknown, logFormat: string | undefined): string {
  const msg = describeError(error);
  if (logFormat !== 'json') return `${msg}\n`;
  return `${JSON.stringify({ level: 'fatal', time: new Date().toISOString(), msg })}\n`;
}

export function fail(error: unknown, logFormat?: string): never {
  process.stderr.write(lastLine(error, logFormat));
  process.exit(1);
}

/** @throws OperatorError that names the settings to change, when the address cannot be listened on */
export function explainListenError<Result>(work: Promise<Result>): Promise<Result> {
  const codes = /^(?:EADDRINUSE|EACCES|EADDRNOTAVAIL|EAFNOSUPPORT|EINVAL|ENOTFOUND|EAI_\w+)$/;
  return work.catch((error: NodeJS.ErrnoException) => {
    if (!codes.test(error.code ?? '')) throw error;
    throw new OperatorError(
      `The gateway cannot listen there (${error.message}): set HOST and PORT (and METRICS_PORT) to addresses that are free.`,
    );
  });
}

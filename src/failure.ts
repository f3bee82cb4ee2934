// What a process that cannot go on says last.
import { describeError } from './commands/command.ts';
import { ConfigError } from './config.ts';

/** Ends the process with one sentence for the errors that say what to change, and a trace for others. */
export function fail(error: unknown): never {
  process.stderr.write(`${describeError(error)}\n`);
  process.exit(1);
}

/** @throws ConfigError that says what to change, for an address that cannot be taken */
export function listening<Result>(work: Promise<Result>): Promise<Result> {
  return work.catch((error: NodeJS.ErrnoException) => {
    if (
      !/^(?:EADDRINUSE|EACCES|EADDRNOTAVAIL|EAFNOSUPPORT|EINVAL|ENOTFOUND|EAI_\w+)$/.test(
        error.code ?? '',
      )
    )
      throw error;
    throw new ConfigError(
      `The gateway cannot listen there (${error.message}): set HOST and PORT (and METRICS_PORT) to addresses that are free.`,
    );
  });
}

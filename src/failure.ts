// What a process that cannot go on says last.

/** One sentence for the errors that say what to change, and a trace for others. */
export function describeFailure(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = 'code' in error ? error.code : undefined;
  if (
    code === 'EADDRINUSE' ||
    code === 'EACCES' ||
    code === 'EADDRNOTAVAIL' ||
    code === 'ENOTFOUND'
  ) {
    return `The gateway cannot listen there (${error.message}): set HOST and PORT (and METRICS_PORT) to addresses that are free.`;
  }
  return error.name === 'Error' ? (error.stack ?? error.message) : error.message;
}

/** Ends the process with the reason on standard error. */
export function fail(error: unknown): never {
  process.stderr.write(`${describeFailure(error)}\n`);
  process.exit(1);
}

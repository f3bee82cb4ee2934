// What a command is, and the one way in which all of them say help and errors.
import type { Readable } from 'node:stream';
import pg from 'pg';
import { WorkerError } from '../cluster/worker-error.ts';
import { ConfigError, type Environment } from '../config.ts';
import { EmbeddedDatabaseError } from '../database/embedded.ts';
import { DatabaseAwayError, httpErrorFor } from '../database/errors.ts';
import { MigrationError } from '../database/migrations.ts';
import { DatabaseNotReadyError } from '../database/prepare.ts';
import { SourceError } from '../import/batch.ts';
import type { Output } from '../import/reporter.ts';
import { version } from '../version.ts';

/** All that a command may touch of the process that it runs in. */
export interface Io {
  /** What stands behind its name. */
  readonly args: readonly string[];
  readonly env: Environment;
  readonly stdin: Readable;
  readonly stdout: Output;
  readonly stderr: Output;
  /** Ends the command in order, as Ctrl-C does. */
  readonly signal: AbortSignal;
}

/** What the file of a command exports. */
export interface Command {
  readonly help: string;
  /** Its exit code when it fails. */
  readonly failureCode: number;
  /** Gives the exit code; throws what ends it. */
  run(io: Io): Promise<number>;
}

/**
 * Runs a command, or prints its help, or says in the one way why it failed. Gives the exit code.
 * @param prepare what is done before, when it runs
 */
export async function runCommand(
  command: Command,
  io: Io,
  prepare: () => void = () => {},
): Promise<number> {
  const end = io.args.indexOf('--');
  const options = end === -1 ? io.args : io.args.slice(0, end);
  if (options.includes('--help') || options.includes('-h')) {
    io.stdout.write(command.help);
    return 0;
  }
  if (options.includes('--version')) {
    io.stdout.write(`${version}\n`);
    return 0;
  }
  try {
    prepare();
    return await command.run(io);
  } catch (error) {
    const isInterrupted = io.signal.aborted && isOfAbort(error, io.signal);
    io.stderr.write(isInterrupted ? 'Interrupted.\n' : `${describeError(error)}\n`);
    return isInterrupted ? 130 : command.failureCode;
  }
}

/** What Node.js throws itself, such as its timers, is an error of its own and not the reason. */
const isOfAbort = (error: unknown, { reason }: AbortSignal) =>
  error === reason || (error instanceof Error && error.name === 'AbortError');

/** Waits no longer than until the signal; whoever has begun the work ends it. */
export async function untilAborted<Result>(
  work: Promise<Result>,
  signal: AbortSignal,
): Promise<Result> {
  // What it fails with later on is no news.
  work.catch(() => {});
  let abort = () => {};
  const aborted = new Promise<never>((_settle, reject) => {
    abort = () => reject(signal.reason);
  });
  signal.addEventListener('abort', abort);
  try {
    signal.throwIfAborted();
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

const meant = [
  ConfigError,
  DatabaseAwayError,
  DatabaseNotReadyError,
  EmbeddedDatabaseError,
  MigrationError,
  SourceError,
  WorkerError,
];

/** A meant error's sentence, or anything unexpected with its stack. */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (meant.some((kind) => error instanceof kind)) return error.message;
  // The server has gone away, or refuses: its own words say why, and a stack would add nothing.
  const isOfDatabase = error instanceof pg.DatabaseError || httpErrorFor(error) !== undefined;
  if (isOfDatabase || 'syscall' in error) return `The database failed: ${error.message}.`;
  return error.stack ?? error.message;
}

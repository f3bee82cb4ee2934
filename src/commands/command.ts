// What a command is, and the one way in which all of them say help and errors.
import type { Readable } from 'node:stream';
import { type ParseArgsConfig, parseArgs } from 'node:util';
import pg from 'pg';
import { ConfigError, type Environment } from '../config.ts';
import { EmbeddedDatabaseError } from '../database/embedded.ts';
import { MigrationError } from '../database/migrations.ts';
import { DatabaseNotReadyError } from '../database/prepare.ts';
import { messageOf } from '../errors.ts';
import { SourceError } from '../import/batch.ts';
import type { Output } from '../import/reporter.ts';

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

/** Runs a command, or prints its help, or says in the one way why it failed. Gives the exit code. */
export async function runCommand(command: Command, io: Io): Promise<number> {
  const end = io.args.indexOf('--');
  const options = end === -1 ? io.args : io.args.slice(0, end);
  if (options.includes('--help') || options.includes('-h')) {
    io.stdout.write(command.help);
    return 0;
  }
  try {
    return await command.run(io);
  } catch (error) {
    const isInterrupted = io.signal.aborted && error === io.signal.reason;
    io.stderr.write(isInterrupted ? 'Interrupted.\n' : `${describeError(error)}\n`);
    return isInterrupted ? 130 : command.failureCode;
  }
}

/**
 * The options and other words of a command.
 * @throws ConfigError for an option that there is not, or a word where none may be
 */
export function readArguments<Options extends NonNullable<ParseArgsConfig['options']>>(
  { args }: Io,
  options: Options,
  allowPositionals: boolean,
) {
  try {
    const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals });
    const words: readonly string[] = positionals;
    return { values, words };
  } catch (error) {
    throw new ConfigError(messageOf(error));
  }
}

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
  DatabaseNotReadyError,
  EmbeddedDatabaseError,
  MigrationError,
  SourceError,
];

/** A meant error's sentence, or anything unexpected with its stack. */
function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (meant.some((kind) => error instanceof kind)) return error.message;
  // The server has gone away, or refuses: its own words say why, and a stack would add nothing.
  const isOfDatabase =
    error instanceof pg.DatabaseError ||
    /^(?:Connection terminated|timeout exceeded)/.test(error.message);
  if (isOfDatabase || 'syscall' in error) return `The database failed: ${error.message}.`;
  return error.stack ?? error.message;
}

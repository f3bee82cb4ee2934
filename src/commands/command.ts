// What a command is, and the one way in which all of them say help and errors.
import type { Readable } from 'node:stream';
import type { Environment } from '../config.ts';
import { describeError } from '../process/exit.ts';
import type { Output } from '../transfer/reporter.ts';
import { type CommandLine, parseLine, settingsOf, UsageError } from './options/command-line.ts';

export interface Io {
  readonly env: Environment;
  readonly stdin: Readable;
  readonly stdout: Output;
  readonly stderr: Output;
  /** Ends the command in order, as Ctrl-C does. */
  readonly signal: AbortSignal;
}

export interface Command {
  /** Its arguments, options and help, as commander reads and prints them. */
  line(): CommandLine;
  /** Its exit code when it fails: 1, unless that is an answer, such as "something differs". */
  readonly failureCode?: number;
  /** Gives the exit code. @param values of its own options @param words its arguments */
  run(io: Io, values: object, words: readonly string[]): Promise<number>;
}

/** Runs a command, or prints its help, or says why it failed. Gives the exit code. @param prepare before it runs */
export async function runCommand(
  command: Command,
  { args, ...io }: Io & { readonly args: readonly string[] },
  prepare: () => void = () => {},
): Promise<number> {
  const line = command.line();
  const ended = parseLine(line, args, io);
  if (ended !== undefined) return ended;
  try {
    prepare();
    const env = { ...io.env, ...settingsOf(line) };
    return await command.run({ ...io, env }, line.opts(), line.args);
  } catch (error) {
    const isInterrupted = io.signal.aborted && isOfAbort(error, io.signal);
    io.stderr.write(isInterrupted ? 'Interrupted.\n' : `${describeError(error)}\n`);
    if (isInterrupted) return 130;
    return error instanceof UsageError ? 2 : (command.failureCode ?? 1);
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

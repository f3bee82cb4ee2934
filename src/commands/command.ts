// The interface of a command, and how all commands print help and errors.
import { type Readable, Writable } from 'node:stream';
import { ConfigError, type Environment } from '../config/config.ts';
import { describeError } from '../process/exit.ts';
import { type Output, quoting } from '../transfer/reporter.ts';
import { type CommandLine, parseLine, settingsOf } from './options/command-line.ts';

export interface Io {
  readonly env: Environment;
  readonly stdin: Readable;
  readonly stdout: Output;
  readonly stderr: Output;
  /** Standard output for bytes of a format of its own, not for a person. */
  readonly data?: Writable;
  /** Aborted by Ctrl-C: the command stops in order. */
  readonly signal: AbortSignal;
}

export interface Command {
  /** Its arguments, options and help, for commander. */
  line(): CommandLine;
  /** Exit code of a failure: 2 where 1 is an answer, such as "something differs"; default 1. */
  readonly failureCode?: number;
  /** @param values values of its own options @param words its arguments @returns the exit code */
  run(io: Io, values: object, words: readonly string[]): Promise<number>;
}

/** Runs a command, or prints its help or its error. @param prepare called before it runs @returns the exit code */
export async function runCommand(
  command: Command,
  { args, ...given }: Io & { readonly args: readonly string[] },
  prepare: () => void = () => {},
): Promise<number> {
  const { stdout, stderr } = given;
  const quoted = { stdout: quoting(stdout), stderr: quoting(stderr) };
  const io = { ...given, ...quoted, ...(stdout instanceof Writable ? { data: stdout } : {}) };
  const line = command.line();
  const ended = parseLine(line, args, io);
  if (ended !== undefined) return ended;
  try {
    prepare();
    const env = { ...io.env, ...settingsOf(line) };
    warnOfRanges(env, io.stderr);
    return await command.run({ ...io, env }, line.opts(), line.args);
  } catch (error) {
    const isInterrupted = io.signal.aborted && isOfAbort(error, io.signal);
    io.stderr.write(isInterrupted ? 'Interrupted.\n' : `${describeError(error)}\n`);
    if (isInterrupted) return 130;
    return error instanceof ConfigError ? 2 : (command.failureCode ?? 1);
  }
}

/** Undici, which reads NO_PROXY, knows names and addresses only. */
function warnOfRanges(env: Environment, stderr: Output): void {
  const excepted = env['no_proxy'] ?? env['NO_PROXY'] ?? '';
  const ranges = excepted.split(/[,\s]+/).filter((item) => item.includes('/'));
  if (ranges.length === 0) return;
  stderr.write(
    `NO_PROXY has ranges, which do not count (${ranges.join(', ')}): name hosts, addresses or domains such as .internal.\n`,
  );
}

/** Node.js, such as its timers, throws an AbortError of its own instead of the reason. */
const isOfAbort = (error: unknown, { reason }: AbortSignal) =>
  error === reason || (error instanceof Error && error.name === 'AbortError');

/** Rejects at the signal. The work itself is not stopped: that is up to the caller. */
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

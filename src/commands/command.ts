// The interface of a command, and what all share: settings as options, help, errors, exit codes, and the database.
import type { Readable, Writable } from 'node:stream';
import { type Config, ConfigError, type Environment } from '../config/config.ts';
import { type Database, openDatabase } from '../database/database.ts';
import { migrate } from '../database/migrations.ts';
import { checkReady } from '../database/readiness.ts';
import { messageOf } from '../errors.ts';
import { describeError } from '../process/exit.ts';
import { type Output, quoting } from '../transfer/reporter.ts';
import { type CommandLine, parseLine, settingsOf, withSettings } from './options/command-line.ts';

export interface Io {
  readonly env: Environment;
  readonly stdin: Readable;
  readonly stdout: Output;
  readonly stderr: Output;
  /** Standard output for bytes of a format of its own, not for a person. */
  readonly data: Writable;
  /** Aborted by Ctrl-C: the command stops in order. */
  readonly signal: AbortSignal;
}

export interface Command {
  /** Its arguments, options and help, for commander. */
  line(): CommandLine;
  /** Whether its help lists the settings. */
  readonly listsSettings?: boolean;
  /** Exit code of a failure: 2 where 1 is an answer, such as "something differs"; default 1. */
  readonly failureCode?: number;
  /** @param values values of its own options @param words its arguments @returns the exit code */
  run(io: Io, values: object, words: readonly string[]): Promise<number>;
}

/** Runs a command, or prints its help or its error. @param prepare called before it runs @returns the exit code */
export async function runCommand(
  command: Command,
  {
    args,
    ...given
  }: Omit<Io, 'data'> & {
    readonly args: readonly string[];
    readonly stdout: Writable;
  },
  prepare: () => void = () => {},
): Promise<number> {
  const { stdout, stderr } = given;
  const io = { ...given, stdout: quoting(stdout), stderr: quoting(stderr), data: stdout };
  const line = withSettings(command.line(), command.listsSettings);
  const ended = parseLine(line, args, io);
  if (ended !== undefined) return ended;
  let failure: Error | undefined;
  const failures = new WeakSet<object>();
  stdout.on('error', (error) => {
    failure = error;
    failures.add(error);
  });
  // The last error comes behind the end of the command, and that of standard output is forgotten once it was told.
  const lost = () => failure ?? stdout.errored;
  const fail = (sentence: string, code = command.failureCode ?? 1) => {
    io.stderr.write(`${sentence}\n`);
    return code;
  };
  try {
    prepare();
    const env = { ...io.env, ...settingsOf(line) };
    warnOfRanges(env, io.stderr);
    const code = await command.run({ ...io, env }, line.opts(), line.args);
    return lost() ? fail(unwritten(lost())) : code;
  } catch (error) {
    if (io.signal.aborted && isOfAbort(error, io.signal)) return fail('Interrupted.', 130);
    if (error === stdout.errored || failures.has(Object(error))) return fail(unwritten(error));
    return fail(describeError(error), error instanceof ConfigError ? 2 : undefined);
  }
}

const unwritten = (error: unknown) => `Standard output cannot be written (${messageOf(error)}).`;

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

/** Migrates an embedded database first. @throws DatabaseNotReadyError, EmbeddedDatabaseError or MigrationError */
export async function withDatabase<Result>(
  config: Config,
  work: (database: Database) => Promise<Result>,
): Promise<Result> {
  const database = await openDatabase(config);
  const prepareAndWork = async () => {
    if (database.kind === 'embedded') await migrate(database.pool, () => {});
    else await checkReady(database.pool, database.description);
    return work(database);
  };
  try {
    // The embedded database may end by itself, such as when its folder is removed: its error explains it.
    const failed = database.failed.then((error) => Promise.reject(error));
    return await Promise.race([prepareAndWork(), failed]);
  } finally {
    await database.close();
  }
}

/** For session state and session locks, which a transaction pooler would lose. @throws ConfigError */
export function requireSession({ databasePooler }: Config): void {
  if (databasePooler === 'session') return;
  throw new ConfigError(
    `DATABASE_POOLER is "${databasePooler}", but this command needs a session: run it with DATABASE_POOLER=session and a DATABASE_URL that leads past the pooler.`,
  );
}

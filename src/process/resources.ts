// Resources of the process: log, database, standbys, tracing. A line of the log that cannot be written is lost; the service
// continues.
import { constants, fstatSync, openSync, writeSync } from 'node:fs';
import { Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { isatty } from 'node:tty';
import { styleText } from 'node:util';
import type { Logger } from 'pino';
import { type Config, isTraced } from '../config/config.ts';
import { version } from '../config/package.ts';
import { observeSlow } from '../database/connection/observe.ts';
import { type Database, openDatabase } from '../database/database.ts';
import { Replicas } from '../database/standby/replicas.ts';
import type { Standby } from '../database/standby/standby.ts';
import { messageOf } from '../errors.ts';
import { createLog } from '../observability/log.ts';
import type { Tracing } from '../observability/tracing/tracing.ts';
import { escapeControls } from '../transfer/reporter.ts';
import type { ShutdownReason } from './signals.ts';

export function openLog({ logFormat, logLevel }: Config): Logger {
  const output = openLogOutput();
  const isForPeople = logFormat ? logFormat === 'pretty' : process.stdout.isTTY;
  if (!isForPeople) return createLog(logLevel, output);
  return createLog(logLevel, { write: (line) => output.write(toPretty(line)) });
}

const colors = {
  debug: 'blue',
  info: 'green',
  warn: 'yellow',
  error: 'red',
  fatal: 'red',
} as const;

/** A line of the log for people: time, level and message, with the other fields indented below. */
function toPretty(line: string): string {
  // The messages contain these already.
  const { time, level, msg, err, pid, hostname, address, version, ...fields } = JSON.parse(line);
  const color = colors[level as keyof typeof colors];
  const shown = process.stdout.isTTY ? styleText(color, level.toUpperCase()) : level.toUpperCase();
  const others = Object.entries({ ...fields, ...err }).flatMap(([name, value]) => {
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    return `${name}: ${text}`.split('\n');
  });
  const head = `[${new Date(time).toTimeString().slice(0, 8)}] ${shown}: ${escapeControls(msg ?? '')}`;
  // Names of servers and messages of databases reach a terminal.
  return [head, ...others.map((text) => `    ${escapeControls(text)}`), ''].join('\n');
}

export function logShutdown(log: Logger, reason: ShutdownReason): void {
  if (reason instanceof Error) log.fatal({ err: reason }, 'uncaught error: closing');
  else log.info(reason === 'SIGINT' ? 'SIGINT: closing, good-bye' : `${reason}: closing`);
}

const databaseCloseTimeout = 1_000;

export interface Resources {
  readonly database: Database;
  readonly replicas: Replicas | undefined;
  readonly tracing: Tracing | undefined;
  /** Takes at most one second for the database, and one, in parallel, to send the last traces. */
  close(): Promise<void>;
}

/** @throws EmbeddedDatabaseError when the embedded database cannot be opened */
export async function openResources(config: Config, log: Logger): Promise<Resources> {
  const { databaseReadUrls, slowStatement } = config;
  const tracing = isTraced(config)
    ? new (await import('../observability/tracing/tracing.ts')).Tracing(config, version, log)
    : undefined;
  const observers = [
    ...(tracing ? [tracing.observeStatement] : []),
    ...(slowStatement === undefined
      ? []
      : [observeSlow(slowStatement, (slow) => log.warn(slow, 'slow statement'))]),
  ];
  const database = await openDatabase(config, config.requestTimeout, observers);
  const logStandby = ({ description, problem }: Standby) => {
    if (problem) log.warn(`the ${description} ${problem}: it is not read from`);
    else log.info(`reading from the ${description}`);
  };
  const replicas =
    databaseReadUrls.length > 0
      ? new Replicas(config, database, config.requestTimeout, logStandby, observers)
      : undefined;
  return {
    database,
    replicas,
    tracing,
    async close() {
      // A running statement must not delay the exit: PostgreSQL cancels it by itself.
      const closed = Promise.all([replicas?.close(), database.close()]);
      await Promise.all([Promise.race([closed, sleep(databaseCloseTimeout)]), tracing?.close()]);
    },
  };
}

/** Bytes that wait for a reader; lines beyond are lost. */
const maxWaiting = 1_048_576;

/** Says on standard error when lines begin to be lost. Closes nothing. */
function openLogOutput(): Writable {
  let isLosing = false;
  const lose = (error: unknown) => {
    if (!isLosing) process.stderr.write(`Lines of the log are lost (${messageOf(error)}).\n`);
    isLosing = true;
  };
  const write = createWrite(lose);
  return new Writable({
    decodeStrings: false,
    write(line: string, _encoding, done) {
      try {
        if (write(line)) isLosing = false;
      } catch (error) {
        lose(error);
      }
      done();
    },
  });
}

/** The returned function throws when the line is lost; true says that all lines so far were written. */
function createWrite(onError: (error: Error) => void): (line: string) => boolean {
  const { stdout } = process;
  const kind = fstatSync(1);
  // Node.js writes to these without waiting for the reader.
  if (kind.isFIFO() || kind.isSocket()) {
    stdout.on('error', onError);
    return (line) => {
      if (stdout.writableLength > maxWaiting) throw new Error('its reader has stopped reading');
      stdout.write(line);
      return stdout.writableLength === 0;
    };
  }
  const descriptor = isatty(1) ? openTerminal() : 1;
  let isCut = false;
  return (line) => {
    const bytes = Buffer.from(isCut ? `\n${line}` : line);
    let written = 0;
    try {
      while (written < bytes.length) written += writeSync(descriptor, bytes, written);
      isCut = false;
    } finally {
      isCut ||= written > 0 && written < bytes.length;
    }
    return true;
  };
}

/** The terminal without blocking: one that is stopped, by Ctrl-S or its reader, would stop the service. */
function openTerminal(): number {
  const { O_WRONLY, O_NONBLOCK, O_NOCTTY } = constants;
  try {
    return openSync('/dev/fd/1', O_WRONLY | O_NONBLOCK | O_NOCTTY);
  } catch {
    return 1;
  }
}

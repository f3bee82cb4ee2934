// Standard output as the destination of the log. A line that cannot be written is lost; the service continues.
import { constants, fstatSync, openSync, writeSync } from 'node:fs';
import { Writable } from 'node:stream';
import { isatty } from 'node:tty';
import { messageOf } from '../errors.ts';

/** Bytes that wait for a reader; lines beyond are lost. */
const maxWaiting = 1_048_576;

/** Says on standard error when lines begin to be lost. Closes nothing. */
export function openLogOutput(): Writable {
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

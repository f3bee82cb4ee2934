// Writes an export: one record per line, to standard output or to a file that appears when it is complete.
import { randomUUID } from 'node:crypto';
import { createWriteStream, existsSync } from 'node:fs';
import { lstat, rename, rm } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { Readable, type Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { messageOf, OperatorError } from '../../errors.ts';

type Records = AsyncIterable<readonly Buffer[]>;

/** Atomic: writes under a temporary name and renames at the end. @param check called when all is written */
export async function writeFile(
  records: Records,
  path: string,
  overwrite: boolean,
  check: () => void,
): Promise<void> {
  await checkTarget(path, overwrite);
  const place = resolve(path);
  const name = `.${basename(place)}.${randomUUID().slice(0, 8)}.partial`;
  const temporary = join(dirname(place), name);
  try {
    // Flushed to the disk before the rename.
    const file = createWriteStream(temporary, { flags: 'wx', flush: true });
    const encoders = path.toLowerCase().endsWith('.gz') ? [createGzip()] : [];
    let failure: unknown;
    file.on('error', (error) => {
      failure = error;
    });
    await pipeline([joinLines(records), ...encoders, file]).catch((error) => {
      throw error === failure ? notWritten(path, error) : error;
    });
    check();
    await checkTarget(path, overwrite);
    await rename(temporary, place).catch((error) => {
      throw notWritten(path, error);
    });
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

export async function streamLines(records: Records, stream: Writable): Promise<void> {
  await pipeline(joinLines(records), stream, { end: false });
}

function joinLines(records: Records): Readable {
  const feed = Buffer.from('\n');
  async function* lines() {
    for await (const some of records) {
      if (some.length > 0) yield Buffer.concat(some.flatMap((record) => [record, feed]));
    }
  }
  return Readable.from(lines(), { objectMode: false });
}

function notWritten(path: string, error: unknown): OperatorError {
  return new OperatorError(
    `${path} cannot be written (${messageOf(error)}): make room there, or choose another place.`,
  );
}

async function checkTarget(path: string, overwrite: boolean): Promise<void> {
  if (!existsSync(dirname(resolve(path)))) {
    throw new OperatorError(`The folder of ${path} does not exist: make it first.`);
  }
  const found = await lstat(path).catch(() => undefined);
  if (found?.isDirectory()) throw new OperatorError(`${path} is a folder: choose another name.`);
  if (!found || overwrite) return;
  throw new OperatorError(`${path} is there already: choose another name, or add --overwrite.`);
}

// Records one per line (NDJSON), compressed or not, into a file or an open stream.
import { createWriteStream } from 'node:fs';
import { Readable, type Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { ConfigError } from '../config.ts';
import { messageOf } from '../errors.ts';
import { notWritten } from './whole.ts';

type Records = AsyncIterable<readonly Buffer[]>;

/** @throws ConfigError when the file cannot be written, or what `records` throws */
export async function writeLines(
  records: Records,
  file: string,
  { name, compressed }: { readonly name: string; readonly compressed: boolean },
): Promise<void> {
  // Flushed to the disk before it gets its name.
  const stream = createWriteStream(file, { flags: 'wx', flush: true });
  let failure: Error | undefined;
  stream.on('error', (error) => {
    failure = error;
  });
  try {
    if (compressed) await pipeline(toLines(records), createGzip(), stream);
    else await pipeline(toLines(records), stream);
  } catch (error) {
    throw error === failure ? notWritten(name, error) : error;
  }
}

/** Leaves the stream open. @throws ConfigError when nobody reads it any more */
export async function streamLines(records: Records, stream: Writable): Promise<void> {
  let failure: Error | undefined;
  stream.on('error', (error) => {
    failure = error;
  });
  try {
    await pipeline(toLines(records), stream, { end: false });
  } catch (error) {
    if (error !== failure) throw error;
    throw new ConfigError(`Nobody reads the output any more (${messageOf(error)}).`);
  }
}

function toLines(records: Records): Readable {
  return Readable.from(joinLines(records), { objectMode: false });
}

async function* joinLines(records: Records): AsyncGenerator<Buffer> {
  const feed = Buffer.from('\n');
  for await (const some of records) {
    if (some.length > 0) yield Buffer.concat(some.flatMap((record) => [record, feed]));
  }
}

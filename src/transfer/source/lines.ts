// Opens files and standard input, and splits a stream of bytes into lines within a limit of memory.
import { createReadStream } from 'node:fs';
import { addAbortSignal, pipeline, type Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';

/** @param file path (`.gz` is unpacked), or `-` for `stdin` */
export function openInput(file: string, stdin: Readable, signal: AbortSignal): Readable {
  if (file === '-') return addAbortSignal(signal, stdin);
  const stream = createReadStream(file, { highWaterMark: 256 * 1024 });
  // The callback takes an error that the reader of the last stream gets anyway.
  const opened = /\.gz$/i.test(file) ? pipeline(stream, createGunzip(), () => {}) : stream;
  return addAbortSignal(signal, opened);
}

export interface Line {
  readonly number: number;
  /** Bytes, since a decoder would silently replace invalid UTF-8; undefined: longer than the limit. */
  readonly bytes: Buffer | undefined;
}

/** A line longer than this many limits counts as endless. */
const maxSkips = 16;

/** Skips a line longer than `limit` bytes. @throws Error for an endless line */
export async function* readLines(
  stream: AsyncIterable<Buffer> | Iterable<Buffer>,
  limit: number,
): AsyncGenerator<Line> {
  let begun: Buffer[] = [];
  let length = 0;
  let number = 1;
  const add = (piece: Buffer) => {
    length += piece.length;
    if (length <= limit) begun.push(piece);
    else begun = [];
    if (length > limit * maxSkips) throw new Error('a line does not end');
  };
  const end = (): Line => {
    const bytes = length <= limit ? Buffer.concat(begun) : undefined;
    begun = [];
    length = 0;
    return { number: number++, bytes };
  };
  for await (const chunk of stream) {
    let start = 0;
    for (let feed = chunk.indexOf('\n'); feed !== -1; feed = chunk.indexOf('\n', start)) {
      add(chunk.subarray(start, feed));
      yield end();
      start = feed + 1;
    }
    add(chunk.subarray(start));
  }
  if (length > 0) yield end();
}

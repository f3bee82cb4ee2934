// Opens files and standard input, and splits a stream of bytes into lines within a limit of memory.
import { close, constants, createReadStream, open, statSync } from 'node:fs';
import { addAbortSignal, pipeline, Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';

/** Unpacks gzip, whatever the name. @param file path, or `-` for `stdin` @throws Error for a folder */
export async function openInput(
  file: string,
  stdin: Readable,
  signal: AbortSignal,
): Promise<Readable> {
  signal.throwIfAborted();
  const found = file === '-' ? undefined : statSync(file);
  if (found?.isDirectory()) throw new Error('it is a folder: name the files in it');
  const stream = found ? createReadStream(file, { highWaterMark: 256 * 1024 }) : stdin;
  if (found?.isFIFO()) unblockOnAbort(file, signal);
  addAbortSignal(signal, stream);
  const chunks = stream[Symbol.asyncIterator]();
  let start = Buffer.alloc(0);
  for (let done = false; start.length < 2 && !done; ) {
    const { value, done: isEnd = false } = await chunks.next();
    if (value) start = Buffer.concat([start, value]);
    done = isEnd;
  }
  const all = Readable.from(joinStart(start, chunks), { objectMode: false });
  // The callback takes an error that the reader of the last stream gets anyway.
  const opened =
    start.toString('hex', 0, 2) === '1f8b' ? pipeline(all, createGunzip(), () => {}) : all;
  return addAbortSignal(signal, opened);
}

async function* joinStart(start: Buffer, rest: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  if (start.length > 0) yield start;
  yield* { [Symbol.asyncIterator]: () => rest };
}

/** Opening a FIFO without a writer waits in a thread, which would keep the process from ending. */
function unblockOnAbort(file: string, signal: AbortSignal): void {
  const { O_RDWR, O_NONBLOCK } = constants;
  const unblock = () =>
    open(file, O_RDWR | O_NONBLOCK, (error, descriptor) => error ?? close(descriptor));
  signal.addEventListener('abort', unblock);
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

import { isUtf8 } from 'node:buffer';
import { createReadStream } from 'node:fs';
import { addAbortSignal, pipeline, type Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import type { SourceRecord, UnreadablePart } from './batch.ts';
import { asEnvelope, isInDefaultOrder } from './envelope.ts';

/** One record of a file, or a part of the file that holds none. */
export type Entry = (SourceRecord & { readonly inDefaultOrder: boolean }) | UnreadablePart;

/**
 * Reads the records of a file one by one. A file whose name or first line says so has a JSON
 * document per line and is streamed; any other is one JSON document and is held in memory.
 * @param file path, or `-` for `stdin`
 */
export async function* readEntries(
  file: string,
  stdin: Readable,
  signal: AbortSignal,
): AsyncGenerator<Entry> {
  const stream = file === '-' ? stdin : openFile(file);
  let hasLines: boolean | undefined = /\.(?:ndjson|jsonl)(?:\.gz)?$/i.test(file) || undefined;
  const held: Buffer[] = [];
  let number = 0;
  try {
    for await (const line of readLines(addAbortSignal(signal, stream))) {
      number++;
      hasLines ??= isBlank(line) ? undefined : 'value' in parse(line);
      if (hasLines) yield* readLine(line, `${file}:${number}`);
      else held.push(line);
    }
  } catch (error) {
    signal.throwIfAborted();
    const where = number > 0 ? `${file}:${number + 1}` : file;
    yield { where, reason: `it cannot be read (${explain(error)})` };
  }
  if (!hasLines) yield* readDocument(held, file);
}

function openFile(file: string): Readable {
  const stream = createReadStream(file, { highWaterMark: 256 * 1024 });
  // The callback is where an error would go that the reader of the last stream gets anyway.
  return /\.gz$/i.test(file) ? pipeline(stream, createGunzip(), () => {}) : stream;
}

/** Lines as bytes: a decoder in the stream would replace bytes that are not UTF-8 silently. */
async function* readLines(stream: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let begun: Buffer[] = [];
  for await (const chunk of stream) {
    let start = 0;
    for (let end = chunk.indexOf('\n'); end !== -1; end = chunk.indexOf('\n', start)) {
      begun.push(chunk.subarray(start, end));
      yield Buffer.concat(begun);
      begun = [];
      start = end + 1;
    }
    begun.push(chunk.subarray(start));
  }
  const last = Buffer.concat(begun);
  if (last.length > 0) yield last;
}

function* readLine(line: Buffer, where: string): Generator<Entry> {
  if (isBlank(line)) return;
  const parsed = parse(line);
  if ('reason' in parsed) yield { where, reason: parsed.reason };
  else yield* readValue(parsed.value, where);
}

function* readDocument(lines: readonly Buffer[], file: string): Generator<Entry> {
  if (lines.every(isBlank)) return;
  const parsed = parse(Buffer.concat(lines.flatMap((line) => [line, Buffer.from('\n')])));
  if ('value' in parsed) yield* readValue(parsed.value, file);
  // The first line was a broken record: the others must not be lost with it.
  else if (lines.some(holdsRecord)) {
    for (const [index, line] of lines.entries()) yield* readLine(line, `${file}:${index + 1}`);
  } else yield { where: file, reason: parsed.reason };
}

/** The records of a page envelope, an array, or the value itself as a record. */
function* readValue(value: unknown, where: string, inDefaultOrder = false): Generator<Entry> {
  const envelope = asEnvelope(value);
  const values = envelope?.results ?? value;
  if (!Array.isArray(values)) {
    yield { value, where, inDefaultOrder };
    return;
  }
  const isOrdered = envelope !== undefined && isInDefaultOrder(envelope);
  for (const [index, record] of values.entries()) {
    yield* readValue(record, `${where}, record ${index + 1}`, isOrdered);
  }
}

function parse(bytes: Buffer): { readonly value: unknown } | { readonly reason: string } {
  if (!isUtf8(bytes)) return { reason: 'it is not UTF-8' };
  try {
    return { value: JSON.parse(bytes.toString('utf8').replace(/^\uFEFF/, '')) };
  } catch (error) {
    return { reason: `it is not JSON (${explain(error)})` };
  }
}

function holdsRecord(line: Buffer): boolean {
  const parsed = parse(line);
  if (!('value' in parsed)) return false;
  const { value } = parsed;
  return (
    asEnvelope(value) !== undefined ||
    (typeof value === 'object' && value !== null && 'id' in value)
  );
}

function isBlank(line: Buffer): boolean {
  return line.length < 1000 && line.toString('latin1').trim() === '';
}

function explain(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

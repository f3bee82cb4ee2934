// The records of one file or of standard input, whatever form they have there.
import { isUtf8 } from 'node:buffer';
import { createReadStream } from 'node:fs';
import { addAbortSignal, pipeline, type Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { messageOf } from '../errors.ts';
import {
  maxPageBytes,
  maxPageSize,
  SourceError,
  type SourceRecord,
  toPart,
  type UnreadablePart,
} from './batch.ts';
import { asEnvelope, isInDefaultOrder } from './envelope.ts';
import { parseJson } from './json.ts';
import { readLines } from './lines.ts';

/** One record of a file, or a part of the file that holds none. */
export type Entry = (SourceRecord & { readonly inDefaultOrder: boolean }) | UnreadablePart;

/** Lists that may stand in each other: lines of pages of lists of records. */
const maxLists = 4;

/**
 * Reads the records of a file one by one. A file whose name or first line says so has a JSON
 * document per line and is streamed; any other is one JSON document and is held in memory, as long
 * as it is no larger than a page may be.
 * @param file path, or `-` for `stdin`
 */
export async function* readEntries(
  file: string,
  stdin: Readable,
  signal: AbortSignal,
): AsyncGenerator<Entry> {
  const stream = file === '-' ? stdin : openFile(file);
  let hasLines: boolean | undefined = /\.(?:ndjson|jsonl)(?:\.gz)?$/i.test(file) || undefined;
  const held = new Held();
  let number = 0;
  try {
    for await (const line of readLines(addAbortSignal(signal, stream), maxPageBytes)) {
      number = line.number;
      const where = `${file}:${number}`;
      hasLines ??= isBlank(line.bytes) ? undefined : isWhole(line.bytes);
      if (hasLines) {
        yield* readLine(line.bytes, where);
      } else if (!held.add(line.bytes)) {
        // A first line that is broken makes a file of records look like one document.
        hasLines = holdsRecords(held);
        if (!hasLines) {
          const advice = 'save it as pages, or with one record per line';
          yield { where: file, reason: `it is larger than ${maxPageSize}: ${advice}` };
          return;
        }
        yield* readHeldLines(held, file);
        yield* readLine(line.bytes, where);
      }
    }
  } catch (error) {
    signal.throwIfAborted();
    const where = number > 0 ? `${file}:${number + 1}` : file;
    yield { where, reason: `it cannot be read (${messageOf(error)})` };
  }
  if (!hasLines) yield* readDocument(held, file);
}

/** Lines that are put together again: in one piece, since millions of short ones have no room. */
class Held {
  #bytes = Buffer.alloc(64 * 1024);
  #length = 0;

  /** False when there would be more than a page may have. */
  add(line: Buffer | undefined): boolean {
    if (line === undefined) return false;
    const length = this.#length + line.length + 1;
    if (length > maxPageBytes) return false;
    if (length > this.#bytes.length) {
      const larger = Buffer.alloc(Math.max(length, 2 * this.#bytes.length));
      this.#bytes.copy(larger, 0, 0, this.#length);
      this.#bytes = larger;
    }
    line.copy(this.#bytes, this.#length);
    this.#bytes[length - 1] = 10;
    this.#length = length;
    return true;
  }

  all(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  *lines(): Generator<{ readonly number: number; readonly bytes: Buffer }> {
    const all = this.all();
    for (let start = 0, number = 1; start < all.length; number++) {
      const end = all.indexOf('\n', start);
      yield { number, bytes: all.subarray(start, end) };
      start = end + 1;
    }
  }
}

function openFile(file: string): Readable {
  const stream = createReadStream(file, { highWaterMark: 256 * 1024 });
  // The callback is where an error would go that the reader of the last stream gets anyway.
  return /\.gz$/i.test(file) ? pipeline(stream, createGunzip(), () => {}) : stream;
}

function* readLine(line: Buffer | undefined, where: string): Generator<Entry> {
  if (line === undefined) {
    yield { where, reason: `it is longer than ${maxPageSize}` };
    return;
  }
  if (isBlank(line)) return;
  const parsed = parse(line);
  if ('reason' in parsed) yield { where, reason: parsed.reason };
  else yield* readValue(parsed.value, where);
}

function* readDocument(held: Held, file: string): Generator<Entry> {
  const parsed = parse(held.all());
  if ('value' in parsed) {
    yield* readValue(parsed.value, file);
    return;
  }
  // The first line was a broken record: the others must not be lost with it.
  if (holdsRecords(held)) yield* readHeldLines(held, file);
  else if (!isBlank(held.all())) yield { where: file, reason: parsed.reason };
}

function* readHeldLines(held: Held, file: string): Generator<Entry> {
  for (const { number, bytes } of held.lines()) yield* readLine(bytes, `${file}:${number}`);
}

function holdsRecords(held: Held): boolean {
  for (const { bytes } of held.lines()) if (holdsRecord(bytes)) return true;
  return false;
}

/** The records of a page envelope, an array, or the value itself as a record. */
function* readValue(
  value: unknown,
  where: string,
  inDefaultOrder = false,
  lists = 0,
): Generator<Entry> {
  const envelope = asEnvelope(value);
  const values = envelope?.results ?? value;
  if (!Array.isArray(values) || lists === maxLists) {
    yield { ...toPart(value, where), inDefaultOrder };
    return;
  }
  const isOrdered = envelope !== undefined && isInDefaultOrder(envelope);
  for (const [index, record] of values.entries()) {
    yield* readValue(record, `${where}, record ${index + 1}`, isOrdered, lists + 1);
  }
}

function parse(bytes: Buffer): { readonly value: unknown } | { readonly reason: string } {
  if (!isUtf8(bytes)) return { reason: 'it is not UTF-8' };
  try {
    return { value: parseJson(bytes.toString('utf8').replace(/^\uFEFF/, '')) };
  } catch (error) {
    if (error instanceof SourceError) return { reason: error.message };
    return { reason: `it is not JSON (${messageOf(error)})` };
  }
}

function holdsRecord(line: Buffer): boolean {
  // Most lines of a document that is not one per line are quickly told by their ends.
  if (!line.includes('}') || !/^\s*\{/.test(line.toString('latin1', 0, 100))) return false;
  const parsed = parse(line);
  if (!('value' in parsed)) return false;
  const { value } = parsed;
  return (
    asEnvelope(value) !== undefined ||
    (typeof value === 'object' && value !== null && 'id' in value)
  );
}

function isBlank(bytes: Buffer | undefined): boolean {
  return bytes?.every((byte) => byte === 32 || (byte >= 9 && byte <= 13)) ?? false;
}

/** Whether a first line says that each line stands for itself: one that is too long says nothing. */
function isWhole(line: Buffer | undefined): boolean {
  return line === undefined || 'value' in parse(line);
}

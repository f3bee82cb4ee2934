// Reads the records of one file or of standard input, and detects the format.
import { isUtf8 } from 'node:buffer';
import type { Readable } from 'node:stream';
import { cut, messageOf } from '../../errors.ts';
import { openInput, readLines } from '../../old-listing/lines.ts';
import {
  asEnvelope,
  type Envelope,
  maxPageBytes,
  maxPageSize,
  parseJson,
  SourceError,
  type SourceRecord,
  toPart,
  type UnreadablePart,
} from '../../old-listing/page.ts';

export type Entry = SourceRecord | UnreadablePart;

/** Depth of nested lists: lines of pages of lists of records. */
const maxLists = 4;

/**
 * NDJSON, by its first line, is streamed; any other file is parsed as one document.
 * @param onPage called with each page before its records
 */
export async function* readEntries(
  file: string,
  stdin: Readable,
  signal: AbortSignal,
  onPage: (page: Envelope) => void = () => {},
): AsyncGenerator<Entry> {
  let stream: Readable | undefined;
  let number = 0;
  try {
    stream = await openInput(file, stdin, signal);
    const input = new Input(stream);
    if (!(await isFirstLineWhole(input))) {
      for await (const _chunk of input.hold());
      const parsed = input.isOverfull ? undefined : parse(input.held);
      if (parsed && 'value' in parsed) {
        yield* readValue(parsed.value, file, onPage);
        return;
      }
      // A broken first line makes NDJSON look like one document.
      if (!(await holdsRecords(input))) {
        const advice = 'save it as pages, or with one record per line, as jq -c writes them';
        const reason = parsed?.reason ?? `it is larger than ${maxPageSize}: ${advice}`;
        if (!parsed || !isBlank(input.held)) yield { where: file, reason };
        return;
      }
    }
    for await (const line of readLines(input.all(), maxPageBytes)) {
      number = line.number;
      yield* readLine(line.bytes, `${file}:${number}`, onPage);
    }
  } catch (error) {
    signal.throwIfAborted();
    const where = number > 0 ? `${file}:${number + 1}` : file;
    yield { where, reason: `it cannot be read (${messageOf(error)})` };
  } finally {
    stream?.destroy();
  }
}

/** A stream whose first `maxPageBytes` are buffered and can be read again. */
class Input {
  readonly #rest: AsyncIterator<Buffer>;
  readonly #chunks: Buffer[] = [];
  #length = 0;

  constructor(stream: Readable) {
    this.#rest = stream[Symbol.asyncIterator]();
  }

  get isOverfull(): boolean {
    return this.#length > maxPageBytes;
  }

  get held(): Buffer {
    return Buffer.concat(this.#chunks);
  }

  async *hold(): AsyncGenerator<Buffer> {
    while (!this.isOverfull) {
      const { done, value } = await this.#rest.next();
      if (done) return;
      this.#chunks.push(value);
      this.#length += value.length;
      yield value;
    }
  }

  async *all(): AsyncGenerator<Buffer> {
    yield* this.#chunks.splice(0);
    yield* { [Symbol.asyncIterator]: () => this.#rest };
  }

  lines() {
    return readLines(this.#chunks, maxPageBytes);
  }
}

/** Whether the first line is a whole document, as in NDJSON. */
async function isFirstLineWhole(input: Input): Promise<boolean> {
  for await (const { bytes } of readLines(input.hold(), maxPageBytes)) {
    if (bytes === undefined) return true;
    if (!isBlank(bytes)) return 'value' in parse(bytes);
  }
  return false;
}

async function holdsRecords(input: Input): Promise<boolean> {
  for await (const { bytes } of input.lines()) if (bytes && isRecord(bytes)) return true;
  return false;
}

function isRecord(line: Buffer): boolean {
  // A cheap test first: it rejects most lines of an indented document.
  if (!line.includes('}') || !/^\s*\{/.test(line.toString('latin1', 0, 100))) return false;
  const parsed = parse(line);
  if (!('value' in parsed)) return false;
  return asEnvelope(parsed.value) !== undefined || hasId(parsed.value);
}

const hasId = (value: unknown) =>
  ['id', 'user', 'user_id', 'outfit', 'outfit_id'].some((key) => key in Object(value));

function* readLine(
  line: Buffer | undefined,
  where: string,
  onPage: (page: Envelope) => void,
): Generator<Entry> {
  const parsed = line ? parse(line) : { reason: `it is longer than ${maxPageSize}` };
  if ('value' in parsed) yield* readValue(parsed.value, where, onPage);
  else if (!line || !isBlank(line)) yield { where, reason: parsed.reason };
}

function* readValue(
  value: unknown,
  where: string,
  onPage: (page: Envelope) => void,
  lists = 0,
): Generator<Entry> {
  const page = asEnvelope(value);
  if (page) onPage(page);
  const values = page?.results ?? value;
  if (!Array.isArray(values) || lists === maxLists) {
    const part = toPart(value, where);
    const isOther = 'value' in part && lists === 0 && Object(value) === value && !hasId(value);
    const reason = 'it is not a page with results and next, nor a record';
    yield isOther ? { where, reason: `${reason}: ${cut(JSON.stringify(value), 100)}` } : part;
    return;
  }
  for (const [index, record] of values.entries()) {
    yield* readValue(record, `${where}, record ${index + 1}`, onPage, lists + 1);
  }
}

function parse(bytes: Buffer): { readonly value: unknown } | { readonly reason: string } {
  if (!isUtf8(bytes)) return { reason: 'it is not UTF-8' };
  const text = bytes.toString('utf8').replace(/^\uFEFF/, '');
  try {
    return { value: parseJson(text) };
  } catch (error) {
    if (error instanceof SourceError) return { reason: error.message };
    const isSeveral = /[}\]]\s*[[{]/.test(text);
    const advice = isSeveral
      ? ': several documents must be one per line, as jq -c writes them'
      : '';
    return { reason: `it is not JSON (${cut(messageOf(error), 120)})${advice}` };
  }
}

function isBlank(bytes: Buffer): boolean {
  return bytes.every((byte) => byte === 32 || (byte >= 9 && byte <= 13));
}

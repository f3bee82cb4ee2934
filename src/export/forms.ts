// The forms of an export: a record per line (NDJSON), and a folder of pages, byte for byte as the listing answers.
import { createWriteStream } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable, type Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { ConfigError } from '../config.ts';
import { messageOf } from '../errors.ts';
import { typed } from '../package.ts';
import { encloseResults } from '../rest/documents.ts';
import { parseQuery } from '../rest/url.ts';
import { notWritten, orSay } from './whole.ts';

type Records = AsyncIterable<readonly Buffer[]>;

export async function writeLines(
  records: Records,
  file: string,
  { name, compressed }: { readonly name: string; readonly compressed: boolean },
): Promise<void> {
  // Flushed to the disk before it gets its name.
  const stream = createWriteStream(file, { flags: 'wx', flush: true });
  const end = (target: Writable) =>
    pipeline([joinLines(records), ...(compressed ? [createGzip()] : []), target]);
  await explainFailure(stream, end, (error) => notWritten(name, error));
}

export async function streamLines(records: Records, stream: Writable): Promise<void> {
  await explainFailure(
    stream,
    (target) => pipeline(joinLines(records), target, { end: false }),
    (error) => new ConfigError(`Nobody reads the output any more (${messageOf(error)}).`),
  );
}

/** Tells a failure of the stream from one of what is written to it. */
async function explainFailure(
  stream: Writable,
  work: (stream: Writable) => Promise<void>,
  explain: (error: unknown) => ConfigError,
): Promise<void> {
  let failure: Error | undefined;
  stream.on('error', (error) => {
    failure = error;
  });
  try {
    await work(stream);
  } catch (error) {
    throw error === failure ? explain(error) : error;
  }
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

const listingPath = '/api/outfits/';

export interface PagesOptions {
  readonly name: string;
  readonly base: string;
  readonly pageSize: number;
  /** Records of the whole listing, of the same snapshot. */
  readonly count: number;
}

export async function writePages(
  records: Records,
  folder: string,
  { name, base, pageSize, count }: PagesOptions,
): Promise<void> {
  await orSay(name, () => mkdir(folder));
  const pageCount = Math.max(1, Math.ceil(count / pageSize));
  const digits = String(pageCount).length;
  let written = 0;
  let page = 0;
  for await (const results of toPages(records, pageSize)) {
    page++;
    written += results.length;
    const query = page === 1 ? '' : `page=${page}`;
    const kept = {
      count,
      next: page < pageCount ? page + 1 : null,
      previous: page > 1 ? page - 1 : null,
      results: toList(results),
    };
    const { body } = encloseResults(base + listingPath, kept, parseQuery(query));
    const file = `page-${String(page).padStart(digits, '0')}.json`;
    await orSay(name, () => writeFile(join(folder, file), body, { flag: 'wx' }));
  }
  if (written !== count) {
    throw new ConfigError(
      `The database counts ${count} outfits, but holds ${written}: run ${typed('counts rebuild')} first.`,
    );
  }
}

/** Pages of the same size, but for the last one; an empty listing has one page. */
async function* toPages(records: Records, pageSize: number): AsyncGenerator<readonly Buffer[]> {
  let waiting: Buffer[] = [];
  let pages = 0;
  for await (const some of records) {
    waiting.push(...some);
    for (; waiting.length >= pageSize; pages++) {
      yield waiting.slice(0, pageSize);
      waiting = waiting.slice(pageSize);
    }
  }
  if (waiting.length > 0 || pages === 0) yield waiting;
}

function toList(records: readonly Buffer[]): Buffer {
  const parts = records.flatMap((record) => [Buffer.from(','), record]);
  return Buffer.concat([Buffer.from('['), ...parts.slice(1), Buffer.from(']')]);
}

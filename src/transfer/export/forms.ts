// The formats of an export: NDJSON, and a folder of pages with the bytes of the REST listing.
import { randomUUID } from 'node:crypto';
import { createWriteStream, existsSync } from 'node:fs';
import { lstat, mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { Readable, type Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { messageOf, OperatorError } from '../../errors.ts';

type Records = AsyncIterable<readonly Buffer[]>;

export async function writeLines(
  records: Records,
  file: string,
  { name, compressed }: { readonly name: string; readonly compressed: boolean },
): Promise<void> {
  // Flushed to the disk before the rename.
  const stream = createWriteStream(file, { flags: 'wx', flush: true });
  const end = (target: Writable) =>
    pipeline([joinLines(records), ...(compressed ? [createGzip()] : []), target]);
  await explainFailure(stream, end, (error) => notWritten(name, error));
}

export async function streamLines(records: Records, stream: Writable): Promise<void> {
  await explainFailure(
    stream,
    (target) => pipeline(joinLines(records), target, { end: false }),
    (error) => new OperatorError(`Standard output cannot be written (${messageOf(error)}).`),
  );
}

/** Explains an error of the stream; an error of the source is thrown unchanged. */
async function explainFailure(
  stream: Writable,
  work: (stream: Writable) => Promise<void>,
  explain: (error: unknown) => OperatorError,
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

interface PagesOptions {
  readonly name: string;
  readonly base: string;
  readonly pageSize: number;
  /** Records of the whole listing in the same snapshot. */
  readonly count: number;
}

export async function writePages(
  records: Records,
  folder: string,
  { name, base, pageSize, count }: PagesOptions,
): Promise<void> {
  await explainWrite(name, () => mkdir(folder));
  const pageCount = Math.max(1, Math.ceil(count / pageSize));
  const digits = String(pageCount).length;
  let written = 0;
  let page = 0;
  for await (const results of toPages(records, pageSize)) {
    page++;
    written += results.length;
    const link = (number: number) => `${base}${listingPath}?page=${number}`;
    const next = page < pageCount ? link(page + 1) : null;
    const previous = page > 1 ? link(page - 1) : null;
    const empty = JSON.stringify({ count, next, previous, results: null });
    const head = Buffer.from(empty.slice(0, -'null}'.length));
    const body = Buffer.concat([head, toList(results), Buffer.from('}')]);
    const file = `page-${String(page).padStart(digits, '0')}.json`;
    await explainWrite(name, () => writeFile(join(folder, file), body, { flag: 'wx' }));
  }
  if (written !== count) {
    throw new OperatorError(
      `The database counts ${count} outfits, but holds ${written}: run "outfit-gateway counts rebuild" first.`,
    );
  }
}

/** Splits records into pages of `pageSize`; an empty listing has one page. */
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

const pageFile = /^page-\d+\.json$/;

/** Atomic: writes under a temporary name and renames at the end. */
export async function writeWhole(
  path: string,
  overwrite: boolean,
  write: (temporary: string) => Promise<void>,
): Promise<void> {
  await checkTarget(path, overwrite);
  const place = resolve(path);
  const beside = (kind: string) =>
    join(dirname(place), `.${basename(place)}.${randomUUID().slice(0, 8)}.${kind}`);
  const temporary = beside('partial');
  try {
    await write(temporary);
    await checkTarget(path, overwrite);
    await explainWrite(path, () => moveInto(place, temporary, beside('old')));
  } catch (error) {
    await rm(temporary, { recursive: true, force: true });
    throw error;
  }
}

async function explainWrite<Result>(path: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw notWritten(path, error);
  }
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
  if (!found) return;
  const entries = found.isDirectory() ? await explainWrite(path, () => readdir(path)) : undefined;
  if (entries?.length === 0) return;
  if (!overwrite) {
    throw new OperatorError(`${path} is there already: choose another name, or add --overwrite.`);
  }
  const other = entries?.find((name) => !pageFile.test(name));
  if (other !== undefined) {
    throw new OperatorError(
      `${path} holds ${JSON.stringify(other)}, which no export has written: choose another folder.`,
    );
  }
}

/** A folder cannot replace one that is not empty: the old one is renamed first, and removed at the end. */
async function moveInto(place: string, temporary: string, old: string): Promise<void> {
  const found = await lstat(place).catch(() => undefined);
  if (!found?.isDirectory()) {
    await rename(temporary, place);
    return;
  }
  await rename(place, old);
  try {
    await rename(temporary, place);
  } catch (error) {
    await rename(old, place);
    throw error;
  }
  await rm(old, { recursive: true, force: true });
}

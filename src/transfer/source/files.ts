// Reads files and folders in the order of their names.
import { createHash } from 'node:crypto';
import { statSync } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { cut, messageOf } from '../../errors.ts';
import {
  type Batch,
  type Envelope,
  type ReadOptions,
  SourceError,
} from '../../old-listing/page.ts';
import { type Entry, readEntries } from './entries.ts';

/** @throws SourceError when a path does not exist or a folder holds nothing to read */
export async function* readFiles(
  paths: readonly string[],
  options: ReadOptions,
): AsyncGenerator<Batch> {
  const { from } = options;
  const files = await listFiles(paths, options.notify);
  const first = from === undefined ? 0 : files.indexOf(from.at);
  if (first === -1) throw new SourceError(`${from?.at} is gone: start again with --restart.`);
  let last: Envelope | undefined;
  const onPage = (page: Envelope) => {
    last = page;
  };
  for (const [index, file] of files.slice(first).entries()) {
    const done = index === 0 ? (from?.done ?? 0) : 0;
    let number = 0;
    const toBatch = (...parts: Entry[]): Batch => {
      return { parts, next: { at: file, done: number }, count: last?.count };
    };
    for await (const entry of readEntries(file, options.stdin, options.signal, onPage)) {
      number++;
      // An interrupted run has saved the others.
      if (number > done) yield toBatch(entry);
      options.signal.throwIfAborted();
    }
    yield toBatch();
    options.signal.throwIfAborted();
  }
  if (typeof last?.next !== 'string' || last.count !== undefined) return;
  options.notify(`The last page links to another one, which did not come (${cut(last.next)}).`);
  options.onShortened?.('the last page links to another one');
}

async function listFiles(
  paths: readonly string[],
  notify: (sentence: string) => void,
): Promise<string[]> {
  const lists = await Promise.all(
    paths.map(async (path) => {
      if (path === '-') return [path];
      const found = await stat(path).catch((error) => {
        throw new SourceError(`${path} cannot be read (${messageOf(error)}).`);
      });
      if (!found.isDirectory()) return [path];
      const all = await listFolder(path);
      // Programs keep files of their own beside others: `._1.json` of macOS, `..data` of Kubernetes.
      const files = all.filter((file) =>
        /(?:^|\/)[^./][^/]*\.(?:json|ndjson|jsonl)(?:\.gz)?$/i.test(file),
      );
      if (files.length === 0) {
        throw new SourceError(
          `${path} has no file that ends in .json, .ndjson or .jsonl (or .gz of these).`,
        );
      }
      const other = all.find((file) => !files.includes(file));
      if (other !== undefined) {
        const number = all.length - files.length;
        notify(
          `${number} of the files in ${path} are left out, because they are not .json, .ndjson or .jsonl or begin with a dot, such as ${other}.`,
        );
      }
      return files;
    }),
  );
  return lists.flat();
}

export async function fingerprintFiles(paths: readonly string[]): Promise<string> {
  const files = await listFiles(paths, () => {});
  const marks = files.map((file) => {
    const found = statSync(file, { throwIfNoEntry: false });
    return `${file} ${found?.size} ${found?.mtimeMs}`;
  });
  return createHash('sha256').update(marks.join('\n')).digest('hex');
}

async function listFolder(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  const { compare } = new Intl.Collator('en', { numeric: true });
  entries.sort((a, b) => compare(a.name, b.name) || (a.name < b.name ? -1 : 1));
  const lists = entries.map((entry) => {
    const path = join(folder, entry.name);
    if (!entry.isDirectory()) return [path];
    return entry.name.startsWith('.') ? [] : listFolder(path);
  });
  return (await Promise.all(lists)).flat();
}

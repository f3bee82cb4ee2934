// Reads files and folders in the order of their names.
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { cut, messageOf } from '../../errors.ts';
import {
  type Batch,
  type Envelope,
  type ReadOptions,
  SourceError,
} from '../../old-listing/page.ts';
import { readEntries } from './entries.ts';

export interface FileOptions extends ReadOptions {
  readonly stdin: Readable;
}

/** @throws SourceError when a path does not exist or a folder holds nothing to read */
export async function* readFiles(
  paths: readonly string[],
  { stdin, signal, notify, onShortened }: FileOptions,
): AsyncGenerator<Batch> {
  let last: Envelope | undefined;
  const onPage = (page: Envelope) => {
    last = page;
  };
  for (const file of await listFiles(paths, notify)) {
    for await (const entry of readEntries(file, stdin, signal, onPage)) {
      yield { parts: [entry], count: last?.count };
      signal.throwIfAborted();
    }
    yield { parts: [], count: last?.count };
    signal.throwIfAborted();
  }
  if (typeof last?.next !== 'string' || last.count !== undefined) return;
  notify(`The last page links to another one, which did not come (${cut(last.next)}).`);
  onShortened?.('the last page links to another one');
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

// Template of the embedded database: an archive of migrated files, made by the build and unpacked on a first start.
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, brotliDecompressSync, constants } from 'node:zlib';

/** Path in the folder, and for a file its size in bytes. */
type Entry = readonly [path: string, size?: number];

/** Packs a closed database: a line of JSON with the entries, then their bytes. Returns the size of the archive. */
export function packTemplate(folder: string, archive: string): number {
  const contents: Buffer[] = [];
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).map(
    (entry): Entry => {
      const file = join(entry.parentPath, entry.name);
      const path = file.slice(folder.length + 1);
      if (entry.isDirectory()) return [path];
      const content = readFileSync(file);
      contents.push(content);
      return [path, content.length];
    },
  );
  const bytes = Buffer.concat([Buffer.from(`${JSON.stringify(entries)}\n`), ...contents]);
  const compressed = brotliCompressSync(bytes, {
    params: {
      // A higher quality takes seconds of the build and saves a tenth of the size.
      [constants.BROTLI_PARAM_QUALITY]: 5,
      // The three databases of PostgreSQL are almost equal: the window reaches from one to the next.
      [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS,
      [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
    },
  });
  // Atomic, since a gateway may start at this time.
  writeFileSync(`${archive}.new`, compressed);
  renameSync(`${archive}.new`, archive);
  return compressed.length;
}

export function unpackTemplate(archive: string, folder: string): void {
  const bytes = brotliDecompressSync(readFileSync(archive));
  let offset = bytes.indexOf('\n') + 1;
  for (const [path, size] of JSON.parse(bytes.toString('utf8', 0, offset)) as Entry[]) {
    const target = join(folder, path);
    if (size === undefined) {
      mkdirSync(target, { mode: 0o700 });
      continue;
    }
    writeFileSync(target, bytes.subarray(offset, offset + size), { mode: 0o600 });
    offset += size;
  }
}

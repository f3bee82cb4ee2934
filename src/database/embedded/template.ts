// The template of the embedded database: its files, migrated, in an archive of the build. A first start unpacks it.
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, brotliDecompressSync, constants } from 'node:zlib';

/** Path below the folder, and the size in bytes of a file. */
type Entry = readonly [path: string, size?: number];

/** Packs a closed database: its entries in a line of JSON, then their bytes. Gives the archive's size. */
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
      // A higher one takes seconds of the build for a tenth of the size.
      [constants.BROTLI_PARAM_QUALITY]: 5,
      // The three databases of PostgreSQL are nearly the same: the window reaches from one to the next.
      [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS,
      [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
    },
  });
  // A gateway may start at this moment.
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

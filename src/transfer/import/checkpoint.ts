// The checkpoint file of an import of a live listing: an interrupted run is resumed from it.
import { createHash } from 'node:crypto';
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { ConfigError } from '../../config/config.ts';
import { makeFolder } from '../../database/embedded/data-folder.ts';
import { messageOf } from '../../errors.ts';

export type Progress = z.output<typeof progress>;

const count = z.int().min(0);
const progress = z.object({
  /** The page to begin with. */
  page: z.string(),
  bases: z.object({ media: z.string().optional(), video: z.string().optional() }),
  totals: z.object({
    read: count,
    created: count,
    updated: count,
    unchanged: count,
    broken: count,
  }),
  unkept: z.array(z.tuple([z.string(), count])).default([]),
  outside: z.array(z.tuple([z.string(), count])).default([]),
  /** The last saved outfit. A database without it is another one: the import does not resume. */
  savedId: z.int().optional(),
});

const content = z.object({ run: z.string(), progress });

export class Checkpoint {
  readonly #path: string;

  /** @param run options and database: a run resumes only a checkpoint with the same ones */
  constructor(
    private readonly folder: string,
    source: string,
    private readonly run: string,
  ) {
    const name = createHash('sha256').update(source).digest('hex').slice(0, 16);
    this.#path = join(folder, `${name}.json`);
  }

  /** The progress of an interrupted run with the same options; undefined: none. */
  read(): Progress | undefined {
    try {
      const found = content.parse(JSON.parse(readFileSync(this.#path, 'utf8')));
      return found.run === this.run ? found.progress : undefined;
    } catch {
      return undefined; // None or damaged: an import from the beginning is safe.
    }
  }

  write(reached: Progress): void {
    try {
      makeFolder(this.folder);
      // Atomic: a process that is killed while it writes keeps the old checkpoint.
      writeFileSync(`${this.#path}.new`, JSON.stringify({ run: this.run, progress: reached }));
      renameSync(`${this.#path}.new`, this.#path);
    } catch (error) {
      throw new ConfigError(
        `The state of the import cannot be kept in ${this.folder} (${messageOf(error)}): set DATA_DIR to a folder that can be written.`,
      );
    }
  }

  remove(): void {
    rmSync(this.#path, { force: true });
  }
}

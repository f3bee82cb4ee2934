// The file from which an interrupted import goes on.
import { createHash } from 'node:crypto';
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { ConfigError } from '../../config.ts';
import { makeFolder } from '../../database/embedded/data-folder.ts';
import { messageOf } from '../../errors.ts';

export type Progress = z.output<typeof progress>;

const count = z.int().min(0);
const progress = z.object({
  position: z.object({ at: z.string(), done: count }),
  bases: z.object({ media: z.string().optional(), video: z.string().optional() }),
  totals: z.object({
    read: count,
    created: count,
    updated: count,
    unchanged: count,
    broken: count,
  }),
  unkept: z.array(z.tuple([z.string(), count])).default([]),
  /** An outfit that was saved: if the database has lost it, it is not the same database. */
  savedId: z.int().optional(),
});

const content = z.object({ run: z.string(), progress });

export class Checkpoint {
  readonly #path: string;

  /** @param run what else must be the same for another run to go on: options, database, file times */
  constructor(
    private readonly folder: string,
    source: string,
    private readonly run: string,
  ) {
    const name = createHash('sha256').update(source).digest('hex').slice(0, 16);
    this.#path = join(folder, `${name}.json`);
  }

  /** What an interrupted run with the same options left; undefined when there is nothing. */
  read(): Progress | undefined {
    try {
      const found = content.parse(JSON.parse(readFileSync(this.#path, 'utf8')));
      return found.run === this.run ? found.progress : undefined;
    } catch {
      return undefined; // none, or one that was damaged: an import from the beginning is safe
    }
  }

  write(reached: Progress): void {
    try {
      makeFolder(this.folder);
      // A process that is killed while writing leaves the old checkpoint whole.
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

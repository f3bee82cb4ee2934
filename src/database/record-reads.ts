// Remembers of readings what they were made of.
import { type MadeOf, madeOfAll } from './changes.ts';
import type { ReadOptions, ReadRows } from './read.ts';

export interface RecordedReads {
  readonly read: ReadRows;
  /** Something is read in another way. */
  noteAnything(): void;
  /** What has been read; undefined: something that does not say what it is of. */
  madeOf(): MadeOf | undefined;
}

/**
 * Reads, and remembers it. Whoever forgets to say what a statement is of has read anything, so that an
 * answer ends rather too often than too late.
 */
export function recordReads(read: ReadRows): RecordedReads {
  const all: (MadeOf | undefined)[] = [];
  return {
    async read<Row extends object>(
      text: string,
      values: readonly unknown[],
      options: ReadOptions<Row> = {},
    ) {
      // Until it is known; and for good when the reading fails.
      const place = all.push(undefined) - 1;
      const rows = await read(text, values, options);
      all[place] = options.madeOf?.(rows);
      return rows;
    },
    noteAnything: () => all.push(undefined),
    madeOf: () => madeOfAll(all),
  };
}

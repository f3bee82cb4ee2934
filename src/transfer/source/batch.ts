// What every kind of source gives: records with their places, in batches; and the envelope of a page.
import type { Readable } from 'node:stream';
import { z } from 'zod';
import { OperatorError } from '../../errors.ts';
import { isDeeper } from '../../http/json.ts';

/** Held of a source at a time, after decompression: a page, a line, or a file that is one document. */
export const maxPageBytes = 64 * 1024 * 1024;
export const maxPageSize = '64 MiB';

/** A record has two levels. Recursion over deeper ones may run out of stack. */
const maxLevels = 16;

export interface SourceRecord {
  readonly value: unknown;
  readonly where: string;
}

/** A part of a source from which no record could be read, such as a line that is not JSON. */
export interface UnreadablePart {
  readonly where: string;
  readonly reason: string;
}

export function toPart(value: unknown, where: string): SourceRecord | UnreadablePart {
  if (!isDeeper(value, maxLevels)) return { value, where };
  return { where, reason: `it is nested deeper than ${maxLevels} levels` };
}

/** A point between two records of a source, to go on from. */
export interface Position {
  readonly at: string;
  /** Records and unreadable parts of it that are done; 0 for a page. */
  readonly done: number;
}

export interface Batch {
  readonly parts: readonly (SourceRecord | UnreadablePart)[];
  /** Where to go on once this batch is saved; undefined behind the last page of a listing. */
  readonly next: Position | undefined;
  readonly count: number | undefined;
  /** The same at the first of the pages that were joined to this batch; undefined: as `count`. */
  readonly firstCount?: number | undefined;
}

/** The source cannot be read (on); the message is one sentence that says why. */
export class SourceError extends OperatorError {
  override readonly name = 'SourceError';
}

export interface ReadOptions {
  readonly from?: Position | undefined;
  readonly signal: AbortSignal;
  readonly stdin: Readable;
  /** Milliseconds between two pages of a live listing; undefined: none. */
  readonly pause?: number | undefined;
  /** Called when a live listing had no page any more where it had promised one. */
  readonly onShortened?: () => void;
  readonly notify: (sentence: string) => void;
}

/** Objects and lists of a text: 60 MB of `{},{},` would take 2.7 GB when read, 64 MB of `[[[[` half a minute. */
const maxHolders = 2_000_000;

/** @throws SyntaxError, or SourceError for what is not worth its memory */
export function parseJson(text: string): unknown {
  if (text.length > maxHolders && count(text, '{') + count(text, '[') > maxHolders) {
    throw new SourceError(`it has more than ${maxHolders} objects and lists`);
  }
  return JSON.parse(text);
}

function count(text: string, character: string): number {
  let found = 0;
  for (let at = text.indexOf(character); at !== -1; at = text.indexOf(character, at + 1)) found++;
  return found;
}

export type Envelope = z.output<typeof envelope>;

const envelope = z.object({
  count: z.int().min(0).optional(),
  next: z.string().nullable(),
  results: z.array(z.unknown()),
});

export function asEnvelope(value: unknown): Envelope | undefined {
  return envelope.safeParse(value).data;
}

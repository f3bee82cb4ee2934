// The envelope of a page, read from JSON with a bounded number of objects.
import { z } from 'zod';
import { SourceError } from './batch.ts';

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

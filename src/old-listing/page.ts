// What every source yields: batches of records with their places; and the envelope of a page.
import { z } from 'zod';
import { OperatorError } from '../errors.ts';
import { isDeeper } from '../http/representation.ts';

/** Limit of a page, a line, or a file that is one document, after decompression. */
export const maxPageBytes = 64 * 1024 * 1024;
export const maxPageSize = '64 MiB';

/** A record has two levels. Deeper ones may overflow the stack in recursion. */
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

export interface Batch {
  readonly parts: readonly (SourceRecord | UnreadablePart)[];
  /** The page to resume at once this batch is saved; undefined within a page, after the last one, and in files. */
  readonly next?: string | undefined;
  /** `count` of the last page so far. */
  readonly count: number | undefined;
}

/** The source cannot be read; the message is one sentence with the reason. */
export class SourceError extends OperatorError {
  override readonly name = 'SourceError';
}

export interface ReadOptions {
  readonly signal: AbortSignal;
  /** Milliseconds between two pages of a live listing; undefined: none. */
  readonly pause?: number | undefined;
  /** Called when a page did not come that another one links to. @param reason a clause */
  readonly onShortened?: (reason: string) => void;
  readonly notify: (sentence: string) => void;
}

/** Objects and lists in a text: 60 MB of `{},{},` take 2.7 GB when parsed, 64 MB of `[[[[` half a minute. */
const maxContainers = 2_000_000;

/** @throws SyntaxError, or SourceError beyond the limit of memory */
export function parseJson(text: string): unknown {
  if (text.length > maxContainers && count(text, '{') + count(text, '[') > maxContainers) {
    throw new SourceError(`it has more than ${maxContainers} objects and lists`);
  }
  return JSON.parse(text);
}

function count(text: string, character: string): number {
  let found = 0;
  for (let at = text.indexOf(character); at !== -1; at = text.indexOf(character, at + 1)) found++;
  return found;
}

export type Envelope = z.output<typeof envelope>;

/** Some paginators end with `""` or `false` instead of null, or leave `next` out. */
const next = z.union([z.null(), z.literal(['', 'null', false]).transform(() => null), z.string()]);

const envelope = z.object({
  count: z
    .int()
    .min(0)
    .nullish()
    .transform((count) => count ?? undefined),
  next: next.optional(),
  results: z.array(z.unknown()),
});

/** @param isLinked whether another page links to it: then it needs neither `count` nor `next` */
export function asEnvelope(value: unknown, isLinked = false): Envelope | undefined {
  const { data } = envelope.safeParse(value);
  return isLinked || data?.next !== undefined || data?.count !== undefined ? data : undefined;
}

const looseEnvelope = envelope.extend({
  count: envelope.shape.count.catch(undefined),
  next: envelope.shape.next.catch(undefined),
});

/** A page, whatever its `count` and `next` are: undefined when they break the contract. */
export function readEnvelope(value: unknown): Envelope | undefined {
  return looseEnvelope.safeParse(value).data;
}

/** The query of a link, with its `?`; empty without parameters. The rest is not used: behind a proxy a service may not know its own address. */
export function queryOf(link: string | null | undefined): string | undefined {
  if (typeof link !== 'string') return undefined;
  const query = link.split('#', 1)[0]?.split('?').slice(1).join('?');
  return query ? `?${query}` : '';
}

export function readProperty(holder: unknown, key: PropertyKey): unknown {
  return typeof holder === 'object' && holder !== null ? Reflect.get(holder, key) : undefined;
}

/** Shows how a long reading goes on. */
export interface Progress {
  note(sentence: string): void;
  progress(read: number, total: number | undefined): void;
}

// Representations: JSON of requests and answers; content negotiation by Accept and Accept-Encoding, ETag and 304.

import { isUtf8 } from 'node:buffer';
import { hash } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliCompress, brotliCompressSync, constants, gzip, gzipSync } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { LRUCache } from 'lru-cache';
import { HttpError } from '../errors.ts';

type Encoding = 'br' | 'gzip';

/** A body that is sent more than once. */
export interface Representable {
  readonly body: Buffer;
  readonly contentType?: string;
  /** Entity tag without content coding; by default that of the body, computed on first use. */
  tag?: string;
  /** Whether shared caches may store it: not the answer of one viewer. */
  readonly shareable?: boolean;
  /** Whether its path has a hash of it: each client fetches it once, so already the first gets it compressed. */
  readonly isImmutable?: boolean;
  /** Its compressed representations, which add at most twice its bytes; undefined: nobody has asked for one. */
  coded?: Partial<Record<Encoding, Representation | Promise<Representation>>>;
}

interface Representation {
  readonly bytes: Buffer;
  readonly encoding: Encoding | undefined;
}

/**
 * A strong entity tag of these bytes, or of an answer that they determine.
 * @see https://www.rfc-editor.org/rfc/rfc9110#section-8.8.3
 */
export function entityTag(content: Buffer | string): string {
  return `"${hash('sha1', content, 'base64url')}"`;
}

/**
 * Weak comparison, ignoring the suffix that this gateway or a proxy adds for a content coding.
 * @see https://www.rfc-editor.org/rfc/rfc9110#section-13.1.2
 */
export function matchesIfNoneMatch(header: string | undefined, tag: string): boolean {
  if (header === undefined) return false;
  const wanted = withoutCoding(tag);
  const tags = header.split(',').map((candidate) => withoutCoding(candidate.trim()));
  return tags.includes(wanted) || header.trim() === '*';
}

/** Proxies write `-gzip`, `--gzip`, `;gzip`, `:gzip`, `/gzip`. */
const codingSuffix = /[-;:/._~+]{1,2}(?:br|compress|dcb|dcz|deflate|x?-?gzip|zstd)"$/i;

function withoutCoding(tag: string): string {
  return tag.replace(/^W\//, '').replace(codingSuffix, '"');
}

/**
 * Sends an answer with its validators, if it is the one to a read, in the content coding that `Accept-Encoding` selects, or 304 when the client has it.
 * @see https://www.rfc-editor.org/rfc/rfc9110#section-12.5.3
 * @see https://www.rfc-editor.org/rfc/rfc9110#section-15.4.5
 */
export function sendRepresentation(
  request: FastifyRequest,
  reply: FastifyReply,
  answer: Representable,
  compresses: boolean,
): FastifyReply | Promise<FastifyReply> {
  const { shareable = true } = answer;
  const selected =
    compresses && shareable
      ? select(answer, request.headers['accept-encoding']?.toString())
      : identityOf(answer);
  return selected instanceof Promise
    ? selected.then((representation) => sendSelected(request, reply, answer, representation))
    : sendSelected(request, reply, answer, selected);
}

function sendSelected(
  { headers, method }: FastifyRequest,
  reply: FastifyReply,
  answer: Representable,
  { bytes, encoding }: Representation,
): FastifyReply {
  const { contentType = 'application/json', shareable = true, isImmutable } = answer;
  // Names in lower case, as Fastify keeps them: others are converted, and looked up, for each answer.
  if (isImmutable) reply.header('cache-control', 'public, max-age=31536000, immutable');
  else if ((method === 'GET' || method === 'HEAD') && reply.statusCode === 200) {
    answer.tag ??= entityTag(answer.body);
    reply.header('cache-control', shareable ? 'no-cache' : 'private, no-cache');
    reply.header('etag', codedTag(answer.tag, encoding));
    if (matchesIfNoneMatch(headers['if-none-match'], answer.tag)) return reply.code(304).send();
  }
  if (encoding) reply.header('content-encoding', encoding);
  return reply.header('content-type', contentType).send(bytes);
}

/** A strong tag differs for each content coding. */
export function codedTag(tag: string, encoding: Encoding | undefined): string {
  return encoding ? `${tag.slice(0, -1)}-${encoding}"` : tag;
}

/** Smaller answers fit into one packet anyway. */
const minBytes = 1_000;
/** Larger answers take longer to send than to compress. */
const largeBytes = 1_000_000;

/** Compresses only an answer that is requested again, or large. Returns a promise only while compressing. */
function select(answer: Representable, header: string | undefined) {
  const { body, coded, isImmutable = body.length >= largeBytes } = answer;
  const { encoding, acceptsIdentity } = accepted(body, header);
  if (encoding) answer.coded ??= {};
  if (!encoding || !(coded || isImmutable || !acceptsIdentity)) return identityOf(answer);
  const existing = coded?.[encoding];
  if (existing) return existing;
  // In the thread pool, so that other requests do not wait.
  const compressing = encoding === 'br' ? brotli(body, brotliOptions(body)) : promisify(gzip)(body);
  const made = compressing.then((bytes) => keep(answer, encoding, bytes));
  answer.coded = { ...coded, [encoding]: made };
  return made;
}

/** Compresses in this turn, and the first time already: for an answer that took longer to build than to compress. */
export function selectAtOnce(answer: Representable, header: string | undefined): Representation {
  const { body, coded } = answer;
  const { encoding } = accepted(body, header);
  if (!encoding) return identityOf(answer);
  const existing = coded?.[encoding];
  if (existing && 'bytes' in existing) return existing;
  const isBrotli = encoding === 'br';
  const bytes = isBrotli ? brotliCompressSync(body, brotliOptions(body)) : gzipSync(body);
  return keep(answer, encoding, bytes);
}

function keep(answer: Representable, encoding: Encoding, bytes: Buffer): Representation {
  const isSmaller = bytes.length < answer.body.length;
  const made = isSmaller ? { bytes, encoding } : identityOf(answer);
  answer.coded = { ...answer.coded, [encoding]: made };
  return made;
}

const identityOf = ({ body }: Representable) => ({ bytes: body, encoding: undefined });

const brotli = promisify(brotliCompress);
const { BROTLI_PARAM_QUALITY, BROTLI_PARAM_SIZE_HINT } = constants;
const brotliOptions = ({ length }: Buffer) => ({
  // Higher qualities take several times as long, and save a few percent.
  params: { [BROTLI_PARAM_QUALITY]: 5, [BROTLI_PARAM_SIZE_HINT]: length },
});

function accepted({ length }: Buffer, header: string | undefined) {
  const isCoded = header !== undefined && length >= minBytes;
  return isCoded ? parseAccepted(header) : { encoding: undefined, acceptsIdentity: true };
}

/** By weight; of equals any coding before none, and brotli first: it is smaller, and its cost is paid once. */
const parseAccepted = memoizeHeader((header) => {
  const ranges = parseRanges(header.replace(/x-gzip/gi, 'gzip'));
  const weightOf = (name: string) => ranges.findLast((range) => range.name === name)?.weight;
  const any = weightOf('*');
  const identity = weightOf('identity') ?? any ?? 0;
  const codings = (['br', 'gzip'] as const)
    .map((encoding) => ({ encoding, weight: weightOf(encoding) ?? any ?? 0 }))
    .filter(({ weight }) => weight > 0 && weight >= identity)
    .sort((a, b) => b.weight - a.weight);
  const acceptsIdentity = (weightOf('identity') ?? any) !== 0;
  return { encoding: codings[0]?.encoding, acceptsIdentity };
});

interface Range {
  /** Ends with a semicolon when the range has parameters other than `q`. */
  readonly name: string;
  readonly weight: number;
}

/** Caches what `parse` returns for a header: clients send the same one with each request. */
export function memoizeHeader<Parsed extends object>(parse: (header: string) => Parsed) {
  const cache = new LRUCache<string, Parsed>({ max: 100 });
  return (header: string): Parsed => {
    const cached = cache.get(header);
    if (cached) return cached;
    const parsed = parse(header);
    if (header.length <= 200) cache.set(header, parsed);
    return parsed;
  };
}

/** Ranges with their weights. @see https://www.rfc-editor.org/rfc/rfc9110#section-12.4.2 */
function parseRanges(header: string): Range[] {
  return header.toLowerCase().split(',').map(parseRange);
}

function parseRange(text: string): Range {
  const [name = '', ...parameters] = text.split(';').map((piece) => piece.trim());
  const q = parameters.findIndex((parameter) => parameter.startsWith('q='));
  return {
    name: q > 0 || (q < 0 && parameters.length > 0) ? `${name};` : name,
    weight: q < 0 ? 1 : Number(parameters[q]?.slice(2)) || 0,
  };
}

/**
 * The type with the highest weight, by its most specific range. Of equals, the one whose range comes first, then the
 * first of `types`.
 * @see https://www.rfc-editor.org/rfc/rfc9110#section-12.5.1
 */
export function preferredType<Type extends string>(accept: string, types: readonly Type[]) {
  const ranges = parseRanges(accept);
  const placeOf = (name: string) => ranges.findIndex((range) => range.name === name);
  const [best] = types
    .map((type) => {
      const names = [type, `${type};`, `${type.split('/', 1)[0]}/*`, '*/*'];
      const place = names.map(placeOf).find((found) => found !== -1) ?? -1;
      return { type, place, weight: ranges[place]?.weight ?? 0 };
    })
    .sort((a, b) => b.weight - a.weight || a.place - b.place);
  return best && best.weight > 0 ? best : undefined;
}

/** Default header of HttpURLConnection in Java: no browser. */
const java = /^text\/html, image\/gif, image\/jpeg, (?:\*; q=\.2, )?\*\/\*; q=0?\.2$/;

/** Whether `accept` names HTML and prefers it to `others`, as browsers do. */
export function prefersHtml(
  accept = '',
  others: readonly string[] = ['application/json'],
): boolean {
  // Fast path: most requests come from programs.
  if (!/text\/html/i.test(accept) || java.test(accept)) return false;
  const page = preferredType(accept, ['text/html']);
  return page !== undefined && page.weight > (preferredType(accept, others)?.weight ?? 0);
}

const json = new Set(['*/*', 'application/*', 'application/json']);

/** Whether `Accept` allows JSON. Parameters are ignored, `q=0` included, as in Django REST Framework. */
export function acceptsJson(header: string | undefined): boolean {
  if (header === undefined || header.trim() === '' || json.has(header)) return true;
  return header
    .split(',')
    .some((part) => json.has((part.split(';')[0] ?? '').trim().toLowerCase()));
}

/** Escapes U+2028 and U+2029, which clients that evaluate JSON reject. A Buffer: Fastify adds a charset to a string. */
export function encodeJson(value: unknown): Buffer {
  return Buffer.from(
    JSON.stringify(value).replace(/[\u2028\u2029]/g, (separator) =>
      separator === '\u2028' ? '\\u2028' : '\\u2029',
    ),
  );
}

/** What a client sent cannot be read; the message says what and why. */
export class InputError extends HttpError {
  constructor(message: string) {
    super(400, 'BAD_REQUEST', message);
  }
}

/** Limit of nesting: valid input has a few levels, and deep input would overflow the stack later. */
export const maxLevels = 32;

/** @throws InputError for invalid UTF-8, which would silently become U+FFFD */
export function decodeBody(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw new InputError('The body is not valid UTF-8.');
  return bytes.toString('utf8');
}

/**
 * @param what such as "The body"
 * @throws InputError for invalid JSON, and for JSON nested too deep
 */
export function readJson(text: string, what: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    const isEmpty = text.trim() === '';
    throw new InputError(`${what} is ${isEmpty ? 'empty' : 'not valid JSON'}.`);
  }
  if (!isDeeper(value, maxLevels)) return value;
  throw new InputError(`${what} is nested deeper than ${maxLevels} levels.`);
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

export function isDeeper(value: unknown, levels: number): boolean {
  if (!isObject(value)) return false;
  return levels === 0 || Object.values(value).some((inner) => isDeeper(inner, levels - 1));
}

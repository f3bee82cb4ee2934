// Representations of an answer: ETag and If-None-Match (304), content coding by Accept-Encoding.
import { hash } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliCompress, brotliCompressSync, constants, gzip, gzipSync } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { memoizeHeader, parseRanges } from './content-negotiation.ts';

type Encoding = 'br' | 'gzip';

export interface Compressible {
  readonly body: Buffer;
  /** Whether the first request gets it compressed: for files that each client fetches once and caches. */
  readonly isCompressedEagerly?: boolean;
  representations?: Representations;
}

interface Representation {
  readonly bytes: Buffer;
  readonly encoding: Encoding | undefined;
}

interface SendOptions {
  readonly contentType: string;
  /** Entity tag of the answer without content coding; undefined: no validators. */
  readonly tag: string | undefined;
  /** Whether shared caches may store it: not the answer of one viewer. */
  readonly shareable: boolean;
  /** Whether a content coding may be used. */
  readonly compresses: boolean;
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
 * Sends an answer with its validators in the content coding that `Accept-Encoding` selects, or 304 when the client has it.
 * @see https://www.rfc-editor.org/rfc/rfc9110#section-12.5.3
 * @see https://www.rfc-editor.org/rfc/rfc9110#section-15.4.5
 */
export async function sendRepresentation(
  { headers }: FastifyRequest,
  reply: FastifyReply,
  answer: Compressible,
  { contentType, tag, shareable, compresses }: SendOptions,
): Promise<FastifyReply> {
  const { bytes, encoding } = compresses
    ? await selectRepresentation(answer, headers['accept-encoding']?.toString())
    : { bytes: answer.body, encoding: undefined };
  // Names in lower case, as Fastify keeps them: others are converted, and looked up, for each answer.
  if (tag) {
    reply.header('cache-control', shareable ? 'no-cache' : 'private, no-cache');
    reply.header('etag', codedTag(tag, encoding));
    if (matchesIfNoneMatch(headers['if-none-match'], tag)) return reply.code(304).send();
  }
  if (encoding) reply.header('content-encoding', encoding);
  return reply.header('content-type', contentType).send(bytes);
}

function selectRepresentation(answer: Compressible, acceptEncoding?: string) {
  answer.representations ??= new Representations(answer);
  return answer.representations.select(acceptEncoding);
}

/** Compresses in this turn, and the first time already: for an answer that took longer to build than to compress. */
export function selectAtOnce(answer: Compressible, acceptEncoding?: string): Representation {
  answer.representations ??= new Representations(answer);
  return answer.representations.selectAtOnce(acceptEncoding);
}

/** A strong tag differs for each content coding. */
export function codedTag(tag: string, encoding: Encoding | undefined): string {
  return encoding ? `${tag.slice(0, -1)}-${encoding}"` : tag;
}

const { BROTLI_PARAM_QUALITY, BROTLI_PARAM_SIZE_HINT } = constants;

const brotliOptions = ({ length }: Buffer) => ({
  // Higher qualities take several times as long, and save a few percent.
  params: { [BROTLI_PARAM_QUALITY]: 5, [BROTLI_PARAM_SIZE_HINT]: length },
});

const compress: Readonly<Record<Encoding, (bytes: Buffer) => Promise<Buffer>>> = {
  br: (bytes) => promisify(brotliCompress)(bytes, brotliOptions(bytes)),
  gzip: (bytes) => promisify(gzip)(bytes),
};

const compressAtOnce: Readonly<Record<Encoding, (bytes: Buffer) => Buffer>> = {
  br: (bytes) => brotliCompressSync(bytes, brotliOptions(bytes)),
  gzip: gzipSync,
};

/** Smaller answers fit into one packet anyway. */
const minBytes = 1_000;
/** Larger answers take longer to send than to compress. */
const largeBytes = 1_000_000;

/** The representations of one answer, which add at most twice its bytes. */
class Representations {
  readonly #identity: Representation;
  readonly #coded = new Map<Encoding, Representation | Promise<Representation>>();
  #isRepeated: boolean;

  constructor({ body: bytes, isCompressedEagerly = bytes.length >= largeBytes }: Compressible) {
    this.#identity = { bytes, encoding: undefined };
    this.#isRepeated = isCompressedEagerly;
  }

  /** Compresses only an answer that is requested a second time, or large. Returns a promise only while compressing. */
  select(header: string | undefined): Representation | Promise<Representation> {
    const { encoding, acceptsIdentity } = this.#readAccepted(header);
    if (!encoding) return this.#identity;
    if (!this.#isRepeated && acceptsIdentity) {
      this.#isRepeated = true;
      return this.#identity;
    }
    const existing = this.#coded.get(encoding);
    if (existing) return existing;
    const compressing = this.#compress(encoding);
    this.#coded.set(encoding, compressing);
    return compressing;
  }

  selectAtOnce(header: string | undefined): Representation {
    const { encoding } = this.#readAccepted(header);
    if (!encoding) return this.#identity;
    const existing = this.#coded.get(encoding);
    if (existing && 'bytes' in existing) return existing;
    return this.#store(encoding, compressAtOnce[encoding](this.#identity.bytes));
  }

  #readAccepted(header: string | undefined): Partial<ReturnType<typeof parseAccepted>> {
    const isCoded = header !== undefined && this.#identity.bytes.length >= minBytes;
    return isCoded ? readAccepted(header) : {};
  }

  /** In the thread pool, so that other requests do not wait. */
  async #compress(encoding: Encoding): Promise<Representation> {
    return this.#store(encoding, await compress[encoding](this.#identity.bytes));
  }

  #store(encoding: Encoding, bytes: Buffer): Representation {
    const coded = bytes.length < this.#identity.bytes.length ? { bytes, encoding } : this.#identity;
    this.#coded.set(encoding, coded);
    return coded;
  }
}

const readAccepted = memoizeHeader(parseAccepted);

/** By weight; of equals brotli: it is smaller, and its cost is paid once. */
function parseAccepted(header: string) {
  const weights = new Map(
    parseRanges(header).map(({ name, weight }) => [name.replace(/^x-gzip$/, 'gzip'), weight]),
  );
  const any = weights.get('*');
  const identity = weights.get('identity') ?? any ?? 0.001;
  let best: Encoding | undefined;
  let most = Math.max(identity, 0);
  for (const encoding of ['gzip', 'br'] as const) {
    const weight = weights.get(encoding) ?? any ?? 0;
    // Of equal weights the later coding wins, and any coding wins over identity.
    if (weight > 0 && weight >= most) [best, most] = [encoding, weight];
  }
  return { encoding: best, acceptsIdentity: identity > 0 };
}

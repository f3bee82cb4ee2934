// The selected representation (RFC 9110 §3.2): its content coding, its entity tag, and 304 without it.
import { hash } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { LRUCache } from 'lru-cache';
import { parseRanges } from './accept.ts';

type Encoding = 'br' | 'gzip';

export interface Compressible {
  readonly body: Buffer;
  /** Whether it is compressed for the first that asks: what each client fetches once and keeps. */
  readonly isCompressedAtOnce?: boolean;
  forms?: Forms;
}

interface Form {
  readonly bytes: Buffer;
  readonly encoding: Encoding | undefined;
}

export interface FormHeaders {
  readonly contentType: string;
  /** The entity tag of the answer without a coding; undefined: it has no validators. */
  readonly tag: string | undefined;
  /** Whether shared caches may keep it: not what is one viewer's own. */
  readonly shareable: boolean;
  /** When absent, it must be revalidated each time. */
  readonly cacheControl?: string;
}

/** A strong entity tag of exactly these bytes, or of bytes that these determine. */
export function entityTag(content: Buffer | string): string {
  return `"${hash('sha1', content, 'base64url')}"`;
}

/** Compares weakly (RFC 9110 §13.1.2), without the suffix of a content coding, from here or a proxy. */
export function isUnchanged(header: string | undefined, tag: string): boolean {
  if (header === undefined) return false;
  const wanted = withoutCoding(tag);
  const tags = header.split(',').map((candidate) => withoutCoding(candidate.trim()));
  return tags.includes(wanted) || header.trim() === '*';
}

function withoutCoding(tag: string): string {
  return tag.replace(/^W\//, '').replace(/[-;](?:br|gzip|zstd)"$/, '"');
}

export function sendForm(
  { headers }: FastifyRequest,
  reply: FastifyReply,
  { bytes, encoding }: Form,
  {
    contentType,
    tag,
    shareable,
    cacheControl = shareable ? 'no-cache' : 'private, no-cache',
  }: FormHeaders,
): FastifyReply {
  if (tag) {
    // Other bytes, so another tag.
    const formTag = encoding ? `${tag.slice(0, -1)}-${encoding}"` : tag;
    reply.header('Cache-Control', cacheControl).header('ETag', formTag);
    if (isUnchanged(headers['if-none-match'], tag)) return reply.code(304).send();
  }
  if (encoding) reply.header('Content-Encoding', encoding);
  return reply.header('Content-Type', contentType).send(bytes);
}

/** @param isAllowed whether the client may be sent anything but the answer as it is */
export function findForm(
  answer: Compressible,
  { headers }: Pick<FastifyRequest, 'headers'>,
  isAllowed: boolean,
): Form | Promise<Form> {
  if (!isAllowed) return { bytes: answer.body, encoding: undefined };
  answer.forms ??= new Forms(answer);
  return answer.forms.find(headers['accept-encoding']?.toString());
}

const { BROTLI_PARAM_QUALITY, BROTLI_PARAM_SIZE_HINT } = constants;

const compress: Readonly<Record<Encoding, (bytes: Buffer) => Promise<Buffer>>> = {
  br: (bytes) =>
    promisify(brotliCompress)(bytes, {
      // Higher qualities take several times as long, for a few percent.
      params: { [BROTLI_PARAM_QUALITY]: 5, [BROTLI_PARAM_SIZE_HINT]: bytes.length },
    }),
  gzip: (bytes) => promisify(gzip)(bytes),
};

/** Bytes of an answer that fits into one packet anyway. */
const minBytes = 1_000;
/** Bytes of an answer that takes longer to send than to compress. */
const largeBytes = 1_000_000;

/** The forms of one answer. Together they have at most twice its bytes more. */
class Forms {
  readonly #plain: Form;
  readonly #forms = new Map<Encoding, Form | Promise<Form>>();
  #isKnown: boolean;

  constructor({ body: bytes, isCompressedAtOnce = bytes.length >= largeBytes }: Compressible) {
    this.#plain = { bytes, encoding: undefined };
    this.#isKnown = isCompressedAtOnce;
  }

  /** At once if it is there. An answer that is asked for once only is not compressed, unless it is large. */
  find(header: string | undefined): Form | Promise<Form> {
    if (header === undefined || this.#plain.bytes.length < minBytes) return this.#plain;
    const { encoding, takesPlain } = readAccepted(header);
    if (!encoding) return this.#plain;
    if (!this.#isKnown && takesPlain) {
      this.#isKnown = true;
      return this.#plain;
    }
    const known = this.#forms.get(encoding);
    if (known) return known;
    const making = this.#make(encoding);
    this.#forms.set(encoding, making);
    return making;
  }

  /** In a thread of the pool, so that no other request waits for it. */
  async #make(encoding: Encoding): Promise<Form> {
    const bytes = await compress[encoding](this.#plain.bytes);
    const form = bytes.length < this.#plain.bytes.length ? { bytes, encoding } : this.#plain;
    this.#forms.set(encoding, form);
    return form;
  }
}

const parsed = new LRUCache<string, ReturnType<typeof parseAccepted>>({ max: 100 });

function readAccepted(header: string) {
  const known = parsed.get(header);
  if (known) return known;
  const accepted = parseAccepted(header);
  if (header.length <= 200) parsed.set(header, accepted);
  return accepted;
}

/** By the weights, and brotli rather than gzip: it is smaller, and is made once only. */
function parseAccepted(header: string) {
  const weights = new Map(
    parseRanges(header).map(({ name, weight }) => [name.replace(/^x-gzip$/, 'gzip'), weight]),
  );
  const any = weights.get('*');
  const plain = weights.get('identity') ?? any ?? 0.001;
  let best: Encoding | undefined;
  let most = Math.max(plain, 0);
  for (const encoding of ['gzip', 'br'] as const) {
    const weight = weights.get(encoding) ?? any ?? 0;
    // At equal weights the later one wins, and any wins over plain.
    if (weight > 0 && weight >= most) [best, most] = [encoding, weight];
  }
  return { encoding: best, takesPlain: plain > 0 };
}

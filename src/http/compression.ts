// Compressed forms of answers that are kept in memory: made once, when an answer is asked for again.
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { FastifyRequest } from 'fastify';
import { LRUCache } from 'lru-cache';

export type Encoding = 'br' | 'gzip';

/** What a client takes, by its `Accept-Encoding`. */
interface Accepted {
  /** Undefined: the answer as it is. */
  readonly encoding: Encoding | undefined;
  /** Whether the answer as it is would do, too. */
  readonly takesPlain: boolean;
}

const compress: Readonly<Record<Encoding, (bytes: Buffer) => Promise<Buffer>>> = {
  // Higher qualities take several times as long, for a few percent.
  br: (bytes) =>
    promisify(brotliCompress)(bytes, {
      params: {
        [constants.BROTLI_PARAM_QUALITY]: 5,
        [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
      },
    }),
  gzip: (bytes) => promisify(gzip)(bytes),
};

/** Bytes of an answer that fits into one packet anyway. */
const minBytes = 1_000;
/** Bytes of an answer that takes longer to send than to compress. */
const largeBytes = 1_000_000;

/** An answer, compressed or not. */
export interface Form {
  readonly bytes: Buffer;
  readonly encoding: Encoding | undefined;
}

/** An answer that is kept, and its forms as soon as one is asked for. */
export interface Compressible {
  readonly body: Buffer;
  /** Whether it is worth it for whoever asks first: what is fetched once by each client, and kept. */
  readonly isCompressedAtOnce?: boolean;
  forms?: Forms;
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

/** The forms of one answer. Together they have at most twice its bytes more. */
class Forms {
  readonly #plain: Form;
  readonly #forms = new Map<Encoding, Form | Promise<Form>>();
  #isKnown: boolean;

  constructor({ body: bytes, isCompressedAtOnce = bytes.length >= largeBytes }: Compressible) {
    this.#plain = { bytes, encoding: undefined };
    this.#isKnown = isCompressedAtOnce;
  }

  /**
   * The form for a client, at once if it is there. An answer that is asked for once only is not
   * compressed, unless it is large: that takes longer than sending it.
   * @param header the client's `Accept-Encoding`
   */
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

  /** In a thread of its own, so that nobody else waits for it. */
  async #make(encoding: Encoding): Promise<Form> {
    const bytes = await compress[encoding](this.#plain.bytes);
    const form = bytes.length < this.#plain.bytes.length ? { bytes, encoding } : this.#plain;
    this.#forms.set(encoding, form);
    return form;
  }
}

/** The entity tag of a form: other bytes, so another tag. */
export function tagOfForm(tag: string, encoding: Encoding | undefined): string {
  return encoding ? `${tag.slice(0, -1)}-${encoding}"` : tag;
}

/** Headers are few and come again. */
const known = new LRUCache<string, Accepted>({ max: 100 });

function readAccepted(header: string): Accepted {
  const remembered = known.get(header);
  if (remembered) return remembered;
  const accepted = parseAccepted(header);
  if (header.length <= 200) known.set(header, accepted);
  return accepted;
}

/** By the weights, and brotli rather than gzip: it is smaller, and is made once only. */
function parseAccepted(header: string): Accepted {
  const weights = new Map<string, number>();
  for (const part of header.toLowerCase().split(',')) {
    const [name = '', ...parameters] = part.split(';').map((piece) => piece.trim());
    const weight = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2) ?? '1';
    weights.set(name.replace(/^x-gzip$/, 'gzip'), Number(weight) || 0);
  }
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

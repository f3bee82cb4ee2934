// HTTP client of verify, replay, import and the key set. It sends a target unchanged and follows no redirect.
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';
import { type Duplex, pipeline } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import type { EnvHttpProxyAgent } from 'undici';
import { ConfigError } from '../config/config.ts';
import { messageOf } from '../errors.ts';

/** An answer without content coding; repeated headers are joined by commas. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: Buffer;
  /** Why the body cannot be decompressed: it is empty then. */
  readonly undecodable?: string;
}

export interface ClientRequest {
  readonly method?: 'GET' | 'HEAD' | 'OPTIONS' | 'TRACE';
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  /** Milliseconds for a whole answer; undefined: no limit but `signal`. */
  readonly timeout?: number;
  /** Limit of the decompressed body: a few megabytes on the wire may unpack to gigabytes. */
  readonly maxBytes: number;
}

export class TooLargeError extends Error {
  constructor(maxBytes: number) {
    super(`more than ${maxBytes / 1_048_576} MiB for one answer`);
  }
}

/** The whole body came, and is not of the content coding that its header names. */
export class UndecodableError extends Error {}

export class HttpClient {
  #agent: Promise<EnvHttpProxyAgent> | undefined;

  /** @throws Error without a whole answer in time, ConfigError for an invalid proxy setting */
  async ask(origin: string, request: ClientRequest): Promise<Answer> {
    const { method = 'GET', target, headers, signal, timeout, maxBytes } = request;
    this.#agent ??= openAgent();
    const agent = await this.#agent;
    signal.throwIfAborted();
    // Not AbortSignal.any with AbortSignal.timeout: on Node 20 the pair never fired on a silent server.
    const stop = new AbortController();
    const reason = `no complete answer in ${(timeout ?? 0) / 1000} s`;
    const late = () => stop.abort(new DOMException(reason, 'TimeoutError'));
    const timer = timeout === undefined ? undefined : setTimeout(late, timeout);
    const passOn = () => stop.abort(signal.reason);
    signal.addEventListener('abort', passOn);
    try {
      const path = target.startsWith('/') ? target : `/${target}`;
      // Undici would take the name for TLS from Host, which is right only for an IP address.
      const { hostname } = new URL(origin);
      const isName = !isIP(hostname) && !hostname.startsWith('[');
      const tls = headers['host'] && isName ? { servername: hostname } : {};
      const sent = { origin, path, method, headers, signal: stop.signal, ...tls };
      const answer = await agent.request(sent);
      const encoding = answer.headers['content-encoding'];
      const decoder = method === 'HEAD' ? undefined : createDecoder(encoding?.toString());
      // An error of either stream reaches the reader of the last one.
      const stream = decoder ? pipeline(answer.body, decoder, () => {}) : answer.body;
      const body = await readAtMost(stream, maxBytes).catch((error) => {
        if (!decoder || !isDecodingError(error)) throw error;
        throw new UndecodableError(`answered broken ${encoding} (${messageOf(error)})`);
      });
      if (!body) throw new TooLargeError(maxBytes);
      return toAnswer(answer.statusCode, answer.headers, body);
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', passOn);
    }
  }

  async close(): Promise<void> {
    const agent = await this.#agent?.catch(() => undefined);
    await agent?.destroy();
  }
}

/** Imported with the first request: most gateways send none. It reads HTTP_PROXY, HTTPS_PROXY and NO_PROXY. */
async function openAgent(): Promise<EnvHttpProxyAgent> {
  // The bundle has a default export only.
  const { EnvHttpProxyAgent } = (await import('undici')).default;
  try {
    return new EnvHttpProxyAgent({ headersTimeout: 0, bodyTimeout: 0, proxyTunnel: false });
  } catch (error) {
    throw new ConfigError(
      `HTTP_PROXY and HTTPS_PROXY must be the http or https URL of a proxy (${messageOf(error)}).`,
    );
  }
}

const decoders: Readonly<Record<string, () => Duplex>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
};

export function createDecoder(encoding: string | undefined): Duplex | undefined {
  return decoders[encoding?.trim().toLowerCase() ?? '']?.();
}

export function isDecodingError(error: unknown): boolean {
  return /^(?:Z_|ERR__|ERR_BROTLI)/.test(String((error as { code?: unknown }).code));
}

export function toAnswer(
  status: number,
  headers: IncomingHttpHeaders | OutgoingHttpHeaders,
  body: Buffer,
): Answer {
  const texts = Object.entries(headers).map(([name, value]) => [
    name,
    Array.isArray(value) ? value.join(', ') : value?.toString(),
  ]);
  return { status, headers: Object.fromEntries(texts), body };
}

/** Reads a whole body. Undefined for more than `max` bytes: the rest is not read. */
export async function readAtMost(
  pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  max: number,
): Promise<Buffer<ArrayBuffer> | undefined> {
  const read: Uint8Array[] = [];
  let length = 0;
  for await (const piece of pieces) {
    length += piece.length;
    // Leaving the loop closes the connection.
    if (length > max) return undefined;
    read.push(piece);
  }
  return Buffer.concat(read);
}

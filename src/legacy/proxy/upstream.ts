// The reverse proxy to the old service: streams requests and answers unchanged.
//
// With node:http: undici rewrites the spelling of `host` and sends no trailers, @fastify/reply-from normalizes paths.
import {
  Agent,
  type ClientRequest,
  type IncomingMessage,
  type RequestOptions,
  request as requestPlain,
} from 'node:http';
import { request as requestSecure, Agent as SecureAgent } from 'node:https';
import { isIP } from 'node:net';
import { pipeline } from 'node:stream';
import { urlToHttpOptions } from 'node:url';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { HttpError, overloaded } from '../../errors.ts';
import { hasBody, safeMethods } from '../../http/headers.ts';
import { disconnectSignalOf } from '../../http/server/connections.ts';
import { sendContinue } from '../../http/server/server.ts';
import { fromLegacyHeaders, toLegacyHeaders } from './forwarded-headers.ts';

export function legacyUnreachable(cause: unknown): HttpError {
  if (cause instanceof HttpError) return cause;
  const [code, sentence] =
    (cause as NodeJS.ErrnoException).code === 'HPE_HEADER_OVERFLOW'
      ? ['LEGACY_HEADERS_TOO_LARGE', tooLargeHeaders]
      : ['LEGACY_UNREACHABLE', 'The old service cannot be reached.'];
  return new HttpError(502, code, sentence, {}, { cause });
}

export interface UpstreamRequest {
  readonly method: string;
  readonly target: string;
  /** Raw headers: names and values in turn. */
  readonly headers: readonly string[];
  readonly body?: IncomingMessage | undefined;
  /** Aborted when the client leaves. */
  readonly signal: AbortSignal;
  /** Backpressure: the client reads slowly, so that silence is no timeout of the old service. */
  readonly isHeldUp?: () => boolean;
}

/** Observes a request to the old service, and may replace its headers. */
export type ObserveUpstream = (
  base: URL,
  request: UpstreamRequest,
  open: (headers: readonly string[]) => Promise<IncomingMessage>,
) => Promise<IncomingMessage>;

/** Concurrent connections: further requests wait for one. */
const maxConnections = 256;
/** Concurrency limit, with the requests that wait for a connection. */
const maxUnderWay = 2_048;
/** Bytes of the headers of an answer: four times the default of Node.js. */
const maxHeaderSize = 65_536;
const tooLargeHeaders = `The answer of the old service has more than ${maxHeaderSize / 1024} KiB of headers.`;

/** The old service over HTTP/1.1, with keep-alive for requests that may be retried. */
export class Upstream {
  /** LEGACY_URL. */
  readonly base: URL;
  readonly #request: typeof requestPlain;
  /** Where and how to connect; the path of the base stands before each target. */
  readonly #address: RequestOptions;
  readonly #prefix: string;
  // A server may close an idle connection at any moment: what cannot be retried gets a new one.
  readonly #agents: Readonly<Record<'kept' | 'fresh', Agent>>;
  #underWay = 0;

  /**
   * @param timeout milliseconds without any byte until 504
   * @param legacyHost names the certificate where `base` has an IP address
   */
  constructor(
    base: string,
    private readonly timeout: number,
    legacyHost = '',
    private readonly observe: ObserveUpstream = (_base, { headers }, open) => open(headers),
  ) {
    const url = new URL(base);
    const isSecure = url.protocol === 'https:';
    const makeAgent = (keepAlive: boolean) =>
      new (isSecure ? SecureAgent : Agent)({ keepAlive, maxSockets: maxConnections });
    const { hostname, ...address } = urlToHttpOptions(url);
    this.base = url;
    this.#request = isSecure ? requestSecure : requestPlain;
    // Node.js would take the name for TLS from the Host header, which is the public name of this gateway.
    const named = isIP(hostname ?? '') ? legacyHost.replace(/:\d+$/, '') : hostname;
    const servername = named && !isIP(named) ? named : '';
    this.#address = { ...address, hostname, servername, maxHeaderSize } as RequestOptions;
    this.#prefix = url.pathname.replace(/\/$/, '');
    this.#agents = { kept: makeAgent(true), fresh: makeAgent(false) };
  }

  /** Resolves with the head of the answer. @throws HttpError 502, 503 at the concurrency limit, 504 */
  open(request: UpstreamRequest): Promise<IncomingMessage> {
    return this.observe(this.base, request, async (headers) => {
      if (this.#underWay >= maxUnderWay) throw overloaded();
      this.#underWay += 1;
      const end = () => {
        this.#underWay -= 1;
      };
      try {
        return (await this.#sendWithRetry({ ...request, headers })).once('close', end);
      } catch (error) {
        end();
        throw legacyUnreachable(error);
      }
    });
  }

  close(): void {
    this.#agents.kept.destroy();
    this.#agents.fresh.destroy();
  }

  /** Retries once on a new connection if the kept one turns out to be closed. */
  async #sendWithRetry(request: UpstreamRequest): Promise<IncomingMessage> {
    if (!safeMethods.has(request.method) || request.body) {
      return this.#send(request, this.#agents.fresh);
    }
    return this.#send(request, this.#agents.kept).catch((error) => {
      if (!error.isStale || request.signal.aborted) throw error;
      return this.#send(request, this.#agents.fresh);
    });
  }

  #send(request: UpstreamRequest, agent: Agent): Promise<IncomingMessage> {
    return new Promise((settle, reject) => {
      const { method, target, body, signal } = request;
      const path = this.#prefix + target;
      const headers = withLength(request);
      const outgoing = this.#request({ ...this.#address, method, agent, signal, path, headers });
      let answer: IncomingMessage | undefined;
      const timer = setTimeout(() => {
        // Of the body that it was sent the old service has all, and the rest comes from the client. No other request waits.
        const isUploading =
          body?.complete === false &&
          !outgoing.writableNeedDrain &&
          Object.keys(agent.requests).length === 0;
        if (answer ? request.isHeldUp?.() : isUploading) timer.refresh();
        else
          (answer ?? outgoing).destroy(
            new HttpError(504, 'LEGACY_TIMEOUT', 'The old service did not answer in time.'),
          );
      }, this.timeout);
      const onProgress = () => timer.refresh();
      outgoing.on('error', (error) => {
        clearTimeout(timer);
        const isStale = outgoing.reusedSocket && !(error instanceof HttpError);
        reject(Object.assign(error, { isStale }));
      });
      // A status 101 that nobody asked for: without a listener, Node.js closes the connection, and that is all.
      outgoing.on('upgrade', (_answer, socket) => {
        socket.destroy();
        outgoing.emit('error', new Error('it switches protocols'));
      });
      outgoing.on('response', (incoming) => {
        answer = incoming.on('data', onProgress).once('close', () => clearTimeout(timer));
        onProgress();
        // The listener made it flow, and nothing reads it yet.
        settle(incoming.pause());
      });
      if (body) sendBody(body.on('data', onProgress), outgoing);
      else outgoing.end();
    });
  }
}

function sendBody(body: IncomingMessage, outgoing: ClientRequest): void {
  // Registered before the listener of pipe, which ends the request.
  body.once('end', () => {
    if (body.rawTrailers.length > 0) outgoing.addTrailers(pairsOf(body.rawTrailers));
  });
  // An answer may come before the whole body is read: the rest is discarded, and the client gets the answer.
  outgoing.once('close', () => {
    body.unpipe(outgoing);
    body.resume();
  });
  body.pipe(outgoing);
}

const bodilessMethods = new Set([...safeMethods, 'DELETE']);

/** Without a length Node.js would send an empty chunked body. */
function withLength({ method, headers, body }: UpstreamRequest): readonly string[] {
  const hasLength = () => pairsOf(headers).some(([name]) => /^content-length$/i.test(name));
  if (body || bodilessMethods.has(method) || hasLength()) return headers;
  return [...headers, 'Content-Length', '0'];
}

/** Raw headers as pairs. */
export function pairsOf(raw: readonly string[]): [string, string][] {
  return Array.from({ length: raw.length / 2 }, (_, index) => [
    raw[2 * index] ?? '',
    raw[2 * index + 1] ?? '',
  ]);
}

export interface Forwarding {
  readonly upstream: Upstream;
  readonly gateway: string;
  /** Replaces `Host`. */
  readonly legacyHost: string | undefined;
  readonly isClosing: () => boolean;
}

/**
 * Forwards a request. Resolves when the head of the answer is sent. @throws HttpError 502, 503 or 504 before
 * @param prepare called before the answer is sent; returns the bytes of it that it has read
 */
export async function forward(
  { upstream, gateway, legacyHost, isClosing }: Forwarding,
  request: FastifyRequest,
  reply: FastifyReply,
  onAnswer?: (answer: IncomingMessage) => void,
  prepare?: (answer: IncomingMessage) => Promise<readonly Buffer[]>,
): Promise<void> {
  const { raw, headers } = request;
  const signal = disconnectSignalOf(raw.socket);
  const response = reply.raw;
  // HTTP/1.1 requires Host, HTTP/1.0 does not. @see RFC 9112 §3.2
  const host = raw.httpVersion === '1.0' && !headers.host ? upstream.base.host : undefined;
  sendContinue(response);
  const answer = await upstream.open({
    method: raw.method ?? '',
    target: request.url,
    headers: toLegacyHeaders(request, gateway, legacyHost ?? host),
    body: hasBody(headers) ? raw : undefined,
    signal,
    isHeldUp: () => response.writableNeedDrain,
  });
  const begun = (await prepare?.(answer)) ?? [];
  try {
    response.sendDate = false;
    if (isClosing()) response.shouldKeepAlive = false;
    // Without its framing headers: Node.js writes those that fit the connection of the client.
    response.writeHead(
      answer.statusCode ?? 0,
      answer.statusMessage ?? '',
      fromLegacyHeaders(answer),
    );
  } catch (error) {
    answer.destroy();
    throw legacyUnreachable(error);
  }
  reply.hijack();
  onAnswer?.(answer);
  const addTrailers = () => {
    if (answer.rawTrailers.length > 0) response.addTrailers(pairsOf(answer.rawTrailers));
  };
  for (const chunk of begun) response.write(chunk);
  if (answer.complete && answer.readableEnded) {
    addTrailers();
    response.end();
    return;
  }
  answer.once('end', addTrailers);
  // An aborted answer of the old service aborts this one.
  pipeline(answer, response, (error) => {
    if (!error || signal.aborted) return;
    const brokeOff = 'The old service broke off its answer.';
    const failure = new HttpError(502, 'LEGACY_BROKE_OFF', brokeOff, {}, { cause: error });
    request.server.logHttpError(request.log, failure);
  });
}

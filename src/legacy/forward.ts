// Passes a request on to the old service, and its answer back, both as they are while they come.
import type { IncomingMessage } from 'node:http';
import { pipeline } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { leavingSignal } from '../http/client-signal.ts';
import { legacyBrokeOff, legacyUnreachable } from './errors.ts';
import { fromLegacyHeaders, toLegacyHeaders } from './forwarded-headers.ts';
import { pairsOf, type Upstream } from './upstream.ts';

export interface Forwarding {
  readonly upstream: Upstream;
  /** The name of this process. */
  readonly gateway: string;
  /** Whether this process is about to end. */
  readonly isClosing: () => boolean;
}

/**
 * Answers a request with what the old service answers. It resolves when the head has been sent; the
 * body follows.
 * @param onAnswer may listen to the body, before any of it is sent
 * @throws HttpError 502, 503 or 504 while nothing has been sent
 */
export async function forward(
  { upstream, gateway, isClosing }: Forwarding,
  request: FastifyRequest,
  reply: FastifyReply,
  onAnswer?: (answer: IncomingMessage) => void,
): Promise<void> {
  const { raw, headers } = request;
  const signal = leavingSignal(raw.socket);
  const response = reply.raw;
  const answer = await upstream.open({
    method: raw.method ?? '',
    target: request.url,
    headers: [
      // HTTP/1.0 needs none, but it goes on as HTTP/1.1, which does.
      ...(raw.httpVersion === '1.0' && headers.host === undefined ? ['Host', upstream.host] : []),
      ...toLegacyHeaders(request, gateway),
    ],
    body: hasBody(headers) ? raw : undefined,
    signal,
    isHeldUp: () => response.writableNeedDrain,
  });
  try {
    response.sendDate = false;
    if (isClosing()) response.shouldKeepAlive = false;
    // Its own framing is left out, and Node writes one that fits the connection of the client.
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
  answer.once('end', () => {
    if (answer.rawTrailers.length > 0) response.addTrailers(pairsOf(answer.rawTrailers));
  });
  // An answer that breaks off there breaks off here.
  pipeline(answer, response, (error) => {
    if (!error || signal.aborted) return;
    request.server.logHttpError(request.log, legacyBrokeOff(error));
  });
}

/**
 * Whether a target leads below `/api/`, however the old service, or a proxy before it, decodes it and
 * resolves `..`: twice encoded, with backslashes, with parameters behind a semicolon.
 */
export function isBelowApi(target: string): boolean {
  let path = target.split('?', 1)[0] ?? '';
  for (let before = ''; before !== path; ) {
    before = path;
    path = path.replace(/%(2[5ef]|3b|5c)/gi, (_all, code) =>
      String.fromCharCode(Number.parseInt(code, 16)),
    );
  }
  const segments = path.split(/[\\/]+/).filter((segment) => segment !== '' && segment !== '.');
  let depth = -1;
  for (const segment of segments) {
    depth += /^\.\.(?:;|$)/.test(segment) ? -1 : 1;
    if (depth < 0) return false;
  }
  return true;
}

export function hasBody(headers: IncomingMessage['headers']): boolean {
  const { 'content-length': length, 'transfer-encoding': encoding } = headers;
  return encoding !== undefined || (length !== undefined && Number(length) !== 0);
}

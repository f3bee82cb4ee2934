// The way to the old service: connections, and a request passed on with its answer, both as they are while they come.
//
// With node:http: undici writes `host` in its own spelling and sends no trailers, @fastify/reply-from parses paths anew.
import { Agent, type IncomingMessage, request as requestPlain } from 'node:http';
import { request as requestSecure, Agent as SecureAgent } from 'node:https';
import { isIP } from 'node:net';
import { pipeline } from 'node:stream';
import { urlToHttpOptions } from 'node:url';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { HttpError, overloaded } from '../../errors.ts';
import { disconnectSignalOf } from '../../http/server/connections.ts';
import { fromLegacyHeaders, toLegacyHeaders } from './forwarded-headers.ts';

export const legacyUnreachable = (cause: unknown) =>
  cause instanceof HttpError
    ? cause
    : new HttpError(502, 'LEGACY_UNREACHABLE', 'The old service cannot be reached.', {}, { cause });

export interface Asked {
  readonly method: string;
  readonly target: string;
  /** Names and values in turn, as they go over the wire. */
  readonly headers: readonly string[];
  /** Undefined: there is none. */
  readonly body?: IncomingMessage | undefined;
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
  /** Whether it is the reader of the answer that is slow: then the old service is not silent. */
  readonly isHeldUp?: () => boolean;
}

export interface Upstream {
  readonly host: string;
  /** Gives the answer once the head is there. @throws HttpError 502, 503 when too many wait for it already, 504 */
  open(asked: Asked): Promise<IncomingMessage>;
  close(): void;
}

/** Most connections to it: more requests wait for one. */
const maxConnections = 256;
/** Most requests that are under way, those that wait for a connection among them. */
const maxUnderWay = 2_048;

/** May be sent again when a kept connection turns out to be closed. */
const repeatableMethods = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE']);

/** @param timeout seconds that it may be silent */
export function createUpstream(base: string, timeout: number): Upstream {
  const url = new URL(base);
  const isSecure = url.protocol === 'https:';
  const request = isSecure ? requestSecure : requestPlain;
  const makeAgent = (keepAlive: boolean) =>
    new (isSecure ? SecureAgent : Agent)({ keepAlive, maxSockets: maxConnections });
  // What cannot be sent twice gets a connection of its own: a kept one may be closed by the other
  // side at the very moment.
  const agents = { kept: makeAgent(true), fresh: makeAgent(false) };
  const { hostname = '', ...address } = urlToHttpOptions(url);
  const prefix = url.pathname.replace(/\/$/, '');
  // Node would take the Host header, which is the public name of this gateway.
  const servername = isIP(hostname ?? '') ? '' : (hostname ?? '');
  let underWay = 0;

  const openOnce = (asked: Asked, agent: Agent): Promise<IncomingMessage> =>
    new Promise((settle, reject) => {
      const { method, target, body, signal } = asked;
      const outgoing = request({
        ...{ ...address, hostname, servername, method, agent, signal },
        path: prefix + target,
        headers: withLength(asked),
      });
      let answer: IncomingMessage | undefined;
      const silence = setTimeout(() => {
        if (answer && asked.isHeldUp?.()) silence.refresh();
        else
          (answer ?? outgoing).destroy(
            new HttpError(504, 'LEGACY_TIMEOUT', 'The old service did not answer in time.'),
          );
      }, timeout * 1000);
      const heard = () => silence.refresh();
      outgoing.on('error', (error) => {
        clearTimeout(silence);
        const isStale = outgoing.reusedSocket && !(error instanceof HttpError);
        reject(Object.assign(error, { isStale }));
      });
      outgoing.on('response', (incoming) => {
        answer = incoming.on('data', heard).once('close', () => clearTimeout(silence));
        heard();
        // Listening to it has it flow, and it is not read yet.
        settle(incoming.pause());
      });
      if (!body) return outgoing.end();
      body.on('data', heard);
      // Before that of pipe, which ends the request.
      body.once('end', () => {
        if (body.rawTrailers.length > 0) outgoing.addTrailers(pairsOf(body.rawTrailers));
      });
      // It may answer without reading all: the client sends the rest nowhere, and gets the answer.
      outgoing.once('close', () => {
        body.unpipe(outgoing);
        body.resume();
      });
      return body.pipe(outgoing);
    });

  return {
    host: url.host,
    async open(asked) {
      if (underWay >= maxUnderWay) throw overloaded();
      underWay += 1;
      try {
        const isRepeatable = repeatableMethods.has(asked.method) && !asked.body;
        const incoming = await openOnce(asked, isRepeatable ? agents.kept : agents.fresh).catch(
          (error) => {
            if (!isRepeatable || !error.isStale || asked.signal.aborted) throw error;
            return openOnce(asked, agents.fresh);
          },
        );
        incoming.once('close', () => {
          underWay -= 1;
        });
        return incoming;
      } catch (error) {
        underWay -= 1;
        throw legacyUnreachable(error);
      }
    },
    close() {
      agents.kept.destroy();
      agents.fresh.destroy();
    },
  };
}

const bodilessMethods = new Set([...repeatableMethods, 'DELETE']);

/** Node would send a chunked body where there is none. */
function withLength({ method, headers, body }: Asked): readonly string[] {
  const hasLength = () => pairsOf(headers).some(([name]) => /^content-length$/i.test(name));
  if (body || bodilessMethods.has(method) || hasLength()) return headers;
  return [...headers, 'Content-Length', '0'];
}

/** Names and values in turn, as pairs. */
export function pairsOf(raw: readonly string[]): [string, string][] {
  return Array.from({ length: raw.length / 2 }, (_, index) => [
    raw[2 * index] ?? '',
    raw[2 * index + 1] ?? '',
  ]);
}

export interface Forwarding {
  readonly upstream: Upstream;
  readonly gateway: string;
  readonly isClosing: () => boolean;
}

/** Resolves when the head has been sent. @throws HttpError 502, 503 or 504 while nothing has been sent */
export async function forward(
  { upstream, gateway, isClosing }: Forwarding,
  request: FastifyRequest,
  reply: FastifyReply,
  onAnswer?: (answer: IncomingMessage) => void,
): Promise<void> {
  const { raw, headers } = request;
  const signal = disconnectSignalOf(raw.socket);
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
    const brokeOff = 'The old service broke off its answer.';
    const told = new HttpError(502, 'LEGACY_BROKE_OFF', brokeOff, {}, { cause: error });
    request.server.logHttpError(request.log, told);
  });
}

export function hasBody(headers: IncomingMessage['headers']): boolean {
  const { 'content-length': length, 'transfer-encoding': encoding } = headers;
  return encoding !== undefined || (length !== undefined && Number(length) !== 0);
}

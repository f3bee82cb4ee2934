// Header fields and request targets: what Node does not check of requests, and the headers of every answer.
import { randomBytes } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { FastifyReply, onRequestHookHandler } from 'fastify';

/** Read-only, so a retry changes nothing. @see RFC 9110 §9.2.1 */
export const safeMethods = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE']);

/** Appends a name to `Vary`. @see RFC 9110 §12.5.5 */
export function appendVary(reply: FastifyReply, name: string): void {
  const vary = reply.getHeader('Vary');
  reply.header('Vary', vary === undefined ? name : `${vary}, ${name}`);
}

/**
 * Whether a singleton field is repeated: Node returns the first line, while a proxy may have checked another one.
 * @see https://www.rfc-editor.org/rfc/rfc9110#section-5.3
 */
export function isRepeated(
  { raw: { rawHeaders } }: { readonly raw: Pick<IncomingMessage, 'rawHeaders'> },
  name: string,
): boolean {
  const isName = (text: string, index: number) =>
    index % 2 === 0 && text.length === name.length && text.toLowerCase() === name;
  return rawHeaders.findIndex(isName) !== rawHeaders.findLastIndex(isName);
}

export function hasBody(headers: IncomingHttpHeaders): boolean {
  const { 'content-length': length, 'transfer-encoding': encoding } = headers;
  return encoding !== undefined || (length !== undefined && Number(length) !== 0);
}

export function unsupportedEncodingOf(headers: IncomingHttpHeaders): string | undefined {
  const encoding = headers['content-encoding']?.trim();
  return encoding && encoding.toLowerCase() !== 'identity' ? encoding : undefined;
}

/** Schemes of targets in absolute form. */
export const targetSchemes = new WeakMap<IncomingMessage, string>();

/**
 * Path and query. The authority of an absolute target replaces `Host`, here and for the old service.
 * @see https://www.rfc-editor.org/rfc/rfc9112#section-3.2.2
 */
export function toOriginForm(request: IncomingMessage): string {
  const { url = '/', rawHeaders, headers } = request;
  if (url.startsWith('/')) return url;
  const [prefix, scheme, authority] = /^(https?):\/\/([^/?#]*)/i.exec(url) ?? [];
  if (!prefix || !scheme || authority === undefined) return url;
  targetSchemes.set(request, scheme);
  headers.host = authority;
  const name = rawHeaders.findIndex((text, index) => index % 2 === 0 && /^host$/i.test(text));
  if (name === -1) rawHeaders.push('Host', authority);
  else rawHeaders[name + 1] = authority;
  const rest = url.slice(prefix.length);
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/** Query of the request target, undecoded, without an illegal fragment. */
export function rawQuery({ url = '' }: { readonly url?: string | undefined }): string {
  return /^[^?]*\?([^#]*)/.exec(url)?.[1] ?? '';
}

/** For `querystringParser`: REST and GraphQL parse the query string themselves, each by its own rules. */
export const ignoreQuery = () => ({});

export const requestIdHeader = 'x-request-id';

/** Ids of clients go into the log and into answers: no other characters are safe there. */
const safeId = /^[\w.:+/=-]{1,64}$/;

/** The request id of the client, or a new one, unique over all processes. */
export type GenerateRequestId = (request: Pick<IncomingMessage, 'headers'>) => string;

export function createRequestIds(): GenerateRequestId {
  const prefix = randomBytes(6).toString('hex');
  let count = 0;
  return ({ headers }) => {
    const given = headers[requestIdHeader];
    if (typeof given === 'string' && safeId.test(given)) return given;
    count += 1;
    return `${prefix}-${count.toString(36)}`;
  };
}

export const setRequestId: onRequestHookHandler = (request, reply, done) => {
  reply.header(requestIdHeader, request.id);
  done();
};

/** Security headers of every answer: no type sniffing, no embedding, no referrer to other origins. */
export const securityHeaders = {
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
};

export const setSecurityHeaders: onRequestHookHandler = (_request, reply, done) => {
  reply.headers(securityHeaders);
  done();
};

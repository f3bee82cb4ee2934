// Header fields: of requests those that Node does not tell by itself, of answers those that every one has.
import { randomBytes } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';

/** Of headers that may have one line only, Node gives the first, which a proxy need not have looked at. */
export function isRepeated({ raw: { rawHeaders } }: FastifyRequest, name: string): boolean {
  let lines = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const header = rawHeaders[index];
    if (header?.length === name.length && header.toLowerCase() === name) lines += 1;
  }
  return lines > 1;
}

export function unsupportedEncodingOf(headers: IncomingHttpHeaders): string | undefined {
  const encoding = headers['content-encoding']?.trim();
  return encoding && encoding.toLowerCase() !== 'identity' ? encoding : undefined;
}

/** Path and query. The authority of the absolute form replaces the `Host`, here and for the old service (RFC 9112). */
export function toOriginForm(request: IncomingMessage): string {
  const { url = '/', rawHeaders, headers } = request;
  if (url.startsWith('/')) return url;
  const [prefix, authority] = /^https?:\/\/([^/?#]*)/i.exec(url) ?? [];
  if (prefix === undefined || authority === undefined) return url;
  headers.host = authority;
  const name = rawHeaders.findIndex((text, index) => index % 2 === 0 && /^host$/i.test(text));
  if (name === -1) rawHeaders.push('Host', authority);
  else rawHeaders[name + 1] = authority;
  const rest = url.slice(prefix.length);
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/** For `querystringParser`: REST and GraphQL read the query string themselves, each by its own rules. */
export const ignoreQuery = () => ({});

export const requestIdHeader = 'x-request-id';

/** What goes into logs and back to clients as it came: nothing that could be more than a name. */
const wellFormed = /^[\w.:+/=-]{1,64}$/;

/** Names each request: as its sender did, or else anew, unlike any other of any process. */
export type NameRequest = (request: Pick<IncomingMessage, 'headers'>) => string;

export function createRequestNamer(): NameRequest {
  const prefix = randomBytes(6).toString('hex');
  let count = 0;
  return ({ headers }) => {
    const given = headers[requestIdHeader];
    if (typeof given === 'string' && wellFormed.test(given)) return given;
    count += 1;
    return `${prefix}-${count.toString(36)}`;
  };
}

export function answerRequestIds(app: FastifyInstance): void {
  app.addHook('onRequest', (request, reply, done) => {
    reply.header(requestIdHeader, request.id);
    done();
  });
}

/** What browsers are told about every answer: to guess nothing, embed nothing and pass nothing on. */
export const securityHeaders = {
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
};

export function setSecurityHeaders(
  _request: FastifyRequest,
  reply: FastifyReply,
  done: () => void,
): void {
  reply.headers(securityHeaders);
  done();
}

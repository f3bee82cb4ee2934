// Requests and the headers of every answer: what Node does not check, addresses of client and service, deprecation.
import { randomBytes } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { BlockList, isIP, isIPv6 } from 'node:net';
import type { FastifyInstance, FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify';
import ipaddr from 'ipaddr.js';
import type { Config } from '../config/config.ts';
import { invalidHost } from '../errors.ts';

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

/** Bytes of the address and the headers, which a connection keeps as long as its request. */
export function bytesOfHead({ url = '', rawHeaders }: IncomingMessage): number {
  return url.length + JSON.stringify(rawHeaders).length;
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

declare module 'fastify' {
  interface FastifyRequest {
    /** Where its client is, once that was asked. */
    sender: Client | undefined;
  }
}

type IsTrusted = (address: string) => boolean;

/** @param ranges addresses and CIDR ranges */
export function createTrust(ranges: readonly string[]): IsTrusted {
  if (ranges.length === 0) return () => false;
  const trusted = new BlockList();
  for (const range of ranges) {
    const [address = '', bits] = range.split('/');
    const [family, most] = isIPv6(address) ? (['ipv6', 128] as const) : (['ipv4', 32] as const);
    trusted.addSubnet(address, Number(bits ?? most), family);
  }
  return (address) =>
    isIP(address) !== 0 && trusted.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
}

type Client = Pick<FastifyRequest, 'host' | 'ip' | 'protocol'>;

/** Proxies of one request at most: a client can send thousands of addresses. */
const maxProxies = 32;

/**
 * Defines `ip`, `host` and `protocol` of requests, once for each. Not Fastify's `trustProxy`: it takes the last entry
 * of X-Forwarded-Host and -Proto, whoever wrote it, and compares addresses with their ports.
 */
export function decorateClient(app: FastifyInstance, isTrusted: IsTrusted): void {
  app.decorateRequest('sender', undefined);
  for (const name of ['ip', 'host', 'protocol'] as const) {
    app.decorateRequest(name, {
      getter() {
        this.sender ??= findClient(this.raw, isTrusted);
        return this.sender[name];
      },
    });
  }
}

/** Each proxy appends what it has seen to three lists: the entries of the last trusted one count. */
function findClient(request: IncomingMessage, isTrusted: IsTrusted): Client {
  const { headers, httpVersion, socket } = request;
  const listOf = (name: string) => headers[name]?.toString().split(',') ?? [];
  let ip = socket.remoteAddress ?? '';
  let proxies = 0;
  let senders: string[] | undefined;
  while (proxies < maxProxies && isTrusted(ip)) {
    proxies += 1;
    senders ??= listOf('x-forwarded-for').filter((item) => item.trim() !== '');
    const sender = senders.at(-proxies);
    if (sender === undefined) break;
    ip = bareAddress(sender);
  }
  // A shorter list was begun again by a proxy on the way.
  const seen = (name: string) => {
    const list = proxies > 0 ? listOf(name) : [];
    return list[Math.max(0, list.length - proxies)]?.trim();
  };
  // Traefik writes `wss` for a handshake.
  const isSecure = /^(?:https|wss)$/i.test(
    seen('x-forwarded-proto') ?? targetSchemes.get(request) ?? '',
  );
  // HTTP/1.1 requires Host, HTTP/1.0 does not. @see RFC 9112 §3.2
  const own = httpVersion === '1.0' ? headers.host || addressOf(socket) : (headers.host ?? '');
  return { ip, host: seen('x-forwarded-host') || own, protocol: isSecure ? 'https' : 'http' };
}

function addressOf({ localAddress = '', localPort }: IncomingMessage['socket']): string {
  const address = localAddress.replace(/^::ffff:(?=[\d.]+$)|%.*/g, '');
  return `${isIPv6(address) ? `[${address}]` : address}:${localPort}`;
}

/** Warns once of a proxy that TRUST_PROXY lacks: all its clients count as one. */
export function warnOfUnknownProxy(app: FastifyInstance, isTrusted: IsTrusted): void {
  let isWarned = false;
  app.addHook('onRequest', ({ log, raw: { headers, socket } }, _reply, done) => {
    const peer = socket.remoteAddress ?? '';
    if (!isWarned && headers['x-forwarded-for'] !== undefined && !isTrusted(peer)) {
      isWarned = true;
      const sentence =
        'requests with X-Forwarded-For come from a peer that TRUST_PROXY does not name: if it is a proxy, all its clients count as one';
      log.warn({ peer }, sentence);
    }
    done();
  });
}

const hostPattern = /^([a-z0-9.-]+|\[[a-f0-9:.]+\])(:\d+)?$/;

/** @throws HttpError 400 for a repeated Host, and for none in HTTP/1.1 */
export function requireHost(request: FastifyRequest): void {
  if (request.host === '' || isRepeated(request, 'host')) throw invalidHost();
}

/**
 * Base of links: `publicUrl`, or the scheme and host of the request.
 * @throws HttpError 400 for an invalid, repeated or missing Host
 */
export function readBaseUrl(request: FastifyRequest, publicUrl: string | undefined): string {
  requireHost(request);
  if (publicUrl !== undefined) return publicUrl;
  const { host, protocol } = request;
  // Host names are case-insensitive; links keep the spelling of the request.
  if (!hostPattern.test(host.toLowerCase())) throw invalidHost();
  return `${protocol}://${host}`;
}

/** Puts the path of PUBLIC_URL before the path of each `Location`, so that redirects need not know it. */
export function prefixLocations(app: FastifyInstance, publicUrl: string | undefined): void {
  const prefix = publicUrl === undefined ? '' : new URL(publicUrl).pathname.replace(/\/$/, '');
  if (prefix === '') return;
  app.addHook('onSend', (_request, reply, payload, done) => {
    const location = reply.getHeader('location')?.toString();
    if (location?.startsWith('/')) reply.header('location', `${prefix}${location}`);
    done(null, payload);
  });
}

/** An address without the port, brackets and quotes with which some proxies write it; other text as it is. */
function bareAddress(text: string): string {
  const address = text.trim().replace(/^"([^"]*)"$/, '$1');
  const [, ipv6, ipv4] = /^(?:\[([^\]]*)\]|([\d.]+))(?::\d*)?$/.exec(address) ?? [];
  return ipv6 ?? ipv4 ?? address;
}

/**
 * Groups an IPv4 address, IPv4-mapped IPv6 included, by itself, and an IPv6 address by its /64 prefix, which one
 * subscriber has. All other text, as a proxy may send it, is one group.
 * @see https://www.rfc-editor.org/rfc/rfc6177
 */
export function groupAddress(address: string): string {
  // Checked first: ipaddr.js accepts 1.2.3 and 0x7f.1 as IPv4. URL normalizes: ipaddr.js takes ::1.2.3.4 for mapped.
  if (isIP(address) === 4) return address;
  if (isIP(address) === 0) return 'unknown';
  const { hostname } = new URL(`http://[${address.replace(/%.*/, '')}]`);
  const parsed = ipaddr.process(hostname.slice(1, -1));
  if (!(parsed instanceof ipaddr.IPv6)) return parsed.toString();
  const network = parsed.parts.slice(0, 4).map((part) => part.toString(16));
  return `${network.join(':')}::/64`;
}

/**
 * Adds the headers to all answers, errors included. Call it before the routes are added.
 * @see https://www.rfc-editor.org/rfc/rfc9745 Deprecation
 * @see https://www.rfc-editor.org/rfc/rfc8594 Sunset, and the relation of Link
 */
export function announceDeprecation(app: FastifyInstance, config: DeprecationConfig): void {
  const headers = deprecationHeaders(config);
  if (!headers) return;

  app.addHook('onRequest', (_request, reply, done) => {
    reply.headers(headers);
    done();
  });
}

export function deprecationHeaders({
  restDeprecated,
  restSunset,
  publicUrl,
}: DeprecationConfig): Readonly<Record<string, string>> | undefined {
  if (!restDeprecated && !restSunset) return undefined;
  // A relative reference works behind any proxy.
  const successor = publicUrl === undefined ? '/graphql' : new URL(`${publicUrl}/graphql`).href;
  return {
    ...(restDeprecated ? { Deprecation: `@${Math.floor(restDeprecated.getTime() / 1000)}` } : {}),
    ...(restSunset ? { Sunset: restSunset.toUTCString() } : {}),
    Link: `<${successor}>; rel="successor-version"`,
  };
}

export type DeprecationConfig = Pick<Config, 'publicUrl' | 'restDeprecated' | 'restSunset'>;

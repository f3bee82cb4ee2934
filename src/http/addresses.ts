// Addresses of a request: those of its client, of the connection or as the proxies that TRUST_PROXY names have seen them, and
// the base URL of this service, for links.
import type { IncomingMessage } from 'node:http';
import { BlockList, isIP, isIPv6 } from 'node:net';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import ipaddr from 'ipaddr.js';
import { invalidHost } from '../errors.ts';
import { isRepeated, targetSchemes } from './headers.ts';

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

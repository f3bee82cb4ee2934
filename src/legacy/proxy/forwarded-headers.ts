// Which paths and headers are forwarded between client and old service, and which are added.
import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';

/** Names the gateways that have forwarded a request: a gateway detects a loop by it. */
export const loopHeader = 'x-forwarded-by';
export const servedByHeader = 'x-served-by';

/** Headers of one connection; Node.js writes its own. @see RFC 9110 §7.6.1 */
const hopByHop = [
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'upgrade',
  'http2-settings',
];

/** Keeps order and spelling, `Host` (so that links lead to this gateway) and the received `X-Forwarded-*`. */
export function toLegacyHeaders(request: FastifyRequest, gateway: string): string[] {
  const { raw, headers, protocol, host } = request;
  // Node.js has sent "100 Continue" already.
  const dropped = ['expect', 'x-forwarded-for', loopHeader];
  if (headers['transfer-encoding'] !== undefined) dropped.push('content-length');
  const kept = endToEnd(raw, dropped);
  const peer = raw.socket.remoteAddress?.replace(/^::ffff:(?=[\d.]+$)/, '') ?? '';
  const add = (name: string, ...values: unknown[]) =>
    kept.push(name, values.filter((value) => value !== undefined && value !== '').join(', '));
  add('X-Forwarded-For', headers['x-forwarded-for'], peer);
  if (headers['x-forwarded-proto'] === undefined) add('X-Forwarded-Proto', protocol);
  if (headers['x-forwarded-host'] === undefined && host) add('X-Forwarded-Host', host);
  add('X-Forwarded-By', headers[loopHeader], gateway);
  return kept;
}

export function fromLegacyHeaders(answer: IncomingMessage): string[] {
  return [...endToEnd(answer, ['transfer-encoding', servedByHeader]), servedByHeader, 'legacy'];
}

/** Removes hop-by-hop headers and those that `Connection` names. */
function endToEnd({ rawHeaders, headers }: IncomingMessage, dropped: readonly string[]): string[] {
  const named = headers.connection?.toLowerCase().split(',') ?? [];
  const without = new Set([...hopByHop, ...dropped, ...named.map((name) => name.trim())]);
  // `Connection` must not remove the headers of framing and routing.
  for (const name of ['host', 'content-length', 'transfer-encoding']) {
    if (!dropped.includes(name)) without.delete(name);
  }
  const nameAt = (index: number) => rawHeaders[index - (index % 2)]?.toLowerCase() ?? '';
  return rawHeaders.filter((_text, index) => !without.has(nameAt(index)));
}

/** Safe for every way to decode a target and resolve `..`: encoded twice, backslashes, parameters after a semicolon. */
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

// Which paths and headers pass between client and old service, and what is added.
import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';

/** Names the gateways that a request has passed, so that one sees what comes back to it. */
export const loopHeader = 'x-forwarded-by';
export const servedByHeader = 'x-served-by';

/** Of one connection only. Node writes its own. */
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

/** In their order and spelling, with `Host`, so that links lead back here. What came in `X-Forwarded-*` stays. */
export function toLegacyHeaders(request: FastifyRequest, gateway: string): string[] {
  const { raw, headers, protocol, host } = request;
  // Node has said "100 Continue" already.
  const dropped = ['expect', 'x-forwarded-for', loopHeader];
  if (headers['transfer-encoding'] !== undefined) dropped.push('content-length');
  const kept = passOn(raw, dropped);
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
  return [...passOn(answer, ['transfer-encoding', servedByHeader]), servedByHeader, 'legacy'];
}

function passOn({ rawHeaders, headers }: IncomingMessage, dropped: readonly string[]): string[] {
  const named = headers.connection?.toLowerCase().split(',') ?? [];
  const without = new Set([...hopByHop, ...dropped, ...named.map((name) => name.trim())]);
  // Nobody may take away by `Connection` what the other side needs to read the rest.
  for (const name of ['host', 'content-length', 'transfer-encoding']) {
    if (!dropped.includes(name)) without.delete(name);
  }
  const nameAt = (index: number) => rawHeaders[index - (index % 2)]?.toLowerCase() ?? '';
  return rawHeaders.filter((_text, index) => !without.has(nameAt(index)));
}

/** However a target is decoded and `..` resolved: encoded twice, with backslashes, with parameters behind a semicolon. */
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

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
  // Node.js refuses it where no trailers can follow, as to HEAD and HTTP/1.0.
  'trailer',
  'upgrade',
  'http2-settings',
];

/**
 * Keeps order and spelling, `Host` (so that links lead to this gateway) and the received `X-Forwarded-*`.
 * @param legacyHost replaces `Host` (LEGACY_HOST)
 */
export function toLegacyHeaders(
  request: FastifyRequest,
  gateway: string,
  legacyHost?: string,
): string[] {
  const { raw, headers, protocol } = request;
  // "100 Continue" has been sent already.
  const dropped = ['expect', 'x-forwarded-for', loopHeader];
  if (headers['transfer-encoding'] !== undefined) dropped.push('content-length');
  const kept = endToEnd(raw, dropped);
  if (legacyHost !== undefined) replaceHost(kept, legacyHost);
  const peer = raw.socket.remoteAddress?.replace(/^::ffff:(?=[\d.]+$)/, '') ?? '';
  const add = (name: string, ...values: unknown[]) =>
    kept.push(name, values.filter((value) => value !== undefined && value !== '').join(', '));
  add('X-Forwarded-For', headers['x-forwarded-for'], peer);
  if (headers['x-forwarded-proto'] === undefined) add('X-Forwarded-Proto', protocol);
  // Not the address that stands for a missing Host: the old service may refuse it.
  const { host } = headers;
  if (headers['x-forwarded-host'] === undefined && host) add('X-Forwarded-Host', host);
  add('X-Forwarded-By', headers[loopHeader], gateway);
  return kept;
}

function replaceHost(headers: string[], host: string): void {
  const index = headers.findIndex((name, index) => index % 2 === 0 && /^host$/i.test(name));
  if (index === -1) headers.push('Host', host);
  else headers[index + 1] = host;
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

/** A segment that `*` stands for: not dots alone, and without parameters. */
const plainSegment = /^(?!\.+$)[^;]+$/;

/**
 * Whether a target is below one of the prefixes, however the old service decodes it and resolves `..`: checked after
 * every decoding, with backslashes as slashes. No path with `..` and parameters after a semicolon is. A prefix with `*`,
 * which allows writes, is matched by every decoding, and by no path with parameters.
 */
export function isBelow(target: string, prefixes: readonly string[]): boolean {
  if (!/^\/(?![\\/])/.test(target)) return false;
  const decodings = decode(target.split('?', 1)[0] ?? '');
  if (decodings.length > maxDecodings) return false;
  // Servers differ in whether parameters, or segments of nothing else, are dropped before `..` is resolved.
  const hasParameters = decodings.some((path) => path.includes(';'));
  if (hasParameters && decodings.some((path) => /[\\/]\.\.(?:[\\/;]|$)/.test(path))) return false;
  const decoded = segmentsOf(decodings.at(-1) ?? '');
  return prefixes.some((prefix) => {
    const names = segmentsOf(prefix);
    const isPattern = isPathPattern(prefix);
    return (
      !(isPattern && hasParameters) &&
      (isPattern ? decodings.map(segmentsOf) : [decoded]).every((segments) =>
        names.every((name, index) =>
          name === '*' ? plainSegment.test(segments[index] ?? '') : segments[index] === name,
        ),
      ) &&
      // A last segment without a slash is not below its own prefix: `/api` is not below `/api/`.
      (decoded.length > names.length || decodings.at(-1)?.endsWith('/')) &&
      decodings.every((path) => staysBelow(segmentsOf(path), names.length))
    );
  });
}

/** Whether it has a `*`, which stands for one segment. */
export function isPathPattern(prefix: string): boolean {
  return prefix.includes('*');
}

/** Whether some server could take a target for one below a prefix: after any decoding, with `..` resolved. */
export function mayBeBelow(target: string, prefix: string): boolean {
  return decode(target.split('?', 1)[0] ?? '').some((path) => {
    const resolved: string[] = [];
    for (const segment of segmentsOf(path.replace(/;[^\\/]*/g, ''))) {
      if (segment === '..') resolved.pop();
      else resolved.push(segment);
    }
    return segmentsOf(prefix).every((name, index) => resolved[index] === name);
  });
}

/** More than any chain of servers decodes; unbounded, a long target would take a second. */
const maxDecodings = 5;

/** The path as it is, and after each decoding until nothing is encoded, or one beyond the limit. */
function decode(path: string, decodings = 1): string[] {
  const decoded = path.replace(/%([0-9a-f]{2})/gi, (_all, code) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  );
  if (decoded === path || decodings > maxDecodings) return [path];
  return [path, ...decode(decoded, decodings + 1)];
}

function segmentsOf(path: string): string[] {
  return path.split(/[\\/]+/).filter((segment) => segment !== '' && segment !== '.');
}

/** Whether `..` never leads out of the first `depth` segments. */
function staysBelow(segments: readonly string[], depth: number): boolean {
  let current = 0;
  return segments.every((segment, index) => {
    const isParent = segment === '..';
    current += isParent ? -1 : 1;
    return !isParent || (index >= depth && current >= depth);
  });
}

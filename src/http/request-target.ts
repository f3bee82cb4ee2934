// Request targets in absolute form, as a client sends them to a proxy: `GET http://shop.test/api/ HTTP/1.1`.
import type { IncomingMessage } from 'node:http';

/**
 * The origin form of a request target: path and query. The authority of an absolute form replaces the
 * `Host` that was received, here and for the old service.
 * @see RFC 9112 §3.2.2
 */
export function toOriginForm(request: IncomingMessage): string {
  const { url = '/', rawHeaders, headers } = request;
  // Almost all are in origin form.
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

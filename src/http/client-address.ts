// Client addresses, grouped: one group is one client of the rate limit and of the concurrency limit.
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/** An address without the port, brackets and quotes with which some proxies write it; other text as it is. */
export function bareAddress(text: string): string {
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

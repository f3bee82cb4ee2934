// Client addresses: which of them count as one client.
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/**
 * An IPv4 address stands for itself, also mapped into IPv6; an IPv6 address for its network of 64 bits, which is what
 * one subscriber has. Anything else, as a proxy may send, is one group.
 */
export function groupAddress(address: string): string {
  // Asked first: ipaddr.js reads 1.2.3 and 0x7f.1 as IPv4, too. And in one spelling: or else ::1.2.3.4 is mapped.
  if (isIP(address) === 4) return address;
  if (isIP(address) === 0) return 'unknown';
  const { hostname } = new URL(`http://[${address.replace(/%.*/, '')}]`);
  const parsed = ipaddr.process(hostname.slice(1, -1));
  if (!(parsed instanceof ipaddr.IPv6)) return parsed.toString();
  const network = parsed.parts.slice(0, 4).map((part) => part.toString(16));
  return `${network.join(':')}::/64`;
}

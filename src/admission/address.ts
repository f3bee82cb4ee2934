// Which requests are those of one sender.
import { isIP } from 'node:net';
import type { Viewer } from './viewer.ts';

/** The sender of a request: its viewer, or else its address. */
export function senderOf(viewer: Viewer | undefined, address: string): string {
  return viewer ? `user ${viewer.userId}` : `address ${groupAddress(address)}`;
}

/**
 * Whose address it is: an IPv4 address stands for itself, also when it is written as IPv6, and
 * IPv6 addresses for their network of 64 bits, since that is what one subscriber has.
 * @param address as text; anything else than an address, as a proxy may send, is one group
 */
export function groupAddress(address: string): string {
  if (isIP(address) === 4) return address;
  if (isIP(address) === 0) return 'unknown';
  const [withoutZone = ''] = address.split('%');
  // The one spelling of an address, such as 2001:db8::1.
  const text = new URL(`http://[${withoutZone}]`).hostname.slice(1, -1);
  const mapped = /^::ffff:([\da-f]+):([\da-f]+)$/.exec(text);
  if (mapped) {
    return mapped
      .slice(1)
      .map((group) => Number.parseInt(group, 16))
      .flatMap((group) => [group >> 8, group & 255])
      .join('.');
  }
  const [head = [], tail = []] = text.split('::').map((half) => half.split(':').filter(Boolean));
  const zeros = Array<string>(8 - head.length - tail.length).fill('0');
  return `${[...head, ...zeros, ...tail].slice(0, 4).join(':')}::/64`;
}

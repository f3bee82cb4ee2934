import type { FastifyRequest } from 'fastify';

/**
 * Whether a header has more than one line. Of those that may have only one, Node gives the first,
 * which a proxy in front need not have looked at.
 * @param name in lower case
 */
export function isRepeated({ raw: { rawHeaders } }: FastifyRequest, name: string): boolean {
  let lines = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const header = rawHeaders[index];
    if (header?.length === name.length && header.toLowerCase() === name) lines += 1;
  }
  return lines > 1;
}

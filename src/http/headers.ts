// What a header says that Node does not tell by itself.
import type { IncomingHttpHeaders } from 'node:http';
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

/** The encoding of a body that is not sent as it is, as its header names it: none such is taken. */
export function unsupportedEncodingOf(headers: IncomingHttpHeaders): string | undefined {
  const encoding = headers['content-encoding']?.trim();
  return encoding && encoding.toLowerCase() !== 'identity' ? encoding : undefined;
}

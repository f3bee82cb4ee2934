import type { IncomingHttpHeaders } from 'node:http';

/** The encoding of a body that is not sent as it is, as its header names it: none such is taken. */
export function foreignEncoding(headers: IncomingHttpHeaders): string | undefined {
  const encoding = headers['content-encoding']?.trim();
  return encoding && encoding.toLowerCase() !== 'identity' ? encoding : undefined;
}

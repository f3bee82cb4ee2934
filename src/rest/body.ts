// Bodies: JSON and forms.
import type { IncomingHttpHeaders } from 'node:http';
import { unsupportedEncodingOf } from '../http/headers.ts';
import { decodeBody, JsonInputError, readJson } from '../http/json.ts';
import { parseError, unsupportedEncoding, unsupportedMediaType } from './errors.ts';
import { parseQuery } from './query-string.ts';

/** The body of a request, read as its type says. */
export interface Body {
  readonly value: unknown;
  /** Whether it is a form, in which every value is text. */
  readonly isForm: boolean;
}

export const mediaTypes = ['application/json', 'application/x-www-form-urlencoded'] as const;

/**
 * Reads a body. An empty one is an empty object, whatever its type, as in DRF.
 * @param bytes undefined when the request has none
 * @throws RestError 415 for another encoding or type, 400 for what cannot be read as that type
 */
export function readBody(headers: IncomingHttpHeaders, bytes: Buffer | undefined): Body {
  if (bytes === undefined || bytes.length === 0) return { value: {}, isForm: false };
  const encoding = unsupportedEncodingOf(headers);
  if (encoding) throw unsupportedEncoding(encoding);
  const contentType = headers['content-type'];
  const mediaType = contentType?.split(';')[0]?.trim().toLowerCase();
  if (mediaType === mediaTypes[0]) return { value: parseJson(bytes), isForm: false };
  if (mediaType !== mediaTypes[1]) throw unsupportedMediaType(contentType ?? '');
  // The last of a repeated name wins.
  return { value: Object.fromEntries(parseQuery(bytes.toString('utf8'))), isForm: true };
}

function parseJson(bytes: Buffer): unknown {
  try {
    return readJson(decodeBody(bytes), 'The body');
  } catch (error) {
    throw error instanceof JsonInputError ? parseError(error.message) : error;
  }
}

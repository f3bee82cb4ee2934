import { parseError, unsupportedMediaType } from './errors.ts';
import { parseQuery } from './query-string.ts';

/** The body of a request, read as its type says. */
export interface Body {
  readonly value: unknown;
  /** Whether it is a form, in which every value is text. */
  readonly isForm: boolean;
}

export const mediaTypes = ['application/json', 'application/x-www-form-urlencoded'];

/** Far deeper than any record; a parser that calls itself would run out of stack at some point. */
const deepest = 64;

/**
 * Reads a body. An empty one is an empty object, whatever its type, as in DRF.
 * @param bytes undefined when the request has none
 * @throws RestError 415 for another type, 400 for what cannot be read as that type
 */
export function readBody(contentType: string | undefined, bytes: Buffer | undefined): Body {
  if (bytes === undefined || bytes.length === 0) return { value: {}, isForm: false };
  const mediaType = contentType?.split(';')[0]?.trim().toLowerCase();
  if (mediaType === mediaTypes[0]) return { value: parseJson(bytes), isForm: false };
  if (mediaType !== mediaTypes[1]) throw unsupportedMediaType(contentType ?? '');
  // The last of a repeated name wins.
  return { value: Object.fromEntries(parseQuery(bytes.toString('utf8'))), isForm: true };
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function parseJson(bytes: Buffer): unknown {
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    throw parseError('The body is not valid UTF-8.');
  }
  if (depthOf(text) > deepest)
    throw parseError(`The body is nested deeper than ${deepest} levels.`);
  try {
    return JSON.parse(text);
  } catch {
    throw parseError('The body is not valid JSON.');
  }
}

/** How deep the brackets of a JSON text are nested, those in strings left out. */
function depthOf(text: string): number {
  let depth = 0;
  let most = 0;
  let isInString = false;
  for (let index = 0; index < text.length; index++) {
    const character = text[index];
    if (isInString) {
      if (character === '\\') index++;
      else if (character === '"') isInString = false;
    } else if (character === '"') isInString = true;
    else if (character === '[' || character === '{') most = Math.max(most, ++depth);
    else if (character === ']' || character === '}') depth--;
  }
  return most;
}

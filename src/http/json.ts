// JSON: encoding of answers, decoding of request bodies.
import { isUtf8 } from 'node:buffer';
import { HttpError } from '../errors.ts';

/** Escapes U+2028 and U+2029, which clients that evaluate JSON reject. A Buffer: Fastify adds a charset to a string. */
export function encodeJson(value: unknown): Buffer {
  return Buffer.from(
    JSON.stringify(value).replace(/[\u2028\u2029]/g, (separator) =>
      separator === '\u2028' ? '\\u2028' : '\\u2029',
    ),
  );
}

/** What a client sent cannot be read; the message says what and why. */
export class InputError extends HttpError {
  constructor(message: string) {
    super(400, 'BAD_REQUEST', message);
  }
}

/** Limit of nesting: valid input has a few levels, and deep input would overflow the stack later. */
export const maxLevels = 32;

/** @throws InputError for invalid UTF-8, which would silently become U+FFFD */
export function decodeBody(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw new InputError('The body is not valid UTF-8.');
  return bytes.toString('utf8');
}

/**
 * @param what such as "The body"
 * @throws InputError for invalid JSON, and for JSON nested too deep
 */
export function readJson(text: string, what: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    const isEmpty = text.trim() === '';
    throw new InputError(`${what} is ${isEmpty ? 'empty' : 'not valid JSON'}.`);
  }
  if (!isDeeper(value, maxLevels)) return value;
  throw new InputError(`${what} is nested deeper than ${maxLevels} levels.`);
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

export function isDeeper(value: unknown, levels: number): boolean {
  if (!isObject(value)) return false;
  return levels === 0 || Object.values(value).some((inner) => isDeeper(inner, levels - 1));
}

// JSON on the wire: bytes of an answer, and what a client has sent.
import { isUtf8 } from 'node:buffer';

/** Escapes what old clients, which evaluate it, do not take. A Buffer: Fastify adds a charset to a string. */
export function encodeJson(value: unknown): Buffer {
  return Buffer.from(
    JSON.stringify(value).replace(/[\u2028\u2029]/g, (separator) =>
      separator === '\u2028' ? '\\u2028' : '\\u2029',
    ),
  );
}

export class JsonInputError extends Error {
  override readonly name = 'JsonInputError';
}

/** No input of this service has more than a few levels, and each costs stack later on. */
const maxLevels = 32;

/** @throws JsonInputError for bytes that are not UTF-8, which would silently become U+FFFD */
export function decodeBody(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw new JsonInputError('The body is not valid UTF-8.');
  return bytes.toString('utf8');
}

/**
 * @param what such as "The body"
 * @throws JsonInputError for what is not JSON, or nested too deep
 */
export function readJson(text: string, what: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    const isEmpty = text.trim() === '';
    throw new JsonInputError(`${what} is ${isEmpty ? 'empty' : 'not valid JSON'}.`);
  }
  if (!isDeeper(value, maxLevels)) return value;
  throw new JsonInputError(`${what} is nested deeper than ${maxLevels} levels.`);
}

export function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((inner) => isDeeper(inner, levels - 1));
}

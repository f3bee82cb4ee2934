/**
 * Compact UTF-8 JSON. U+2028 and U+2029 are escaped, as old clients evaluate answers as
 * JavaScript. A Buffer, because Fastify adds `; charset=utf-8` to the type of a string.
 */
export function encodeJson(value: unknown): Buffer {
  return Buffer.from(
    JSON.stringify(value).replace(/[\u2028\u2029]/g, (separator) =>
      separator === '\u2028' ? '\\u2028' : '\\u2029',
    ),
  );
}

// The payload of `connection_init`: headers that pages cannot add to a handshake.
import type { IncomingHttpHeaders } from 'node:http';
import { z } from 'zod';
import { isObject } from '../../http/representation.ts';

const maxLength = 8_192;
/** A character that no header can have makes the value an invalid one. */
const value = z
  .string()
  .max(maxLength)
  .transform((text) => text.replace(/[^\t -~]/g, '?'));
const names = /^(?:authorization|(?:apollographql-client|x-client)-(?:name|version))$/i;
const named = z.record(z.string(), value);

/** Also in `headers`, where the payload itself has none of the name. Undefined: a value is no text, or too long. */
export function readParameters(payload: unknown): IncomingHttpHeaders | undefined {
  const { headers } = isObject(payload) ? payload : {};
  const found: Record<string, unknown> = {};
  for (const source of [headers, payload]) {
    if (!isObject(source)) continue;
    for (const name of Object.keys(source)) {
      if (names.test(name) && source[name] != null) found[name.toLowerCase()] = source[name];
    }
  }
  return named.safeParse(found).data;
}

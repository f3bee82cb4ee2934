// Forms (application/x-www-form-urlencoded) in the charset that their media type names.
import { InputError } from './json.ts';

/** As in Django: a form of a megabyte has 500,000. */
const maxFields = 1_000;

/**
 * Undefined for a charset that is not known, or in which no form can be written.
 * @throws InputError for bytes that are not of the charset, which would silently become U+FFFD
 * @see https://url.spec.whatwg.org/#urlencoded-parsing
 */
export function readForm(bytes: Buffer, contentType: string): [string, string][] | undefined {
  const [, charset = 'utf-8'] = /;\s*charset="?([^\s;"]+)/i.exec(contentType) ?? [];
  let decoder: TextDecoder;
  try {
    decoder = new TextDecoder(charset, { fatal: true, ignoreBOM: true });
  } catch {
    return undefined;
  }
  // Bytes of UTF-16 look like separators.
  if (decoder.encoding.startsWith('utf-16')) return undefined;
  const fields = bytes.toString('latin1').split('&', maxFields + 1);
  if (fields.length > maxFields)
    throw new InputError(`The form has more than ${maxFields} fields.`);
  const decode = (text: string) => {
    try {
      // In two steps: in one, Node.js 20 decodes windows-1252 as ISO-8859-1.
      return decoder.decode(unescapeBytes(text), { stream: true }) + decoder.decode();
    } catch {
      throw new InputError(`The form has bytes that are not ${decoder.encoding}.`);
    }
  };
  return fields.filter(Boolean).map((field) => {
    const [name = ''] = field.split('=', 1);
    return [decode(name), decode(field.slice(name.length + 1))];
  });
}

/** `+` is a space, and invalid percent-encoding stays. @param text bytes as latin1 */
function unescapeBytes(text: string): Buffer {
  const bytes = Buffer.from(text.replaceAll('+', ' '), 'latin1');
  let length = 0;
  for (let at = 0; at < bytes.length; at++, length++) {
    const byte = bytes[at] ?? 0;
    const isCode = byte === 0x25 && bytes.write(text.slice(at + 1, at + 3), length, 'hex') === 1;
    if (isCode) at += 2;
    else bytes[length] = byte;
  }
  return bytes.subarray(0, length);
}

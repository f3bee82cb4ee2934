// POST: a stored document creates a record from a body of JSON or of a form.
import type { IncomingHttpHeaders } from 'node:http';
import { type ExecutionResult, GraphQLBoolean, isEnumType } from 'graphql';
import type { OperationCaller } from '../admission/admission.ts';
import { cut } from '../errors.ts';
import type { Engine } from '../graphql/engine.ts';
import { unsupportedEncodingOf } from '../http/headers.ts';
import { decodeBody, InputError, readJson } from '../http/representation.ts';
import type { FoundInput } from './describe.ts';
import {
  dataOf,
  invalidFields,
  notAnObject,
  parseError,
  unsupportedEncoding,
  unsupportedMediaType,
} from './errors.ts';
import type { Create, Created } from './routes.ts';
import { parseBoolean } from './variables.ts';

export interface Body {
  readonly value: unknown;
  readonly isForm: boolean;
}

export const mediaTypes = ['application/json', 'application/x-www-form-urlencoded'] as const;

/**
 * An empty body of any type is an empty object, as in Django REST Framework.
 * @throws RestError 415 for another content coding, media type or charset, 400 for an invalid body
 */
export function readBody(headers: IncomingHttpHeaders, bytes: Buffer | undefined): Body {
  if (bytes === undefined || bytes.length === 0) return { value: {}, isForm: false };
  const encoding = unsupportedEncodingOf(headers);
  if (encoding) throw unsupportedEncoding(encoding);
  const contentType = headers['content-type'];
  const mediaType = contentType?.split(';')[0]?.trim().toLowerCase();
  const isForm = mediaType === mediaTypes[1];
  try {
    if (mediaType === mediaTypes[0])
      return { value: readJson(decodeBody(bytes), 'The body'), isForm };
    const fields = isForm ? readForm(bytes, contentType ?? '') : undefined;
    if (!fields) throw unsupportedMediaType(contentType ?? '');
    return { value: Object.fromEntries(fields), isForm };
  } catch (error) {
    throw error instanceof InputError ? parseError(isForm ? 'Form' : 'JSON', error.message) : error;
  }
}

export function storeCreate(engine: Engine, { document, fields }: Create) {
  const operation = engine.store(document);
  const toAnswer = (result: ExecutionResult) => ({
    ...dataOf<{ created: Created }>(result),
    size: 0,
    shareable: false,
  });

  /** @throws RestError 400 with the errors of all fields, HttpError */
  return async ({ value, isForm }: Body, caller: OperationCaller): Promise<unknown> => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      throw notAnObject(value);
    }
    const variables: Record<string, unknown> = {};
    const wrong = new Map<string, readonly string[]>();
    for (const field of fields) {
      if (!Object.hasOwn(value, field.name)) continue;
      const given: unknown = Reflect.get(value, field.name);
      const coerced = coerceField(field, given, isForm);
      if (coerced.message !== undefined) wrong.set(field.name, [coerced.message]);
      else if (coerced.value !== undefined) variables[field.name] = coerced.value;
    }
    // Invalid fields are left out, and the others validated: one answer has all errors.
    if (wrong.size > 0) variables['validate_only'] = true;
    const execution = { operation, variables, key: '', toAnswer };
    const { created } = (await engine.answer(execution, caller)).answer;
    const coerced = new Set(wrong.keys());
    for (const { field, code, messages } of created.errors) {
      const { name, input } = fields.find(({ input }) => input.name === field) ?? { name: field };
      if (coerced.has(name)) continue;
      const sentence = sentences[code]?.(input?.extensions['maxLength']);
      const all = sentence === undefined ? messages : [sentence];
      wrong.set(name, [...(wrong.get(name) ?? []), ...all]);
    }
    if (wrong.size === 0) return created.record;
    const inOrder = fields.filter(({ name }) => wrong.has(name));
    throw invalidFields(
      Object.fromEntries(inOrder.map(({ name }) => [name, wrong.get(name) ?? []])),
    );
  };
}

/** Django REST Framework's, which legacy apps display, by the code of an InputError; the others are those of GraphQL. */
const sentences: Readonly<Record<string, (maxLength: unknown) => string>> = {
  REQUIRED: () => 'This field is required.',
  BLANK: () => 'This field may not be blank.',
  TOO_LONG: (maxLength) => `Ensure this field has no more than ${maxLength} characters.`,
  FOREIGN_URL: () => 'Enter a valid URL.',
  INVALID_KEY: () => 'Enter a valid URL.',
  INVALID_COLOR: () => 'This value does not match the required pattern.',
};

/** Coerces types as Django REST Framework does; the mutation validates the values. Undefined: not given. */
function coerceField(
  { input, type }: FoundInput,
  value: unknown,
  isForm: boolean,
): { readonly value?: unknown; readonly message?: string } {
  const { mayBeBlank = false, mayBeNull = false, required = false } = input.extensions;
  if (isForm && value === '' && !mayBeBlank && !required) return { value: undefined };
  if (value === null) return mayBeNull ? {} : { message: 'This field may not be null.' };
  if (type === GraphQLBoolean) {
    const read = parseBoolean(value);
    return read === undefined ? { message: 'Must be a valid boolean.' } : { value: read };
  }
  if (isEnumType(type)) {
    const choice = type.getValues().find((candidate) => candidate.value === value);
    return choice ? { value: choice.name } : { message: `"${show(value)}" is not a valid choice.` };
  }
  // Larger numbers have lost digits of the text that was sent.
  const isExact = typeof value === 'number' && Math.abs(value) <= Number.MAX_SAFE_INTEGER;
  if (typeof value === 'string' || isExact) return { value: String(value) };
  return { message: 'Not a valid string.' };
}

function show(value: unknown): string {
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  return cut(typeof value === 'object' ? JSON.stringify(value) : String(value), 200);
}

/** As in Django: a form of a megabyte has 500,000. */
const maxFields = 1_000;

/**
 * Undefined for a charset that is not known, or in which no form can be written.
 * @throws InputError for bytes that are not of the charset, which would silently become U+FFFD
 * @see https://url.spec.whatwg.org/#urlencoded-parsing
 */
function readForm(bytes: Buffer, contentType: string): [string, string][] | undefined {
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

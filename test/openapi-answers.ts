// Compares answers with what the OpenAPI document says of them, and keeps what it has seen, so that the
// document can be held against that: it may promise nothing that no request gets.
import { brotliDecompressSync } from 'node:zlib';
import { Ajv2020 } from 'ajv/dist/2020.js';
import ajvFormats from 'ajv-formats';
import type { FastifyInstance, LightMyRequestResponse } from 'fastify';
import { expect } from 'vitest';
import { sendRaw } from './raw-http.ts';

export type Json = { readonly [Key in string]: Json } & { readonly [index: number]: Json };

export interface Answer extends Pick<LightMyRequestResponse, 'statusCode' | 'headers' | 'body'> {
  readonly rawPayload?: Buffer;
}

/** HTTP's own, which OpenAPI does not tell; `Content-Type` is the name of the content there. */
const framing = new Set([
  ...['connection', 'content-length', 'content-type', 'date', 'keep-alive', 'transfer-encoding'],
]);

/** Every object has all its fields in its schema, for the tests. */
function close(schema: unknown): unknown {
  if (typeof schema !== 'object' || schema === null) return schema;
  if (Array.isArray(schema)) return schema.map(close);
  const closed = Object.fromEntries(
    Object.entries(schema).map(([name, value]) => [
      name,
      name === 'example' ? value : close(value),
    ]),
  );
  const isOpen = 'properties' in schema && !('additionalProperties' in schema);
  return isOpen ? { ...closed, additionalProperties: false } : closed;
}

const toPointer = (key: string) => key.replaceAll('~', '~0').replaceAll('/', '~1');

const find = (document: Json, keys: readonly string[]) =>
  keys.reduce<Json | undefined>((inner, key) => inner?.[key], document);

/** Where the answers of a method are; those that have no operation share one place. */
const placeOf = (path: string, method: string) =>
  /^(get|head|post|options)$/i.test(method)
    ? ['paths', path, method.toLowerCase(), 'responses']
    : ['paths', path, 'x-other-methods'];

export interface Asked {
  /** As the document names it. */
  readonly path: string;
  readonly method: string;
  /** The name of the example that the answer is. */
  readonly example?: string | undefined;
}

export function createChecker(document: Json) {
  const ajv = new Ajv2020({ strict: false });
  ajvFormats.default(ajv);
  ajv.addSchema(close(document) as object, 'document');
  /** What was seen of a status: names of its headers and examples. */
  const seen = new Map<string, Set<string>>();

  const expectValid = (keys: readonly string[], value: unknown) => {
    const validate = ajv.compile({ $ref: `document#/${keys.map(toPointer).join('/')}` });
    validate(value);
    expect(validate.errors).toBeNull();
  };

  const checkHeader = (keys: readonly string[], value: unknown, example: string | false = '') => {
    const header = find(document, keys);
    if (value === undefined) return expect(header?.['required']).not.toBe(true);
    const isNumber = String(header?.['schema']?.['type']) === 'integer';
    const given: unknown = isNumber ? Number(value) : value;
    expectValid([...keys, 'schema'], given);
    const { example: only, examples } = header ?? {};
    if (example === false) return;
    if (only !== undefined) expect(given).toEqual(only);
    if (examples && example) expect(given).toEqual(examples[example]?.['value']);
  };

  return {
    /** @returns what the document says of the answer */
    check({ path, method, example }: Asked, { statusCode, headers, ...answer }: Answer): Json {
      const responses = placeOf(path, method);
      const isTold = find(document, [...responses, `${statusCode}`]) !== undefined;
      const status = isTold ? `${statusCode}` : 'default';
      const place = [...responses, status];
      const described = find(document, place);
      if (!described) throw new Error(`There is no ${method} ${path} ${statusCode}.`);
      const known = seen.get(place.join(' ')) ?? new Set();
      seen.set(place.join(' '), known.add(''));
      const told = Object.keys(described['headers'] ?? {});
      for (const name of told) {
        const isShared = '$ref' in (described['headers']?.[name] ?? {});
        const keys = isShared ? ['components', 'headers', name] : [...place, 'headers', name];
        const value = headers[name.toLowerCase()];
        if (value !== undefined) known.add(`header ${name}`);
        // How long a window still lasts, only the clock knows.
        checkHeader(keys, value, statusCode === 429 ? false : example);
      }
      // Another service has answered.
      if (status === 'default') return described;
      const given = Object.keys(headers).filter((name) => !framing.has(name));
      expect(told.map((name) => name.toLowerCase())).toEqual(expect.arrayContaining(given));
      const content = described['content'];
      if (!content) {
        expect(answer.body).toBe('');
        return described;
      }
      expect(headers['content-type']).toBe('application/json');
      const body = JSON.parse(
        headers['content-encoding'] === 'br'
          ? brotliDecompressSync(answer.rawPayload ?? '').toString()
          : answer.body,
      );
      expectValid([...place, 'content', 'application/json', 'schema'], body);
      if (example) {
        const { value } = content['application/json']?.['examples']?.[example] ?? {};
        const whole = (one: unknown) =>
          example === 'throttled' ? JSON.stringify(one).replace(/\d+ seconds?/, '') : one;
        expect(whole(body)).toEqual(whole(value));
        known.add(`example ${example}`);
      }
      return described;
    },

    /** Every status that is told, each of its headers and each of its examples have been seen. */
    expectAllSeen(isMeant = (_path: string, _method: string) => true): void {
      for (const [path, item] of Object.entries(document['paths'] ?? {})) {
        for (const method of ['get', 'head', 'post', 'options', 'other']) {
          const place = placeOf(path, method);
          const responses = find(document, place);
          if (!responses || !isMeant(path, method) || !item) continue;
          for (const [status, { headers, content }] of Object.entries(responses)) {
            const examples = content?.['application/json']?.['examples'];
            const told = [
              '',
              ...Object.keys(headers ?? {}).map((name) => `header ${name}`),
              ...Object.keys(examples ?? {}).map((name) => `example ${name}`),
            ];
            const known = seen.get([...place, status].join(' ')) ?? new Set();
            const missing = told.filter((one) => !known.has(one));
            expect({ path, method, status, missing }).toEqual({
              path,
              method,
              status,
              missing: [],
            });
          }
        }
      }
    },
  };
}

/** Sends bytes, and reads the answer as the client of such a method does: to HEAD there is no body. */
export async function askRaw(
  app: FastifyInstance,
  method: string,
  ...parts: string[]
): Promise<Answer> {
  const [head = '', body = ''] = (await sendRaw(app, ...parts)).split('\r\n\r\n', 2);
  const [first = '', ...lines] = head.split('\r\n');
  const headers = lines.map((line) => {
    const colon = line.indexOf(':');
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
  });
  return {
    statusCode: Number(first.split(' ')[1]),
    headers: Object.fromEntries(headers),
    body: method === 'HEAD' ? '' : body,
  };
}

/** What is answered to what is no request, too large a head, or one that does not end. */
export async function askUnreadable(app: FastifyInstance, method: string, path: string) {
  // What Node looks at every two seconds.
  app.server.headersTimeout = 1_000;
  const first = `${method} ${path}`;
  const [invalidHttp, headTooLarge, arrivedTooSlowly] = await Promise.all([
    askRaw(app, method, `${first}?x=\xe9 HTTP/1.1\r\nHost: a\r\n\r\n`),
    askRaw(app, method, `${first}?x=${'x'.repeat(20_000)} HTTP/1.1\r\nHost: a\r\n\r\n`),
    askRaw(app, method, `${first} HTTP/1.1\r\n`),
  ]);
  return { invalidHttp, headTooLarge, arrivedTooSlowly };
}

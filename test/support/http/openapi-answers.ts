// Compares answers with the OpenAPI document: none may contradict it.
import { brotliDecompressSync } from 'node:zlib';
import { Ajv2020 } from 'ajv/dist/2020.js';
import ajvFormats from 'ajv-formats';
import type { LightMyRequestResponse } from 'fastify';
import { expect } from 'vitest';

export type Json = { readonly [Key in string]: Json } & { readonly [index: number]: Json };

export interface Answer extends Pick<LightMyRequestResponse, 'statusCode' | 'headers' | 'body'> {
  readonly rawPayload?: Buffer;
}

/** HTTP's own, and for browsers, which OpenAPI does not tell; `Content-Type` is the name of the content there. */
const untold =
  /^(?:connection|content-.*|date|keep-alive|transfer-encoding|access-control-.*|allow|vary|cross-origin-.*|referrer-policy|x-content-type-options|x-frame-options)$/;

/** Every object has all its fields in its schema, for the tests. */
function close(schema: unknown): unknown {
  if (typeof schema !== 'object' || schema === null) return schema;
  if (Array.isArray(schema)) return schema.map(close);
  const entries = Object.entries(schema).map(([name, value]) => [
    name,
    /^examples?$/.test(name) ? value : close(value),
  ]);
  const isOpen = 'properties' in schema && !('additionalProperties' in schema);
  return { ...Object.fromEntries(entries), ...(isOpen ? { additionalProperties: false } : {}) };
}

/** Gives what checks an answer to a method of a path, which is written as in the document. */
export function createChecker(document: Json) {
  const ajv = new Ajv2020({ strict: false });
  ajvFormats.default(ajv);
  ajv.addSchema(close(document) as object, 'document');
  const expectValid = (value: unknown, ...keys: string[]) => {
    const pointer = keys.map((key) => key.replaceAll('~', '~0').replaceAll('/', '~1')).join('/');
    const validate = ajv.compile({ $ref: `document#/${pointer}` });
    validate(value);
    expect(validate.errors).toBeNull();
  };

  /** @param status as the document names it */
  return (method: string, path: string, answer: Answer, status = `${answer.statusCode}`) => {
    const { headers, body, statusCode } = answer;
    // That of a method is in the description of its path, and 502 is of any proxy.
    if (statusCode >= 400 && statusCode !== 405 && statusCode !== 502) {
      expect(`${document['info']?.['description']}`).toContain(`| ${statusCode} |`);
    }
    const isRedirect = document['paths']?.[path] === undefined;
    const key = isRedirect ? `${path}/` : path;
    const item = document['paths']?.[key] ?? {};
    const operation = method === 'POST' && !isRedirect ? 'post' : 'get';
    const responses = item[operation]?.['responses'] ?? {};
    // What has no operation is in the description of GET, but for what is wrong with the request.
    const isOther =
      !/^(?:GET|HEAD|POST)$/.test(method) && (answer.statusCode < 300 || answer.statusCode === 405);
    if (isOther || (isRedirect && answer.statusCode < 400)) {
      return expectInWords(`${item['get']?.['description']}`, method, isRedirect, answer);
    }
    const named = responses[status] ? status : 'default';
    const [, name] =
      /^#\/components\/responses\/(\w+)$/.exec(`${responses[named]?.['$ref']}`) ?? [];
    const place = name
      ? ['components', 'responses', name]
      : ['paths', key, operation, 'responses', named];
    const described =
      place.reduce<Json | undefined>((found, part) => found?.[part], document) ?? {};
    if (answer.statusCode < 300) {
      const names = Object.keys(described['headers'] ?? {}).map((one) => one.toLowerCase());
      const given = Object.keys(headers).filter((one) => !untold.test(one));
      expect(names).toEqual(expect.arrayContaining(given));
    }
    if (method === 'HEAD' || !described['content']) return expect(body).toBe('');
    expect(headers['content-type']).toBe('application/json');
    const isPacked = headers['content-encoding'] === 'br';
    const text = isPacked ? `${brotliDecompressSync(answer.rawPayload ?? '')}` : body;
    expectValid(JSON.parse(text), ...place, 'content', 'application/json', 'schema');
  };
}

function expectInWords(words: string, method: string, isRedirect: boolean, answer: Answer): void {
  const { statusCode, headers, body } = answer;
  if (method === 'OPTIONS' && statusCode === 204) {
    expect(words).toContain('OPTIONS describes the path, or answers a CORS preflight (204).');
  } else if (isRedirect) {
    expect(words).toContain('redirects here: with 301 for GET and HEAD, or else 308.');
    expect(statusCode).toBe(/^(GET|HEAD)$/.test(method) ? 301 : 308);
    expect(headers['location']).toMatch(/\/$/);
  } else if (method === 'OPTIONS') {
    expect(words).toContain('OPTIONS describes the path');
    const keys = ['name', 'description', 'renders', 'parses'];
    expect(Object.keys(JSON.parse(body))).toEqual(expect.arrayContaining(keys));
  } else {
    expect(words).toContain(`Methods other than ${headers['allow']} get 405.`);
    expect(headers['allow']).not.toContain(method);
    expect(statusCode).toBe(405);
  }
}
